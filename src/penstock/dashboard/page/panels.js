// Alerts, changes, tenants, the table of stages, and the story of one of them.

import { ask } from "./live.js";
import { ago, clock, make, rows, seconds, share, stageStatus, STATUS_WORDS } from "./words.js";

const KINDS = { target: "Target missed", failed: "Pipeline failed", stuck: "Stuck", slow: "Slow", away: "Broker away", budget: "Privacy budget", disk: "Disk" };

export function drawFacts(box, store) {
  const { engine = {}, stages = {}, sinks = {}, pipelines = {} } = store.state;
  const busy = Object.values(stages).reduce((sum, stage) => sum + stage.slots_busy, 0);
  const aimed = Object.values(sinks).filter((sink) => sink.target_seconds != null && sink.results_minute);
  const kept = aimed.filter((sink) => sink.in_time >= 0.95).length;
  const waiting = Object.values(stages).reduce((sum, stage) => sum + stage.rows_waiting, 0);
  const facts = {
    "targets met": aimed.length ? `${kept} of ${aimed.length}` : "none yet",
    "slots busy": `${busy.toFixed(1)} of ${engine.slots ?? "?"}${engine.nodes == null ? "" : ` on ${engine.nodes} nodes`}`,
    "rows waiting": rows(waiting),
    pipelines: Object.keys(pipelines).length,
    policy: (engine.policy ?? "").replace(/\(.*/, ""),
    up: ago(store.at - engine.started_at),
  };
  box.replaceChildren(...Object.entries(facts).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, `${value}`))));
}

let alertsShown = null;
export function drawAlerts(box, store) {
  const order = { critical: 0, warning: 1 };
  const alerts = Object.values(store.state.alerts ?? {}).sort((a, b) => order[a.severity] - order[b.severity] || a.since - b.since);
  // Only what is new is read aloud: nothing is drawn anew while nothing changed.
  const key = JSON.stringify([store.at ? 1 : 0, alerts.map((alert) => [alert.kind, alert.subject, alert.severity])]);
  if (key !== alertsShown) {
    alertsShown = key;
    box.replaceChildren(...(alerts.length ? alerts.map(alertLine) : [calm(store)]));
  }
  alerts.forEach((alert, at) => {
    box.children[at].querySelector(".what").textContent = alert.reason;
    box.children[at].querySelector(".since").textContent = `for ${ago(store.at - alert.since)}`;
  });
  document.title = alerts.length ? `(${alerts.length}) Penstock` : "Penstock";
}

const alertLine = (alert) =>
  make("div", { class: `alert ${alert.severity}` }, make("b", {}, `${alert.severity === "critical" ? "✕" : "!"} ${KINDS[alert.kind]}: ${alert.subject}`),
    make("span", { class: "what" }), make("span", { class: "since", "aria-hidden": "true" }));

const calm = (store) => make("div", { class: "alert calm" }, make("b", {}, store.at ? "✓ All is well" : "…"), make("span", { class: "what" }, store.at ? "targets are met, stages move, brokers are there, disks have room" : "waiting for the engine"), make("span", { class: "since" }));

let changesShown = "";
export function drawChanges(box, store) {
  const newest = store.changes.slice(-60).reverse();
  const key = `${newest.length} ${newest[0]?.[0]}`;
  if (key === changesShown) return;
  changesShown = key;
  box.replaceChildren(...(newest.length ? newest.map(([at, kind, subject, became, reason]) =>
    make("li", {}, make("time", {}, clock(at)), make("span", { class: "badge" }, kind), make("span", {}, `${subject}: ${became}`), reason ? make("span", { class: "why" }, reason) : null))
    : [make("li", {}, make("span", { class: "note" }, "nothing was changed"))]));
}

function bar(value, text) {
  const fill = make("i");
  fill.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
  return [make("meter-bar", { "aria-hidden": "true" }, fill), text];
}

const cell = (text, status = "") => make("td", { class: status }, ...(Array.isArray(text) ? text : [text]));

export function drawTenants(table, store) {
  const slots = store.state.engine?.slots ?? 1;
  fill(table, ["tenant", "least target", "in time", "results", "slots busy"], Object.values(store.state.tenants ?? {}).map((tenant) => {
    const known = tenant.target_seconds != null && tenant.results_minute > 0;
    const status = !known ? "" : tenant.in_time >= 0.95 ? "ok" : tenant.in_time >= 0.5 ? "warn" : "bad";
    return [make("th", { scope: "row" }, tenant.name), cell(seconds(tenant.target_seconds) || "none"), cell(known ? bar(tenant.in_time, share(tenant.in_time)) : "", status),
      cell(rows(tenant.results_minute)), cell(bar(tenant.slots_busy / slots, tenant.slots_busy.toFixed(2)))];
  }));
}

const COLUMNS = ["stage", "rows waiting", "come/s", "taken/s", "busy", "T_Q", "T_S", "T_C", "target", "turns", "dead", "state"];

export function drawStages(table, store, openStory) {
  const alerts = store.state.alerts ?? {};
  // While somebody is in the table with the keyboard, it keeps its buttons.
  const focused = document.activeElement?.dataset?.stage;
  fill(table, COLUMNS, Object.values(store.state.stages ?? {}).map((stage) => {
    const stuck = Boolean(alerts[`stuck ${stage.name}`]);
    const status = stageStatus(stage, stuck);
    const button = make("button", { type: "button", "data-stage": stage.name, onclick: (event) => openStory(stage.name, event.currentTarget) }, stage.name);
    return [make("th", { scope: "row" }, button), cell(rows(stage.rows_waiting)), cell(rows(stage.arrival_rows_per_second)), cell(rows(stage.service_rows_per_second)),
      cell(bar(stage.utilisation, share(Math.round(stage.utilisation * 100) / 100))), cell(seconds(stage.queue_seconds)), cell(seconds(stage.schedule_seconds)), cell(seconds(stage.compute_seconds)),
      cell(seconds(stage.target_seconds) || "none"), cell(rows(stage.turns)), cell(rows(stage.dead_rows + stage.late_rows)), cell(stuck ? "✕ stuck" : !stage.has_room ? "no room behind" : status === "none" ? "–" : STATUS_WORDS[status], status)];
  }));
  if (focused) table.querySelector(`[data-stage="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

function fill(table, columns, lines) {
  if (!table.tHead) table.append(make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)))), make("tbody"));
  table.tBodies[0].replaceChildren(...lines.map((cells) => make("tr", {}, ...cells)));
}

// --- the story of one stage

export async function openStory(dialog, store, name, from) {
  const stage = store.state.stages[name];
  if (!stage) return;
  const box = make("div", {}, make("p", { class: "note" }, "asking the engine"));
  const close = make("button", { class: "close", type: "button", "aria-label": "Close", onclick: () => dialog.close() }, "✕");
  dialog.replaceChildren(close, make("h2", { id: "story-title" }, name), box);
  dialog.onclose = () => from?.focus?.();
  dialog.showModal();
  close.focus();
  try {
    box.replaceChildren(...told(stage, await ask(`api/stage?name=${encodeURIComponent(name)}`)));
  } catch (error) { box.replaceChildren(make("p", { class: "error" }, error.message)); }
}

function told(stage, story) {
  const figures = {
    "rows waiting": rows(stage.rows_waiting), "come, rows/s": rows(stage.arrival_rows_per_second), "taken, rows/s": rows(stage.service_rows_per_second),
    utilisation: share(stage.utilisation), "slots busy": stage.slots_busy.toFixed(2), "slots a turn": stage.slots, target: seconds(stage.target_seconds) || "none",
    turns: rows(stage.turns), "rows in": rows(stage.rows_in), "rows out": rows(stage.rows_out), "dead letters": rows(stage.dead_rows), "late rows": rows(stage.late_rows), kind: stage.kind,
  };
  return [
    make("p", {}, `${stage.operators.join(" › ") || "source only"}, pipeline ${stage.pipeline}`),
    make("h3", {}, "What held it back in the last minute"), make("p", {}, story.held_back), split(stage),
    make("h3", {}, "What its turns cost"), make("p", {}, story.cost),
    make("dl", { class: "figures" }, ...Object.entries(figures).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, `${value}`)))),
    make("h3", {}, "What was decided, newest first"),
    make("ol", { class: "log", tabindex: 0, "aria-label": "Decisions" }, ...story.decisions.map((each) =>
      make("li", {}, make("time", {}, clock(each.at)), make("span", { class: `badge ${each.granted ? "running" : ""}` }, each.granted ? `turn, ${rows(each.rows)} rows` : "waits"), make("span", { class: "why" }, each.reason)))),
  ];
}

function split(stage) {
  const parts = [["q", "in the queue", stage.queue_seconds], ["s", "for a slot", stage.schedule_seconds], ["c", "in the turn", stage.compute_seconds]];
  const whole = parts.reduce((sum, part) => sum + part[2], 0);
  const box = make("div", { class: "split", role: "img", "aria-label": parts.map(([, name, value]) => `${name} ${seconds(value)}`).join(", ") });
  for (const [kind, name, value] of parts) {
    if (!whole || value / whole < 0.01) continue;
    const part = make("span", { class: kind, title: `${name} ${seconds(value)}` }, value / whole > 0.16 ? `${name} ${seconds(value)}` : "");
    part.style.width = `${(value / whole) * 100}%`;
    box.append(part);
  }
  return box;
}
