// How numbers are written, and what counts as well, near and over.

export const rows = (n) =>
  n < 1000 ? `${Math.round(n)}` : n < 1e6 ? `${trim(n / 1e3)}k` : n < 1e9 ? `${trim(n / 1e6)}M` : `${trim(n / 1e9)}G`;
const trim = (x) => x.toFixed(x < 10 ? 1 : 0).replace(/\.0$/, "");

export const seconds = (s) =>
  s == null ? "" : s === 0 ? "0" : s < 0.0095 ? `${(s * 1000).toFixed(1)} ms` : s < 1 ? `${Math.round(s * 1000)} ms`
    : s < 10 ? `${s.toFixed(2).replace(/\.?0+$/, "")} s` : s < 600 ? `${Math.round(s)} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${trim(s / 3600)} h`;

export const share = (x) => (x >= 0.9995 || x < 0.1 || x === Math.round(x * 100) / 100 ? `${Math.round(x * 100)}%` : `${(Math.floor(x * 1000) / 10).toFixed(1)}%`);

export const clock = (at) => new Date(at * 1000).toLocaleTimeString("en-GB");

export const ago = (s) => (s < 90 ? `${Math.max(0, Math.round(s))} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${trim(s / 3600)} h`);

// Of a sink: by the share of the last minute's results that came in time.
export const sinkStatus = (sink) =>
  sink.target_seconds == null || !sink.results_minute ? "none" : sink.in_time >= 0.95 ? "ok" : sink.in_time >= 0.5 ? "warn" : "bad";

// Of a stage: by how long a row stays there, against its target.
export function stageStatus(stage, stuck) {
  if (stuck) return "bad";
  const stay = stage.queue_seconds + stage.schedule_seconds + stage.compute_seconds;
  if (stage.target_seconds == null || !stay) return "none";
  return stay <= stage.target_seconds / 2 ? "ok" : stay <= stage.target_seconds ? "warn" : "bad";
}

export const STATUS_WORDS = { ok: "well within target", warn: "near its target", bad: "over its target", none: "no target or no rows" };

// Told apart by most people, on light and dark; none of them is a colour of good or bad.
const HUES = ["#4c8dff", "#b07ce8", "#2fb3c8", "#e07bb0", "#93a83a", "#c98a4b", "#7f8fa3", "#d9c04a", "#8f6fb0", "#5f9ea0"];
const given = new Map();
export function hue(name, kind = "stage") {
  const names = given.get(kind) ?? given.set(kind, new Map()).get(kind);
  if (!names.has(name)) names.set(name, HUES[names.size % HUES.length]);
  return names.get(name);
}

// An element with attributes and children; text is never read as HTML.
export function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "path", "text", "circle", "title"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value != null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}
