// Two numbers against each other: a mark for each configuration, and the Pareto front.

/** The places of the points on the front: no other point is at least as good in both numbers, and better in one. */
function paretoFront(points, [first, second]) {
  const signed = points.map(([a, b], at) => [first.better === "high" ? -a : a, second.better === "high" ? -b : b, at]);
  signed.sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const front = [];
  let best = Infinity;
  let last = null;
  for (const [a, b, at] of signed) {
    if (b < best) {
      front.push(at);
      best = b;
      last = [a, b];
    } else if (last && a === last[0] && b === last[1]) front.push(at); // equal to the last point of the front
  }
  return front;
}

/** The configurations, and the set of those on a front. Each level of `panel` has its own front. */
function fronts(across, up, panel) {
  const all = configurations([across, up]).filter(({ values }) => values.every((value) => value !== null));
  const groups = Map.groupBy(all, ({ runs }) => (panel ? wordOf(panel, runs[0]) : ""));
  const front = new Set();
  for (const group of groups.values()) {
    for (const at of paretoFront(group.map(({ values }) => values), [across, up])) front.add(group[at]);
  }
  return { all, front };
}

function frontOf(across, up, by, panel) {
  const { all, front } = fronts(across, up, panel);
  const shown = factors.filter((factor) => factor.name !== "seed" && factor.words.length > 1);
  const data = { x: [], y: [], by: [], panel: [], front: [], at: [], runs: [], hollow: [], ...Object.fromEntries(shown.map((_, i) => [`f${i}`, []])) };
  all.forEach((one, at) => {
    const { runs, values } = one;
    data.x.push(values[0]);
    data.y.push(values[1]);
    data.by.push(by ? wordOf(by, runs[0]) : "");
    data.panel.push(panel ? wordOf(panel, runs[0]) : "");
    data.front.push(front.has(one) ? "on the front" : "bettered");
    data.at.push(at);
    data.runs.push(runs.length);
    data.hollow.push(runs.filter((run) => unsteady.has(run)).length);
    shown.forEach((factor, i) => data[`f${i}`].push(wordOf(factor, runs[0])));
  });
  const names = by ? orderOf(by).filter((word) => data.by.includes(word)) : [""];
  const panels = panel ? orderOf(panel).filter((word) => data.panel.includes(word)) : [""];
  const axisOf = (number, name) => {
    const [least, most] = [Math.min(...data[name]), Math.max(...data[name])];
    const log = least > 0 && most / least > 20;
    const scale = log ? { type: "log", base: number.format === "memory" ? 2 : 10, nice: false, domain: [least / 1.1, most * 1.1] } : { zero: false, nice: true, domain: [least, most] };
    return { field: name, type: "quantitative", scale, axis: { formatType: tickKind(number.format), title: name === "x" ? number.title : null, tickCount: 5 } };
  };
  const [x, y] = [axisOf(across, "x"), axisOf(up, "y")];
  const colour = { field: "by", type: "nominal", legend: null, scale: { domain: names, range: names.map((_, i) => `var(--run-${i % COLOURS})`) } };
  const tooltip = [...shown.map((factor, i) => field(`f${i}`, factor.name)), field("x", across.title, across.format), field("y", up.title, up.format), field("front", "front"), field("runs", "runs", "count"), field("hollow", "not steady", "count")];
  const onFront = (value, otherwise) => ({ condition: { test: "datum.front === 'on the front'", value }, value: otherwise });
  const one = (title) => ({
    title: title ? `${up.title}, ${panel.name}: ${title}` : up.title,
    height: panels.length > 1 ? 230 : 330,
    data: { name: "front" },
    transform: [{ filter: { field: "panel", equal: title } }],
    layer: [
      {
        transform: [{ filter: "datum.front === 'on the front'" }],
        mark: { type: "line", interpolate: across.better === "high" ? "step-before" : "step-after", strokeWidth: 1.5, color: "var(--ink-2)", strokeDash: [4, 3] },
        encoding: { x, y, order: { field: "x" } },
      },
      {
        mark: { type: "point", filled: true, cursor: "pointer" },
        encoding: { x, y, ...hollowed(colour), tooltip, size: onFront(110, 34), opacity: onFront(1, 0.45) },
      },
    ],
  });
  const says = `${up.title} over ${across.title}: ${front.size} of ${all.length} configurations are on the front${panels.length > 1 ? "s" : ""}.`;
  const columns = [...shown.map((factor, i) => [`f${i}`, factor.name, "text"]), ["x", across.title, across.format], ["y", up.title, up.format], ["front", "front", "text"], ["runs", "runs", "count"], ["hollow", "not steady", "count"]];
  const made = { spec: { concat: panels.map(one), columns: Math.min(panels.length, 3) }, data: { front: data }, tables: { front: ["Configurations", columns] }, left: "numbers", says };
  made.drawn = (view) => view.addEventListener("click", (_, item) => item?.datum?.at !== undefined && pick(all[item.datum.at].runs));
  return { made, names, front: all.filter((each) => front.has(each)), shown };
}

/** The front as a table, with a button that shows the runs of each configuration. */
function frontTable({ front, shown }, across, up) {
  const table = document.getElementById("front-table");
  const head = document.createElement("tr");
  for (const title of [...shown.map((factor) => factor.name), across.title, up.title, "runs", ""]) head.append(cell("th", title, { scope: "col" }));
  const lines = front.slice(0, 200).map(({ runs, values }) => {
    const line = document.createElement("tr");
    for (const factor of shown) line.append(cell("td", wordOf(factor, runs[0]), { className: "text" }));
    line.append(cell("td", formats[across.format](values[0])), cell("td", formats[up.format](values[1])), cell("td", formats.count(runs.length)));
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Runs" });
    button.setAttribute("aria-label", `Runs of ${shown.map((factor) => wordOf(factor, runs[0])).join(", ")}`);
    button.addEventListener("click", () => pick(runs));
    const last = document.createElement("td");
    last.append(button);
    line.append(last);
    return line;
  });
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(...lines);
}

function startFront() {
  const { front } = space.shown;
  const [x, y, by, panel] = [
    fillSelect("front-x", numberOptions(), front.pair[0]),
    fillSelect("front-y", numberOptions(), front.pair[1]),
    fillSelect("front-by", [["", "–"], ...factorOptions(COLOURS)], front.by),
    fillSelect("front-panel", [["", "–"], ...factorOptions(PANELS)], front.panel),
  ];
  const paint = () => {
    const [across, up] = [numberNamed.get(x.value), numberNamed.get(y.value)];
    const found = frontOf(across, up, factorNamed.get(by.value), factorNamed.get(panel.value));
    colourKey("front-key", by.value, by.value ? found.names : []);
    const wish = (number) => `${number.title} ${number.better === "high" ? "high" : "low"}`;
    document.getElementById("front-says").textContent = `${found.made.says} Better is: ${wish(across)}, ${wish(up)}.`;
    frontTable(found, across, up);
    show("front", found.made);
  };
  for (const select of [x, y, by, panel]) select.addEventListener("change", paint);
  onChoice.push(paint);
}
