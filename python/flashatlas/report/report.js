"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  // ---- charts ---------------------------------------------------------------------------------------------------
  const look = () => {
    const [text, quiet, line] = dark() ? ["#e4e8ed", "#a3adb9", "#363d47"] : ["#1b2026", "#56606b", "#d8dde3"];
    const font = "system-ui, sans-serif";
    return {
      background: null, font,
      view: { stroke: null },
      axis: { labelColor: quiet, titleColor: quiet, titleFontWeight: "normal", gridColor: line, domainColor: line,
        tickColor: line, labelFontSize: 12, titleFontSize: 12 },
      legend: { labelColor: text, labelFontSize: 12, symbolStrokeWidth: 2.5 },
      bar: { stroke: dark() ? "#14171c" : "#ffffff" },
    };
  };
  // on a narrow page legends go one below the other
  const fitted = (spec, width) =>
    width > 480 ? spec : JSON.parse(JSON.stringify(spec), (key, value) => (key === "columns" ? 1 : value));
  let views = [];
  const draw = () => {
    views.forEach((view) => view.finalize());
    views = [];
    return Promise.all(content.charts.map(async ({ id, spec }) => {
      const place = byId(`chart-${id}`);
      // expressions are interpreted, not compiled: the page's policy forbids code that is made up on the way
      const options = { actions: false, renderer: "svg", ast: true, config: look(), tooltip: { theme: "custom" } };
      views.push(await window.vegaEmbed(place, fitted(spec, place.clientWidth), options));
      // the place itself says what the chart shows
      place.querySelectorAll("svg").forEach((svg) => svg.setAttribute("aria-hidden", "true"));
    })).then(() => { root.dataset.drawn = content.charts.length; });
  };
  const themeButton = byId("theme");
  const nameTheme = () => { themeButton.textContent = dark() ? "Light" : "Dark"; };
  themeButton.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    nameTheme();
    draw();
    paint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { nameTheme(); draw(); paint(); });
  byId("copy")?.addEventListener("click", async () => {
    const text = byId("command").textContent;
    try {
      await navigator.clipboard.writeText(text);
      byId("copy").textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(byId("command"));
      byId("copy").textContent = "Selected";
    }
  });

  // ---- block explorer -------------------------------------------------------------------------------------------
  const explorer = { run: null, frame: 0, cell: -1, by: "valid", timer: 0 };

  const unpack = async (packed) => {
    const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const flat = new Uint8Array(await new Response(stream).arrayBuffer());
    const { cells, frames } = packed;
    // three planes, each a first frame and differences from then on
    for (let plane = 0; plane < 3; plane++) {
      for (let frame = 1; frame < frames; frame++) {
        const at = (plane * frames + frame) * cells;
        for (let i = 0; i < cells; i++) flat[at + i] = (flat[at + i] + flat[at - cells + i]) & 255;
      }
    }
    const plane = (p, frame) => flat.subarray((p * frames + frame) * cells, (p * frames + frame + 1) * cells);
    const first = [];
    packed.blocks.reduce((sum, n) => (first.push(sum), sum + n), 0);
    return { ...packed, first, valid: (f) => plane(0, f), worn: (f) => plane(1, f), role: (f) => plane(2, f) };
  };

  const hex = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  // from light to dark in even steps of lightness, readable without colour
  const ramps = { valid: ["#fff7bc", "#41b6c4", "#0c2c84"], erases: ["#fff5eb", "#fd8d3c", "#7f2704"] };
  const mix = (stops, share) => {
    const at = Math.min(share, 0.9999) * (stops.length - 1);
    const [a, b] = [hex(stops[Math.floor(at)]), hex(stops[Math.floor(at) + 1])];
    return a.map((v, i) => Math.round(v + (b[i] - v) * (at % 1)));
  };
  const clock = (run, frame) => {
    const t = run.times[frame];
    if (!run.timed) return `request ${t.toLocaleString("en")}`;
    const [unit, size] = t >= 1e9 ? ["s", 1e9] : t >= 1e6 ? ["ms", 1e6] : ["µs", 1e3];
    return `${(t / size).toLocaleString("en", { maximumSignificantDigits: 4 })} ${unit}`;
  };
  const canvas = byId("x-blocks");
  const columnsOf = (run) => Math.max(Math.ceil(Math.sqrt(run.cells * 3)), 8);

  const paint = () => {
    const { run, frame, by } = explorer;
    if (!run) return;
    const columns = columnsOf(run);
    const rows = Math.ceil(run.cells / columns);
    const px = Math.max(Math.floor(1400 / columns), 3);
    [canvas.width, canvas.height] = [columns * px, rows * px];
    const paper = canvas.getContext("2d");
    const [valid, worn, role] = [run.valid(frame), run.worn(frame), run.role(frame)];
    const free = run.roles.indexOf("free");
    const bad = run.roles.indexOf("bad");
    for (let i = 0; i < run.cells; i++) {
      let colour;
      if (by === "role") colour = content.roles[run.roles[role[i]]] ?? "#999999";
      else if (role[i] === bad) colour = content.roles.bad;
      else if (by === "valid" && role[i] === free) colour = content.roles.free;
      else colour = `rgb(${mix(ramps[by], (by === "valid" ? valid : worn)[i] / 250).join()})`;
      paper.fillStyle = colour;
      const gap = px > 5 ? 1 : 0;
      paper.fillRect((i % columns) * px, Math.floor(i / columns) * px, px - gap, px - gap);
    }
    if (explorer.cell >= 0) {
      paper.lineWidth = Math.max(px / 6, 2);
      paper.strokeStyle = dark() ? "#ffffff" : "#000000";
      paper.strokeRect((explorer.cell % columns) * px, Math.floor(explorer.cell / columns) * px, px - 1, px - 1);
    }
    byId("x-at").textContent = clock(run, frame);
    byId("x-time").setAttribute("aria-valuetext", clock(run, frame));
    say();
    legend();
  };
  const say = () => {
    const { run, frame, cell } = explorer;
    const role = run.role(frame);
    const counts = run.roles.map(() => 0);
    let sum = 0;
    for (let i = 0; i < run.cells; i++) {
      counts[role[i]] += run.blocks[i];
      sum += (run.valid(frame)[i] / 250) * run.blocks[i];
    }
    const total = run.blocks.reduce((a, b) => a + b, 0);
    const parts = run.roles.map((name, i) => [name, counts[i]]).filter(([, n]) => n > 0);
    byId("x-sum").textContent = `${clock(run, frame)}: ${parts.map(([name, n]) => `${n.toLocaleString("en")} ${name}`).join(", ")}; ` +
      `${((100 * sum) / total).toFixed(1)} % of all slots valid.`;
    if (cell < 0) {
      byId("x-cell").textContent = "No block chosen.";
      return;
    }
    const [from, n] = [run.first[cell], run.blocks[cell]];
    const name = n === 1 ? `Block ${from}` : `Blocks ${from} to ${from + n - 1}`;
    byId("x-cell").textContent = `${name}: ${run.roles[role[cell]]}, ${(run.valid(frame)[cell] / 2.5).toFixed(1)} % valid, ` +
      `${((run.worn(frame)[cell] / 250) * run.erases).toFixed(1)} erases.`;
  };
  const legend = () => {
    const { run, by } = explorer;
    const place = byId("x-legend");
    place.replaceChildren();
    const add = (tag, text, style) => {
      const item = place.appendChild(document.createElement(tag));
      item.textContent = text;
      Object.assign(item.style, style);
      return item;
    };
    if (by !== "role") {
      add("span", by === "valid" ? "nothing valid" : "no erase");
      const ramp = add("span", "", { background: `linear-gradient(to right, ${ramps[by].join()})` });
      ramp.className = "ramp";
      add("span", by === "valid" ? "all valid" : `${run.erases.toFixed(0)} erases`);
    }
    const shown = by === "role" ? run.roles : run.roles.filter((r) => r === "bad" || (r === "free" && by === "valid"));
    for (const name of shown) {
      const item = add("span", name);
      const swatch = document.createElement("i");
      swatch.style.background = content.roles[name] ?? "#999999";
      item.prepend(swatch);
    }
  };
  const choose = async (index) => {
    const packed = content.explorer[index];
    try {
      explorer.run = await unpack(packed);
    } catch (error) {
      byId("x-failed").hidden = false;
      throw error;
    }
    // the end of the run is what one wants to see first
    explorer.frame = packed.frames - 1;
    explorer.cell = Math.min(explorer.cell, packed.cells - 1);
    const slider = byId("x-time");
    slider.max = packed.frames - 1;
    slider.value = explorer.frame;
    paint();
    root.dataset.explorer = index;
  };
  const move = (frame) => {
    explorer.frame = Math.max(0, Math.min(frame, explorer.run.frames - 1));
    byId("x-time").value = explorer.frame;
    paint();
  };
  const play = (on) => {
    clearInterval(explorer.timer);
    const button = byId("x-play");
    button.textContent = on ? "Pause" : "Play";
    button.setAttribute("aria-pressed", on);
    if (!on) return;
    if (explorer.frame === explorer.run.frames - 1) move(0);
    explorer.timer = setInterval(() => {
      if (explorer.frame >= explorer.run.frames - 1) play(false);
      else move(explorer.frame + 1);
    }, 200);
  };
  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const columns = columnsOf(explorer.run);
    const size = box.width / columns;
    const cell = Math.floor((event.clientY - box.top) / size) * columns + Math.floor((event.clientX - box.left) / size);
    return cell >= 0 && cell < explorer.run.cells ? cell : -1;
  };
  const startExplorer = () => {
    byId("x-run").addEventListener("change", (e) => { play(false); choose(Number(e.target.value)); });
    byId("x-time").addEventListener("input", (e) => { play(false); move(Number(e.target.value)); });
    byId("x-play").addEventListener("click", () => play(byId("x-play").getAttribute("aria-pressed") !== "true"));
    document.querySelectorAll("input[name=x-by]").forEach((radio) =>
      radio.addEventListener("change", () => { explorer.by = radio.value; paint(); }));
    canvas.addEventListener("pointermove", (e) => { explorer.cell = cellAt(e); paint(); });
    canvas.addEventListener("keydown", (e) => {
      const columns = columnsOf(explorer.run);
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[e.key];
      if (step === undefined) return;
      e.preventDefault();
      explorer.cell = Math.max(0, Math.min(explorer.cell < 0 ? 0 : explorer.cell + step, explorer.run.cells - 1));
      paint();
    });
    return choose(0);
  };

  nameTheme();
  const drawn = content.charts.length ? draw() : Promise.resolve();
  const explored = content.explorer.length ? startExplorer() : Promise.resolve();
  Promise.all([drawn, explored]).then(() => { root.dataset.ready = "yes"; });
})();
