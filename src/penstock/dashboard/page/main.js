// Puts the page together: one store of what the engine tells, drawn anew when it changes.

import { drawGraphs } from "./graph.js";
import { change, live } from "./live.js";
import { drawAlerts, drawChanges, drawFacts, drawStages, drawTenants, openStory } from "./panels.js";
import { drawLatency, drawPool, drawTurns, explainTurns } from "./timelines.js";

const $ = (id) => document.getElementById(id);

function say(text) {
  $("said").textContent = text;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => ($("said").textContent = ""), 6000);
}

const actions = {
  say,
  story: (name, from) => openStory($("story"), store, name, from),
  async toggle(pipeline, state) {
    try {
      await change(state === "running" ? "pause" : "resume", { pipeline });
      say(`${pipeline} ${state === "running" ? "gets no more turns; its queues fill" : "goes on"}`);
    } catch (error) { say(error.message); }
  },
};

let due = false;
function draw() {
  due = false;
  if (!store.at) return;
  // Of an engine that is younger than that, what there is.
  const span = Math.min(Number($("span").value), Math.max(60, store.at - store.state.engine.started_at));
  drawFacts($("facts"), store);
  drawAlerts($("alerts"), store);
  drawGraphs($("graphs"), store, actions);
  drawLatency($("latency"), store, span, say);
  drawTurns($("turns"), $("turn-legend"), store, span);
  drawPool($("pool"), $("pool-legend"), store, span);
  drawChanges($("changes"), store);
  drawTenants($("tenants"), store);
  drawStages($("stage-table"), store, actions.story);
  document.body.dataset.drawn = store.at;
}
function drawSoon() {
  if (!due) { due = true; requestAnimationFrame(draw); }
}

function link(status, text) {
  $("link").dataset.status = status;
  if ($("link").textContent !== text) $("link").textContent = text;
}

// --- light and dark: as the system has it, until somebody chooses

const wants = matchMedia("(prefers-color-scheme: dark)");
const chosen = () => { try { return localStorage.getItem("penstock-theme"); } catch { return null; } };
function theme() {
  document.documentElement.dataset.theme = chosen() ?? (wants.matches ? "dark" : "light");
  drawSoon();
}
function switchTheme() {
  try { localStorage.setItem("penstock-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark"); } catch { /* a private window */ }
  theme();
}

const store = live(drawSoon, link);
wants.addEventListener("change", theme);
theme();
$("theme").addEventListener("click", switchTheme);
$("span").addEventListener("change", drawSoon);
$("help").addEventListener("click", () => $("keys").showModal());
explainTurns($("turns"), $("turn-tip"));
addEventListener("resize", drawSoon);
for (const dialog of document.querySelectorAll("dialog")) dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });

const PLACES = { g: "h-graph", l: "h-latency", s: "h-stages" };
addEventListener("keydown", (event) => {
  if (event.target.matches?.("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "?") $("keys").showModal();
  else if (event.key === "d") switchTheme();
  else if (PLACES[event.key]) {
    const section = $(PLACES[event.key]).closest("section");
    section.scrollIntoView({ behavior: "smooth" });
    section.querySelector("[tabindex='0'], button")?.focus({ preventScroll: true });
  }
});
