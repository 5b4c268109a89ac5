// A number over the axes of a study: as lines in small multiples, and as a heat map of two axes.

const COLOURS = space.signs.colours; // number of colours of runs in the style sheet
const DASHES = space.signs.dashes;
const PANELS = 24;
const STEPS = 8; // colours of a ramp

/** A value in a cell: four digits tell cells apart. */
const brief = (number, value) => (value === null ? "–" : (number.format === "ratio" ? formats.count : formats[number.format])(Number(value.toPrecision(4))));

const field = (name, title, kind) => ({ field: name, title, ...(kind ? { type: "quantitative", formatType: kind } : { type: "nominal" }) });

/** The colours of marks. A mark is hollow if one of its runs was not steady. */
const hollowed = (colour) => ({
  fill: { ...colour, condition: { test: "datum.hollow > 0", value: "var(--paper)" } },
  stroke: colour,
  strokeWidth: { value: 1.5 },
});

/** The angle of labels: long labels have no room beside each other, so they are slanted. */
const slope = (words) => (words.join("").length > 70 ? -40 : 0);

function linesOf(number, x, by, panel) {
  const names = [x, by, panel].map((name) => factorNamed.get(name));
  const rows = means(number, names.filter(Boolean));
  const data = { x: [], by: [], panel: [], mean: [], low: [], high: [], bars: [], runs: [], hollow: [] };
  for (const row of rows) {
    const words = [...row.words];
    for (const [i, key] of ["x", "by", "panel"].entries()) data[key].push(names[i] ? words.shift() : "");
    data.mean.push(row.mean);
    data.low.push(row.low ?? row.mean);
    data.high.push(row.high ?? row.mean);
    data.bars.push(row.how);
    data.runs.push(row.runs.length);
    data.hollow.push(row.hollow);
  }
  const levels = (i, key) => (names[i] ? orderOf(names[i]).filter((word) => data[key].includes(word)) : [""]);
  const [, colours, panels] = [levels(0, "x"), levels(1, "by"), levels(2, "panel")];
  const told = (signs) => ({ field: "by", type: "nominal", legend: null, scale: { domain: colours, range: colours.map((_, i) => signs[i % signs.length]) } });
  const colour = told(Array.from({ length: COLOURS }, (_, i) => `var(--run-${i})`));
  const across = { field: "x", type: "ordinal", sort: orderOf(names[0]), axis: { title: x, labelAngle: slope(levels(0, "x")), grid: false } };
  const up = { field: "mean", type: "quantitative", scale: { zero: false, nice: true, domain: [Math.min(...data.low), Math.max(...data.high)] }, axis: { formatType: tickKind(number.format), title: null, tickCount: 4 } }; // all panels have the same scale
  const tooltip = [
    ...(names[1] ? [field("by", by)] : []), field("x", x),
    field("mean", "mean", number.format), field("low", "from", number.format), field("high", "to", number.format),
    field("bars", "bar"), field("runs", "runs", "count"), field("hollow", "not steady", "count"),
  ];
  const one = (title) => ({
    title: panel ? `${number.title}, ${panel}: ${title}` : number.title,
    height: 170,
    data: { name: "over" },
    transform: [{ filter: { field: "panel", equal: title } }],
    layer: [
      // a line joins numbers, not names: between two names there is nothing
      ...(names[0].numeric ? [{ mark: { type: "line", strokeWidth: 2 }, encoding: { x: across, y: up, color: colour, strokeDash: told(DASHES) } }] : []),
      { mark: { type: "rule", strokeWidth: 1.5 }, encoding: { x: across, y: { ...up, field: "low" }, y2: { field: "high" }, color: colour } },
      { mark: { type: "point", filled: true, size: 45, opacity: 1 }, encoding: { x: across, y: up, ...hollowed(colour), tooltip } },
    ],
  });
  const least = rows.reduce((a, b) => (a && a.mean <= b.mean ? a : b), null);
  const says = least ? `${number.title} over ${x}: least ${formats[number.format](least.mean)} (${least.words.join(", ")}).` : "No run has this number.";
  const columns = [["x", x, "text"], ["by", by, "text"], ["panel", panel, "text"], ["mean", "mean", number.format], ["low", "from", number.format], ["high", "to", number.format], ["bars", "bar", "text"], ["runs", "runs", "count"], ["hollow", "not steady", "count"]];
  return {
    made: { spec: { concat: panels.map(one), columns: Math.min(panels.length, 3) }, data: { over: data }, tables: { over: [number.title, columns.filter(([, title]) => title)] }, left: "numbers", says },
    colours,
    bars: new Set(data.bars.filter(Boolean)),
  };
}

/** The legend of colours: the factor, and its levels with their lines. */
function colourKey(id, title, names) {
  const key = document.getElementById(id);
  key.replaceChildren(cell("li", title), ...names.map((name, i) => {
    const entry = document.createElement("li");
    const dash = DASHES[i % DASHES.length].join(" ");
    entry.innerHTML = `<svg class="swatch" viewBox="0 0 42 14" width="42" height="14" aria-hidden="true" style="color:var(--run-${i % COLOURS})"><path d="M0 7h42" stroke="currentColor" stroke-width="2" stroke-dasharray="${dash}"/></svg>`;
    entry.append(name);
    return entry;
  }));
  key.hidden = names.length < 2;
}

function startOver() {
  const { x, by, panel } = space.shown;
  const chosenOf = {
    y: fillSelect("over-y", numberOptions(), numbers[0].name),
    x: fillSelect("over-x", factorOptions(Infinity), x),
    by: fillSelect("over-by", [["", "–"], ...factorOptions(COLOURS)], by),
    panel: fillSelect("over-panel", [["", "–"], ...factorOptions(PANELS)], panel),
  };
  const paint = () => {
    const number = numberNamed.get(chosenOf.y.value);
    const { made, colours, bars } = linesOf(number, chosenOf.x.value, chosenOf.by.value, chosenOf.panel.value);
    colourKey("over-key", chosenOf.by.value, chosenOf.by.value ? colours : []);
    document.getElementById("over-bars").textContent = bars.size ? `Bars: ${[...bars].join("; elsewhere ")}.` : "";
    show("over", made);
  };
  for (const select of Object.values(chosenOf)) select.addEventListener("change", paint);
  onChoice.push(paint);
}

function heatOf(number, across, down) {
  const rows = means(number, [factorNamed.get(across), factorNamed.get(down)]);
  const values = rows.map((row) => row.mean);
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const scale = least > 0 && most / least > 10 ? Math.log : (value) => value;
  const step = (value) => (most > least ? Math.min(STEPS - 1, Math.floor((STEPS * (scale(value) - scale(least))) / (scale(most) - scale(least)))) : 0);
  const data = { x: [], y: [], mean: [], step: [], text: [], runs: [], hollow: [] };
  for (const row of rows) {
    data.x.push(row.words[0]);
    data.y.push(row.words[1]);
    data.mean.push(row.mean);
    data.step.push(step(row.mean));
    data.text.push(brief(number, row.mean));
    data.runs.push(row.runs.length);
    data.hollow.push(row.hollow);
  }
  const [columns, lines] = [new Set(data.x).size, new Set(data.y).size];
  const x = { field: "x", type: "ordinal", sort: orderOf(factorNamed.get(across)), axis: { title: across, labelAngle: slope([...new Set(data.x)]), orient: "bottom" } };
  const y = { field: "y", type: "ordinal", sort: orderOf(factorNamed.get(down)), axis: { title: null } };
  const ramp = Array.from({ length: STEPS }, (_, i) => i);
  const colour = { field: "step", type: "ordinal", legend: null, scale: { domain: ramp, range: ramp.map((i) => `var(--valid-${i})`) } };
  const ink = { field: "step", type: "ordinal", legend: null, scale: { domain: ramp, range: ramp.map((i) => (i < STEPS / 2 ? "var(--ink)" : "var(--paper)")) } };
  const tooltip = [field("y", down), field("x", across), field("mean", number.title, number.format), field("runs", "runs", "count"), field("hollow", "not steady", "count")];
  const layer = [
    { mark: { type: "rect", stroke: "var(--paper)", strokeWidth: 2 }, encoding: { x, y, color: colour, tooltip } },
    // the frame is smaller than the cell, so that the frames of neighbours stay apart
    { transform: [{ filter: "datum.hollow > 0" }], mark: { type: "rect", filled: false, stroke: "var(--run-1)", strokeDash: [4, 3], strokeWidth: 1.5, width: { band: 0.9 }, height: { band: 0.8 } }, encoding: { x, y } },
  ];
  if (columns <= 12) layer.push({ mark: { type: "text", fontSize: 11 }, encoding: { x, y, text: { field: "text" }, color: ink } });
  const says = rows.length ? `${number.title} over ${down} and ${across}: from ${formats[number.format](least)} to ${formats[number.format](most)}.` : "No run has this number.";
  const spec = { concat: [{ title: `${number.title}: ${down} down, ${across} across`, height: Math.max(120, Math.min(lines * 30, 900)), data: { name: "heat" }, layer, resolve: { scale: { color: "independent" } } }], columns: 1 };
  return { spec, data: { heat: data }, tables: { heat: [number.title, [["y", down, "text"], ["x", across, "text"], ["mean", number.title, number.format], ["runs", "runs", "count"], ["hollow", "not steady", "count"]]] }, left: "names", says };
}

function startHeat() {
  if (!document.getElementById("heat-y")) return; // a study of one axis
  const [x, y] = space.shown.heat;
  const selects = [
    fillSelect("heat-number", numberOptions(), numbers[0].name),
    fillSelect("heat-x", factorOptions(Infinity), x),
    fillSelect("heat-y", factorOptions(Infinity), y),
  ];
  const paint = () => show("heat", heatOf(numberNamed.get(selects[0].value), selects[1].value, selects[2].value));
  for (const select of selects) select.addEventListener("change", paint);
  onChoice.push(paint);
}
