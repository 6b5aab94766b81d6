// The graph of each pipeline: stages from left to right, colours by latency against target.

import { make, rows, seconds, share, sinkStatus, stageStatus, STATUS_WORDS } from "./words.js";

const STAGE = { width: 176, height: 66 };
const END = { width: 132, height: 50 };
const STEP = { x: 262, y: 86 };
const SURE_SECONDS = 6;
const drawn = new Map();

export function drawGraphs(box, store, actions) {
  const { pipelines = {}, stages = {}, sinks = {}, alerts = {} } = store.state;
  for (const [name, made] of drawn) if (!pipelines[name]) { made.card.remove(); drawn.delete(name); }
  for (const pipeline of Object.values(pipelines)) {
    const shape = JSON.stringify(pipeline.edges);
    let made = drawn.get(pipeline.name);
    if (!made || made.shape !== shape) {
      const fresh = build(pipeline, actions);
      made ? made.card.replaceWith(fresh.card) : box.append(fresh.card);
      drawn.set(pipeline.name, (made = { ...fresh, shape }));
    }
    update(made, pipeline, stages, sinks, alerts);
  }
}

function build(pipeline, actions) {
  const places = layout(pipeline.edges);
  const width = 24 + Math.max(...Object.values(places).map((p) => p.x + p.width));
  const height = 16 + Math.max(...Object.values(places).map((p) => p.y + p.height));
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Stages of ${pipeline.name}` });
  const lines = pipeline.edges.map((edge) => line(svg, edge, places));
  const nodes = Object.entries(places).map(([id, place]) => node(svg, pipeline.name, id, place, actions));
  svg.addEventListener("keydown", (event) => moveFocus(event, nodes, actions));
  const head = {
    title: make("h3", {}, pipeline.name), badge: make("span", { class: "badge" }),
    figures: make("span", { class: "fig" }), button: make("button", { type: "button" }),
  };
  const error = make("p", { class: "error", hidden: true });
  twice(head.button, pipeline.name, actions.say, () => actions.toggle(pipeline.name, head.badge.textContent));
  const card = make("article", { class: "card", "aria-label": `Pipeline ${pipeline.name}` },
    make("div", { class: "head" }, head.title, head.badge, head.figures, head.button), error, make("div", { class: "scroll" }, svg));
  return { card, head, error, nodes, lines };
}

function word(button, text, pipeline) {
  if (button.textContent !== text) button.textContent = text;
  button.setAttribute("aria-label", `${text} pipeline ${pipeline}`);
}

// A button that stops something asks once more, aloud too.
function twice(button, pipeline, say, act) {
  let sure = 0;
  button.addEventListener("click", () => {
    if (button.textContent !== "Pause" && !button.classList.contains("sure")) return act();
    if (!button.classList.contains("sure")) {
      button.classList.add("sure");
      word(button, "Pause: sure?", pipeline);
      say(`Pause ${pipeline}? Press again within ${SURE_SECONDS} seconds to pause it`);
      sure = setTimeout(() => { button.classList.remove("sure"); word(button, "Pause", pipeline); say(`${pipeline} was not paused`); }, 1000 * SURE_SECONDS);
      return;
    }
    clearTimeout(sure);
    button.classList.remove("sure");
    act();
  });
}

function layout(edges) {
  const ids = [...new Set(edges.flatMap(([from, to]) => [from, to]))];
  const forward = edges.filter((edge) => !edge[3]);
  const layer = Object.fromEntries(ids.map((id) => [id, 0]));
  for (let round = 0; round < ids.length; round++) {
    let moved = false;
    for (const [from, to] of forward) if (layer[to] < layer[from] + 1) { layer[to] = layer[from] + 1; moved = true; }
    if (!moved) break;
  }
  const columns = [];
  for (const id of ids) (columns[layer[id]] ??= []).push(id);
  const row = {};
  columns.forEach((column, at) => {
    const wanted = (id) => {
      const above = forward.filter(([, to]) => to === id).map(([from]) => row[from] ?? 0);
      return above.length ? above.reduce((sum, each) => sum + each, 0) / above.length : column.indexOf(id);
    };
    let next = 0;
    for (const [id, place] of column.map((id) => [id, at ? wanted(id) : column.indexOf(id)]).sort((a, b) => a[1] - b[1])) {
      row[id] = Math.max(next, at ? Math.floor(place) : place);
      next = row[id] + 1;
    }
  });
  return Object.fromEntries(ids.map((id) => {
    const end = id.startsWith("source:") || id.startsWith("sink:");
    const size = end ? END : STAGE;
    const column = layer[id];
    const begin = 8 + (column ? END.width + 86 + (column - 1) * STEP.x : 0);
    return [id, { x: begin, y: 10 + row[id] * STEP.y + (STAGE.height - size.height) / 2, ...size, end, column, row: row[id] }];
  }));
}

function line(svg, [from, to, queue, back], places) {
  const a = places[from], b = places[to];
  const start = { x: a.x + a.width, y: a.y + a.height / 2 }, stop = { x: b.x, y: b.y + b.height / 2 };
  const bend = Math.max(40, (stop.x - start.x) / 2);
  const path = back
    ? `M${start.x - 20} ${a.y + a.height} C${start.x - 20} ${a.y + a.height + 46} ${stop.x + 20} ${b.y + b.height + 46} ${stop.x + 20} ${b.y + b.height}`
    : `M${start.x} ${start.y} C${start.x + bend} ${start.y} ${stop.x - bend} ${stop.y} ${stop.x} ${stop.y}`;
  const drawnLine = make("path", { class: back ? "edge back" : "edge", d: path });
  const label = make("text", { class: "wait", x: stop.x - 10, y: stop.y - 9, "text-anchor": "end", "aria-hidden": "true" });
  svg.append(drawnLine, label);
  return { from, to, queue, back, line: drawnLine, label };
}

function node(svg, pipeline, id, place, actions) {
  const name = id.replace(/^(source|sink):/, "");
  const kind = id.startsWith("source:") ? "source" : id.startsWith("sink:") ? "sink" : "stage";
  const group = make("g", { class: `node ${kind} ${place.end ? "end" : ""}`, transform: `translate(${place.x} ${place.y})` });
  const { width, height } = place;
  group.append(make("rect", { class: "box", width, height, rx: place.end ? height / 2 : 9 }));
  const shown = kind === "stage" ? name.slice(pipeline.length + 1) : name;
  const parts = { group, kind, id, name, place };
  if (kind === "stage") {
    group.append(make("rect", { class: "edge-colour", width: 6, height, rx: 3 }));
    group.append(make("text", { class: "name", x: 16, y: 21 }, cutOff(shown, 19)), make("circle", { class: "dot", cx: width - 14, cy: 16, r: 5 }));
    parts.what = make("text", { class: "dim", x: 16, y: 38 });
    parts.fill = make("rect", { class: "fill", x: 16, y: 49, height: 6, rx: 3, width: 0 });
    parts.busy = make("text", { class: "dim value", x: width - 12, y: 56, "text-anchor": "end" });
    group.append(parts.what, make("rect", { class: "track", x: 16, y: 49, height: 6, rx: 3, width: width - 66 }), parts.fill, parts.busy);
    group.setAttribute("role", "button");
    group.setAttribute("tabindex", "0");
    group.addEventListener("click", () => actions.story(id, group));
  } else {
    group.append(make("text", { class: "name", x: width / 2, y: kind === "sink" ? 21 : 30, "text-anchor": "middle" }, cutOff(shown, 16)));
    parts.value = make("text", { class: "dim value", x: width / 2, y: 38, "text-anchor": "middle" });
    if (kind === "sink") group.append(parts.value);
  }
  group.append((parts.title = make("title")));
  svg.append(group);
  return parts;
}

const cutOff = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

function update({ head, error, nodes, lines }, pipeline, stages, sinks, alerts) {
  head.badge.textContent = pipeline.state;
  head.badge.className = `badge ${pipeline.state}`;
  const rate = pipeline.input_rows_per_second == null ? "" : ` · ${rows(pipeline.input_rows_per_second)} rows/s come`;
  const most = pipeline.highest_rows_per_second == null ? "" : `, ${rows(pipeline.highest_rows_per_second)} could be taken`;
  const even = pipeline.weight_cv == null ? "" : ` · CV of busy ${(pipeline.utilisation_cv ?? 0).toFixed(2)}, of w·r/q ${pipeline.weight_cv.toFixed(2)}`;
  head.figures.textContent = `tenant ${pipeline.tenant}${rate}${most}${even}`;
  if (!head.button.classList.contains("sure")) word(head.button, pipeline.state === "running" ? "Pause" : "Resume", pipeline.name);
  error.hidden = !pipeline.error;
  error.textContent = pipeline.error;
  for (const each of nodes) {
    if (each.kind === "stage" && stages[each.id]) updateStage(each, stages[each.id], Boolean(alerts[`stuck ${each.id}`]));
    if (each.kind === "sink" && sinks[`${pipeline.name}.${each.name}`]) updateSink(each, sinks[`${pipeline.name}.${each.name}`]);
  }
  for (const each of lines) updateLine(each, stages, lines);
}

function updateStage(node, stage, stuck) {
  const status = stageStatus(stage, stuck);
  const stay = stage.queue_seconds + stage.schedule_seconds + stage.compute_seconds;
  setClass(node.group, `node stage ${status}${stage.turn_since == null ? "" : " runs"}`);
  node.what.textContent = stay ? `row stays ${seconds(stay)}` : "no rows yet";
  node.fill.setAttribute("width", Math.max(0, Math.min(1, stage.utilisation)) * (node.place.width - 66));
  node.busy.textContent = share(Math.round(stage.utilisation * 100) / 100);
  const told = `${stage.name}: ${stuck ? "stuck" : STATUS_WORDS[status]}; ${rows(stage.rows_waiting)} rows wait; busy ${share(stage.utilisation)}; a row stays ${seconds(stay) || "0"}${balance(stage)}`;
  if (node.group.getAttribute("aria-label") !== told) { node.group.setAttribute("aria-label", told); node.title.textContent = told; }
}

/* EdgeWise's terms, relative to the pipeline's first stages: w slots, q rows come, r are served by a slot. */
const balance = (stage) => stage.balance == null ? "" : `; w ${stage.slots_busy.toFixed(2)}, q ${stage.relative_input.toFixed(2)}, r ${stage.relative_service.toFixed(2)}, w·r/q ${stage.balance.toFixed(2)}`;

function updateSink(node, sink) {
  setClass(node.group, `node sink end ${sinkStatus(sink)}`);
  node.value.textContent = !sink.results_minute ? "nothing came" : `p99 ${seconds(sink.p99)}${sink.target_seconds == null ? "" : ` · ${share(sink.in_time)}`}`;
  node.title.textContent = `${sink.name}: ${sink.guarantee}${sink.target_seconds == null ? ", no target" : `, target ${seconds(sink.target_seconds)}`}`;
}

function updateLine({ to, from, line, label }, stages, lines) {
  const stage = stages[to];
  const first = lines.find((each) => each.to === to)?.from === from;
  const waiting = stage && first ? stage.rows_waiting : 0;
  label.textContent = stage && first ? rows(waiting) : "";
  setClass(label, waiting ? "wait some" : "wait");
  const full = stages[from] && !stages[from].has_room;
  line.classList.toggle("full", Boolean(full));
}

function setClass(element, value) {
  if (element.getAttribute("class") !== value) element.setAttribute("class", value);
}

function moveFocus(event, nodes, actions) {
  const at = nodes.find((each) => each.group === event.target);
  if (!at) return;
  if (event.key === "Enter" || event.key === " ") { event.preventDefault(); return actions.story(at.id, at.group); }
  const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  if (!by) return;
  event.preventDefault();
  const apart = (each) => {
    const x = (each.place.column - at.place.column) * by[0], y = (each.place.row - at.place.row) * by[1];
    if (by[0] ? x <= 0 : y <= 0) return Infinity;
    return by[0] ? x * 10 + Math.abs(each.place.row - at.place.row) : y * 10 + Math.abs(each.place.column - at.place.column);
  };
  const next = nodes.filter((each) => each.kind === "stage" && each !== at && apart(each) < Infinity).sort((a, b) => apart(a) - apart(b))[0];
  next?.group.focus();
}
