// What the engine tells: the state, kept up to date by what changed, and the last minutes.

const KEPT_SECONDS = 620;

export function live(onChange, onLink) {
  const store = { at: 0, state: {}, points: [], uses: [], turns: [], changes: [] };
  let events = null;

  function take(message) {
    if (message.full) Object.assign(store, { state: message.state, points: [], uses: [], turns: [], changes: [] });
    else merge(store.state, message.state);
    store.at = message.at;
    store.received = Date.now();
    for (const name of ["points", "uses", "turns", "changes"]) store[name].push(...(message[name] ?? []));
    const oldest = store.at - KEPT_SECONDS;
    drop(store.points, (each) => each[0] < oldest);
    drop(store.uses, (each) => each[0] < oldest);
    if (store.turns.length > 6000) store.turns.splice(0, store.turns.length - 6000);
    if (store.changes.length > 300) store.changes.splice(0, store.changes.length - 300);
    onChange(store);
  }

  function open() {
    if (events) return;
    events = new EventSource("api/events");
    events.onmessage = (event) => { onLink("ok", "live"); take(JSON.parse(event.data)); };
    events.onerror = () => {
      onLink("bad", "the engine does not answer; trying again");
      // Where the server refused, the browser gives up: begin anew.
      if (events && events.readyState === EventSource.CLOSED) { events = null; setTimeout(open, 3000); }
    };
  }

  function close() {
    events?.close();
    events = null;
    onLink("warn", "paused while hidden");
  }

  // A page that nobody sees costs the engine nothing.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", () => events?.close());
  if (!document.hidden) open();
  return store;
}

function drop(list, old) {
  let count = 0;
  while (count < list.length && old(list[count])) count++;
  if (count) list.splice(0, count);
}

function merge(state, change) {
  for (const [section, items] of Object.entries(change)) {
    const known = (state[section] ??= {});
    for (const [name, item] of Object.entries(items)) {
      if (item === null) delete known[name];
      else if (typeof item === "object" && typeof known[name] === "object") Object.assign(known[name], item);
      else known[name] = item;
    }
  }
}

export async function ask(path) {
  const answer = await fetch(path);
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.said ?? answer.statusText);
  return told;
}

export async function change(what, body) {
  const answer = await fetch(`api/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Penstock": "page" },
    body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.said ?? answer.statusText);
}
