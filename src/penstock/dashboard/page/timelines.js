// What was, over time: latency with its target, who ran when, slots and nodes with what changed.

import { change } from "./live.js";
import { clock, hue, make, rows, seconds, share, sinkStatus } from "./words.js";

const charts = new Map();

function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["text", "dim", "line", "soft", "link", "ok", "warn", "bad", "card"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

// A canvas fit for the screen's pixels; null while it has no size.
function paper(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width || !height) return null;
  const scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale)) { canvas.width = Math.round(width * scale); canvas.height = Math.round(height * scale); }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11.5px system-ui, sans-serif";
  return { pen, width, height };
}

function timeAxis({ pen, width, height }, left, begin, end, colour) {
  pen.fillStyle = colour.dim;
  pen.strokeStyle = colour.soft;
  pen.textAlign = "center";
  const span = end - begin;
  const step = [5, 10, 15, 30, 60, 120, 300].find((each) => (each / span) * (width - left) >= 70) ?? 600;
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
    const x = left + ((at - begin) / span) * (width - left);
    line(pen, x, 4, x, height - 17);
    if (x > left + 24 && x < width - 24) pen.fillText(clock(at).slice(0, step < 60 ? 8 : 5), x, height - 4);
  }
}

function line(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}

// --- latency, one chart for each sink

export function drawLatency(box, store, span, say) {
  const sinks = store.state.sinks ?? {};
  for (const [name, chart] of charts) if (!sinks[name]) { chart.card.remove(); charts.delete(name); }
  const by = Map.groupBy ? Map.groupBy(store.points, (point) => point[1]) : grouped(store.points);
  const colour = colours();
  for (const sink of Object.values(sinks)) {
    if (!charts.has(sink.name)) { const made = latencyChart(sink, say); charts.set(sink.name, made); box.append(made.card); }
    drawSink(charts.get(sink.name), sink, by.get(sink.name) ?? [], store.at, span, colour);
  }
}

function grouped(points) {
  const found = new Map();
  for (const point of points) found.has(point[1]) ? found.get(point[1]).push(point) : found.set(point[1], [point]);
  return found;
}

function latencyChart(sink, say) {
  const now = make("span", { class: "now" });
  const aim = make("p", { class: "aim" });
  const canvas = make("canvas", { role: "img" });
  const input = make("input", { "aria-label": `New target of ${sink.name}`, placeholder: "500ms", required: true, maxlength: 20 });
  const form = make("form", { hidden: true }, input, make("button", { type: "submit" }, "Set"), make("button", { type: "button", "data-cancel": true }, "Cancel"));
  const edit = make("button", { type: "button" }, "Change");
  const text = make("span");
  aim.append(text, edit);
  const close = () => { form.hidden = true; aim.hidden = false; edit.focus(); };
  edit.addEventListener("click", () => { form.hidden = false; aim.hidden = true; input.value = ""; input.focus(); });
  form.querySelector("[data-cancel]").addEventListener("click", close);
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await change("target", { pipeline: sink.pipeline, sink: sink.sink, latency: input.value });
      say(`${sink.name} is wanted within ${input.value} now`);
      close();
    } catch (error) { say(error.message); }
  });
  const card = make("article", { class: "chart", "aria-label": `Latency at ${sink.name}` },
    make("div", { class: "head" }, make("b", {}, sink.name), now), canvas, aim, form);
  return { card, canvas, now, text, edit };
}

function drawSink(chart, sink, points, at, span, colour) {
  const status = sinkStatus(sink);
  chart.now.className = `now ${status}`;
  chart.now.textContent = sink.results_minute ? `p99 ${seconds(sink.p99)}${sink.target_seconds == null ? "" : `, ${share(sink.in_time)} in time`}` : "nothing came in the last minute";
  chart.text.textContent = sink.target_seconds == null ? "no target" : `target ${seconds(sink.target_seconds)}`;
  chart.edit.setAttribute("aria-label", `Change the target of ${sink.name}`);
  chart.canvas.setAttribute("aria-label", `Latency at ${sink.name}: ${chart.now.textContent}, ${chart.text.textContent}`);
  const sheet = paper(chart.canvas);
  if (!sheet) return;
  const { pen, width, height } = sheet, left = 46, foot = 17, begin = at - span;
  const shown = points.filter((point) => point[0] >= begin - 5);
  const top = roundUp(1.06 * Math.max(sink.target_seconds ?? 0, ...shown.map((point) => point[3]), 0.001));
  const x = (time) => left + ((time - begin) / span) * (width - left);
  const y = (value) => height - foot - (value / top) * (height - foot - 9);
  timeAxis(sheet, left, begin, at, colour);
  pen.textAlign = "right";
  pen.fillStyle = colour.dim;
  for (const part of [0, 0.5, 1]) pen.fillText(seconds(top * part), left - 6, y(top * part) + 4);
  if (sink.target_seconds != null) {
    pen.setLineDash([5, 4]);
    pen.strokeStyle = colour.dim;
    pen.lineWidth = 1.4;
    line(pen, left, y(sink.target_seconds), width, y(sink.target_seconds));
    pen.setLineDash([]);
  }
  curve(pen, shown, x, (point) => y(point[2]), colour.link, 1.5, 0.45);
  curve(pen, shown, x, (point) => y(point[3]), colour.link, 2, 1);
  // Over the target is told by a mark too, not by height alone.
  pen.fillStyle = colour.bad;
  for (const point of shown) if (sink.target_seconds != null && point[3] > sink.target_seconds) { pen.beginPath(); pen.arc(x(point[0]), y(point[3]), 2.6, 0, 7); pen.fill(); }
}

// The next of 1, 1.5, 2, 3, 5, 8 and ten times as much.
function roundUp(value) {
  const unit = 10 ** Math.floor(Math.log10(value));
  return unit * [1, 1.5, 2, 3, 5, 8, 10].find((step) => step * unit >= value * 0.9999);
}

function curve(pen, points, x, y, colour, width, alpha) {
  pen.strokeStyle = colour;
  pen.globalAlpha = alpha;
  pen.lineWidth = width;
  pen.lineJoin = "round";
  pen.beginPath();
  let last = -Infinity;
  for (const point of points) {
    // A gap stays one: nothing came then.
    point[0] - last > 12 ? pen.moveTo(x(point[0]), y(point)) : pen.lineTo(x(point[0]), y(point));
    last = point[0];
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

// --- turns: who ran when, in as many lanes as there are slots

let turnsShown = [];

export function drawTurns(canvas, legend, store, span) {
  const slots = store.state.engine?.slots ?? 1, colour = colours();
  canvas.style.height = `${Math.max(70, Math.min(34, 260 / slots) * slots + 24)}px`;
  const sheet = paper(canvas);
  if (!sheet) return;
  const { pen, width, height } = sheet, left = 46, foot = 19, end = store.at, begin = end - Math.max(20, Math.round(span / 5));
  const lane = (height - foot - 4) / slots;
  timeAxis(sheet, left, begin, end, colour);
  pen.fillStyle = colour.dim;
  pen.textAlign = "right";
  for (let slot = 0; slot < slots; slot++) pen.fillText(`slot ${slot + 1}`, left - 6, 4 + lane * (slot + 0.5) + 4);
  const x = (time) => left + ((time - begin) / (end - begin)) * (width - left);
  turnsShown = inLanes(store, slots, begin);
  const seen = new Set();
  for (const turn of turnsShown) {
    const from = Math.max(x(turn.at), left), to = Math.max(x(turn.end), from + 1);
    turn.box = { x: from, y: 4 + lane * turn.lane + 2, width: to - from, height: lane * turn.slots - 4 };
    pen.fillStyle = hue(turn.stage);
    pen.globalAlpha = turn.running ? 0.6 : 1;
    pen.fillRect(turn.box.x, turn.box.y, turn.box.width, turn.box.height);
    pen.globalAlpha = 1;
    seen.add(turn.stage);
  }
  drawLegend(legend, [...seen].sort());
  const taken = turnsShown.reduce((sum, turn) => sum + (Math.min(turn.end, end) - Math.max(turn.at, begin)) * turn.slots, 0);
  canvas.setAttribute("aria-valuemax", turnsShown.length);
  // Whoever steps through the turns is told of those, not of their number again and again.
  if (document.activeElement !== canvas) canvas.setAttribute("aria-label", `${turnsShown.length} turns of ${seen.size} stages in the last ${end - begin} seconds on ${slots} slots, which were busy for ${share(Math.min(1, taken / ((end - begin) * slots)))} of the time`);
}

function inLanes(store, slots, begin) {
  const turns = store.turns.filter(([, at, took]) => at + took >= begin).map(([stage, at, took, wide, count]) => ({ stage, at, end: at + took, slots: Math.min(wide, slots), rows: count }));
  for (const stage of Object.values(store.state.stages ?? {}))
    if (stage.turn_since != null && stage.turn_since < store.at) turns.push({ stage: stage.name, at: stage.turn_since, end: store.at, slots: Math.min(stage.slots, slots), rows: null, running: true });
  turns.sort((a, b) => a.at - b.at);
  const free = new Array(slots).fill(-Infinity);
  for (const turn of turns) {
    let lane = 0, best = Infinity;
    for (let first = 0; first + turn.slots <= slots; first++) {
      const ready = Math.max(...free.slice(first, first + turn.slots));
      if (ready <= turn.at + 0.002) { lane = first; break; }
      if (ready < best) { best = ready; lane = first; }
    }
    turn.lane = lane;
    for (let each = lane; each < lane + turn.slots; each++) free[each] = turn.end;
  }
  return turns;
}

function drawLegend(box, names) {
  const key = names.join();
  if (box.dataset.names === key) return;
  box.dataset.names = key;
  box.replaceChildren(...names.slice(0, 24).map((name) => {
    const mark = make("span", { class: "key" }, name);
    mark.style.setProperty("--none", hue(name));
    return mark;
  }));
}

export function explainTurns(canvas, tip) {
  let chosen = null;
  const told = (turn) => `${turn.stage}: ${turn.running ? "runs for " : ""}${seconds(turn.end - turn.at)}${turn.rows == null ? "" : `, ${rows(turn.rows)} rows`}, from ${clock(turn.at)}`;
  const show = (turn) => {
    tip.hidden = !turn;
    if (!turn) return;
    tip.textContent = told(turn);
    tip.style.left = `${Math.min(turn.box.x + 12, canvas.clientWidth - 200)}px`;
    tip.style.top = `${turn.box.y + turn.box.height + 12}px`;
  };
  canvas.addEventListener("pointermove", (event) => {
    show(turnsShown.find(({ box }) => event.offsetX >= box.x - 1 && event.offsetX <= box.x + box.width + 1 && event.offsetY >= box.y && event.offsetY <= box.y + box.height));
  });
  canvas.addEventListener("pointerleave", () => show(null));
  canvas.addEventListener("blur", () => { chosen = null; show(null); });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key], last = turnsShown.length - 1;
    if (!step || last < 0) return;
    event.preventDefault();
    // By its time: while somebody looks at one, turns come at the end and fall out at the beginning.
    const found = turnsShown.findIndex((turn) => chosen && turn.at === chosen.at && turn.stage === chosen.stage);
    const at = chosen ? Math.max(0, Math.min(last, found + step)) : step === -Infinity ? 0 : last;
    chosen = turnsShown[at];
    show(chosen);
    canvas.setAttribute("aria-valuenow", at + 1);
    canvas.setAttribute("aria-valuetext", told(chosen));
  });
}

// --- the pool: slots by tenant, and when something was changed

const MARKED = new Set(["slots", "nodes", "plan", "policy", "target", "state"]);

export function drawPool(canvas, legend, store, span) {
  const sheet = paper(canvas);
  if (!sheet) return;
  const colour = colours(), { pen, width, height } = sheet, left = 46, foot = 17, end = store.at, begin = end - span;
  const uses = store.uses.filter((use) => use[0] >= begin - 5);
  const names = Object.keys(store.state.tenants ?? {});
  const top = 1.1 * Math.max(1, ...uses.map((use) => Math.max(use[1], Object.values(use[2]).reduce((a, b) => a + b, 0))));
  const x = (time) => left + ((time - begin) / span) * (width - left), y = (value) => height - foot - (value / top) * (height - foot - 8);
  timeAxis(sheet, left, begin, end, colour);
  pen.textAlign = "right";
  pen.fillStyle = colour.dim;
  const slots = store.state.engine?.slots ?? 1;
  for (const value of [0, slots]) pen.fillText(value === slots ? `${slots} slots` : "0", left - 6, y(value) + 4);
  const below = uses.map(() => 0);
  for (const name of names) {
    pen.fillStyle = hue(name, "tenant");
    pen.globalAlpha = 0.85;
    pen.beginPath();
    uses.forEach((use, at) => pen.lineTo(x(use[0]), y(below[at])));
    for (let at = uses.length - 1; at >= 0; at--) { below[at] += uses[at][2][name] ?? 0; pen.lineTo(x(uses[at][0]), y(below[at])); }
    pen.fill();
    pen.globalAlpha = 1;
  }
  stairs(pen, uses, x, (use) => y(use[1]), colour.text);
  const nodes = uses.some((use) => use[3] != null);
  if (nodes) stairs(pen, uses, x, (use) => y(use[3] ?? 0), colour.link);
  pen.fillStyle = colour.text;
  for (const [at, kind] of store.changes) if (at >= begin && MARKED.has(kind)) { pen.beginPath(); pen.moveTo(x(at), 2); pen.lineTo(x(at) - 4, -5 + 14); pen.lineTo(x(at) + 4, 9); pen.fill(); }
  const key = [nodes, ...names].join();
  if (legend.dataset.names !== key) {
    legend.dataset.names = key;
    legend.replaceChildren(make("span", { class: "line slots" }, "slots"), ...(nodes ? [make("span", { class: "line nodes" }, "nodes")] : []), ...names.map((name) => { const mark = make("span", { class: "key" }, name); mark.style.setProperty("--none", hue(name, "tenant")); return mark; }), make("span", {}, "▴ a change"));
  }
  const last = uses.at(-1);
  const busy = last ? Object.values(last[2]).reduce((a, b) => a + b, 0) : 0;
  canvas.setAttribute("aria-label", `${busy.toFixed(1)} of ${slots} slots busy in the last minute${last?.[3] == null ? "" : ` on ${last[3]} nodes`}: ${names.map((name) => `${name} ${(last?.[2][name] ?? 0).toFixed(1)}`).join(", ")}`);
}

// A number that stays until it changes.
function stairs(pen, uses, x, y, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  uses.forEach((use, at) => { if (at) pen.lineTo(x(use[0]), y(uses[at - 1])); pen.lineTo(x(use[0]), y(use)); });
  pen.stroke();
}
