"use strict";
// Asks the server for the state of its drive every second, and draws the changes.
const OPS = { read: "reads", write: "writes", trim: "trims", flush: "flushes" };
const COLOURS = { read: "--run-0", write: "--run-1", trim: "--run-2", flush: "--run-3" };
const KEPT = 120;
const rates = [];
let before = null;
let causes = {};

const byId = (id) => document.getElementById(id);
const colour = (name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
};
const count = (n) => Math.round(n).toLocaleString("en");
const time = (ns) =>
  ns === null ? "–" : ns < 1e6 ? `${(ns / 1e3).toFixed(1)} µs` : `${(ns / 1e6).toFixed(2)} ms`;

function columns(seen, name) {
  const table = seen.tables.find((each) => each.name === name);
  return table ? Object.fromEntries(table.columns.map((c) => [c.name, c.values])) : {};
}

function bins(seen, op) {
  const { op: of = [], latency_ns: edges = [], count: counts = [] } = columns(seen, "latency");
  return new Map(of.flatMap((each, i) => (each === op ? [[edges[i], counts[i]]] : [])));
}

// Returns the latency within which a share of the commands between two moments completed.
function percentile(from, to, op, share) {
  const earlier = bins(from, op);
  const between = [...bins(to, op)].map(([edge, n]) => [edge, n - (earlier.get(edge) ?? 0)]);
  const wanted = share * between.reduce((sum, [, n]) => sum + n, 0);
  let reached = 0;
  for (const [edge, n] of between.sort((a, b) => a[0] - b[0])) {
    reached += n;
    if (wanted > 0 && reached >= wanted) return edge;
  }
  return null;
}

function row(cells) {
  const made = document.createElement("tr");
  made.append(...cells.map((text, i) => {
    const cell = document.createElement(i ? "td" : "th");
    if (!i) cell.scope = "row";
    cell.textContent = text;
    return cell;
  }));
  return made;
}

function key(where, entries) {
  byId(where).replaceChildren(...entries.map(([text, name]) => {
    const entry = document.createElement("span");
    const mark = document.createElement("i");
    mark.style.background = `var(${name})`;
    entry.append(mark, text);
    return entry;
  }));
}

function showCommands(from, to) {
  const seconds = Math.max((to.serving_ns - from.serving_ns) / 1e9, 1e-9);
  const now = {};
  byId("commands").tBodies[0].replaceChildren(...Object.entries(OPS).map(([op, name]) => {
    const host = to.record.host, earlier = from.record.host;
    now[op] = (host[name] - earlier[name]) / seconds;
    const moved = op === "flush" ? 0 : host[`${op}_bytes`] - earlier[`${op}_bytes`];
    return row([op, count(now[op]), (moved / seconds / 1e6).toFixed(1),
      time(percentile(from, to, op, 0.5)), time(percentile(from, to, op, 0.99)),
      count(host[name])]);
  }));
  rates.push(now);
  if (rates.length > KEPT) rates.shift();
}

/** Returns the end of an axis: 1, 2 or 5 times a power of ten, and at least `most`. */
function roundUp(most) {
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((end) => end >= most * (1 - 1e-9));
}

/** The axes of the rates: commands a second upward, seconds ago across; returns where a value stands. */
function axes(canvas, pen, ratio, top) {
  const edge = { left: 56 * ratio, right: 8 * ratio, top: 10 * ratio, bottom: 20 * ratio };
  const x = (ago) => canvas.width - edge.right - (ago / (KEPT - 1)) * (canvas.width - edge.left - edge.right);
  const y = (rate) => canvas.height - edge.bottom - (rate / top) * (canvas.height - edge.top - edge.bottom);
  pen.font = `${11 * ratio}px system-ui, sans-serif`;
  pen.fillStyle = colour("--ink-2");
  pen.strokeStyle = colour("--grid");
  pen.lineWidth = ratio;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const rate of [0, top / 2, top]) {
    pen.beginPath();
    pen.moveTo(edge.left, y(rate));
    pen.lineTo(canvas.width - edge.right, y(rate));
    pen.stroke();
    pen.fillText(count(rate), edge.left - 6 * ratio, y(rate));
  }
  pen.textBaseline = "bottom";
  for (const ago of [0, 30, 60, 90]) {
    pen.textAlign = ago ? "center" : "right";
    pen.fillText(ago ? `${ago} s ago` : "now", x(ago), canvas.height - 2 * ratio);
  }
  return { x, y };
}

function showRates() {
  const canvas = byId("rates"), ratio = devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const pen = canvas.getContext("2d");
  const most = Math.max(1, ...rates.flatMap((now) => Object.values(now)));
  const { x, y } = axes(canvas, pen, ratio, roundUp(most));
  for (const [op, name] of Object.entries(COLOURS)) {
    pen.strokeStyle = colour(name);
    pen.lineWidth = 2 * ratio;
    pen.beginPath();
    rates.forEach((now, i) => pen.lineTo(x(rates.length - 1 - i), y(now[op])));
    pen.stroke();
  }
  key("rates-key", Object.entries(COLOURS));
  byId("rates-key").append(`commands a second, at most ${count(most)}`);
}

function showFlash(seen) {
  const { nand, waf, waf_parts: parts = {}, blocks, wear, merges } = seen.record;
  const words = (of, digits) => Object.entries(of).filter(([, n]) => n > 0)
    .map(([name, n]) => `${causes[name] ?? name} ${digits ? n.toFixed(digits) : count(n)}`)
    .join(", ") || "–";
  const rows = [
    ["write amplification", waf === undefined ? "–" : `${waf.toFixed(3)} (${words(parts, 3)})`],
    ["page reads", words(nand.reads)], ["page programs", words(nand.programs)],
    ["block erases", words(nand.erases)], ["blocks", words(blocks)],
    ["erases of a block", `${wear.min} to ${wear.max}, mean ${wear.mean.toFixed(2)}`],
  ];
  if (merges?.log_blocks) rows.push(["log blocks merged", words(merges.log_blocks)]);
  byId("flash").tBodies[0].replaceChildren(...rows.map(row));
}

function showBlocks(seen) {
  const { role = [], valid = [] } = columns(seen, "blocks");
  const canvas = byId("blocks");
  const across = Math.max(1, Math.ceil(Math.sqrt(role.length * 3)));
  const size = Math.max(2, Math.floor(1200 / across));
  canvas.width = across * size;
  canvas.height = Math.ceil(role.length / across) * size;
  const pen = canvas.getContext("2d");
  const known = new Map();
  role.forEach((name, i) => {
    if (!known.has(name)) known.set(name, colour(`--role-${name}`));
    pen.fillStyle = known.get(name);
    pen.globalAlpha = name === "free" || name === "bad" ? 1 : 0.25 + 0.75 * valid[i];
    pen.fillRect((i % across) * size, Math.floor(i / across) * size, size - 1, size - 1);
  });
  const there = Object.entries(seen.record.blocks).filter(([, n]) => n > 0);
  key("blocks-key", there.map(([name, n]) => [`${name} ${count(n)}`, `--role-${name}`]));
}

async function tick() {
  try {
    const answer = await fetch("/live.json", { cache: "no-store" });
    if (!answer.ok) throw new Error(await answer.text());
    const seen = await answer.json();
    document.title = `${seen.drive}, served`;
    byId("title").textContent = `${seen.drive} ${seen.set.join(" ")}`;
    const doubts = (seen.notes ?? []).map((note) => `${note.text} (${note.advice})`).join(" ");
    byId("notes").hidden = doubts === "";
    if (byId("notes").textContent !== doubts) byId("notes").textContent = doubts;
    byId("state").textContent = `Serving for ${(seen.serving_ns / 1e9).toFixed(0)} s, ` +
      `${(seen.simulated_ns / 1e9).toFixed(1)} s of the drive's own time; ` +
      `${seen.in_flight} commands in flight`;
    if (before === null || seen.serving_ns > before.serving_ns) {
      showCommands(before ?? seen, seen);
      showRates();
      showFlash(seen);
      showBlocks(seen);
      before = seen;
    }
  } catch (error) {
    byId("state").textContent = "The drive is not served any more.";
  }
}

async function begin() {
  causes = await (await fetch("/causes.json")).json();
  await tick();
  setInterval(tick, 1000);
}

begin();
