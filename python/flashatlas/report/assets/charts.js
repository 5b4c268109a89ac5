// Draws the charts with Vega-Lite, as SVG. Colours are CSS variables, so dark, light and paper need no redrawing.

const root = document.documentElement;
const report = JSON.parse(document.getElementById("report-data").textContent);
const views = new Map();

/** Columns as the rows that Vega wants; the column `run` becomes the name of the run. */
function rows(columns) {
  const names = Object.keys(columns);
  return columns[names[0]].map((_, i) => {
    const row = {};
    for (const name of names) row[name] = name === "run" ? report.runs[columns.run[i]] : columns[name][i];
    return row;
  });
}

/** Width of the labels left of the plots. Plots above each other begin at one line. */
function leftOf(kind, width) {
  return { none: 8, numbers: Math.min(76, width * 0.2), names: Math.min(190, width * 0.32), sentences: Math.min(270, width * 0.4) }[kind];
}

function configuration(left, width, kind) {
  const label = { labelColor: "var(--ink-2)", labelFontSize: 11, labelFont: "system-ui, sans-serif", titleColor: "var(--ink)", titleFont: "system-ui, sans-serif" };
  return {
    background: null,
    font: "system-ui, sans-serif",
    customFormatTypes: true,
    aria: false,
    padding: { left: 0, right: 18, top: 4, bottom: 4 },
    view: { stroke: null },
    concat: { spacing: 12 },
    axis: { ...label, domainColor: "var(--line)", tickColor: "var(--line)", gridColor: "var(--grid)", labelOverlap: true, tickSize: 4, labelLimit: 400 },
    axisLeft: { minExtent: left, maxExtent: left, labelLimit: left - 4, domain: false, ticks: false, ...(kind === "names" || kind === "sentences" ? { labelFontSize: 12, labelColor: "var(--ink)" } : {}) },
    axisX: { tickCount: Math.max(2, Math.floor(width / 110)) },
    title: { anchor: "start", frame: "group", color: "var(--ink)", fontSize: 12, fontWeight: 600, offset: 8, limit: width },
    bar: { color: "var(--run-0)" },
    text: { color: "var(--ink)", font: "system-ui, sans-serif" },
    line: { strokeJoin: "round" },
  };
}

function fitted(chart, host) {
  const spec = structuredClone(chart.spec);
  const left = leftOf(chart.left, host.clientWidth);
  const width = Math.max(120, Math.floor(host.clientWidth - left - 20));
  if (spec.vconcat) spec.vconcat = spec.vconcat.filter((panel) => !hidden.has(panel.title)); // a panel with the name of a run shows that run alone
  const columns = spec.columns ?? 1; // small multiples stand beside each other, below each other where there is no room
  if (spec.concat) spec.columns = Math.max(1, Math.min(columns, Math.floor(host.clientWidth / 300)));
  const each = spec.concat ? host.clientWidth / spec.columns - left - 32 : width;
  for (const panel of spec.vconcat ?? spec.concat ?? [spec]) panel.width = Math.max(120, Math.floor(each));
  spec.datasets = Object.fromEntries(Object.entries(chart.data).map(([name, columns]) => [name, rows(columns).filter((row) => !hidden.has(row.run))]));
  return [spec, configuration(left, width, chart.left)];
}

async function draw(host) {
  const [spec, config] = fitted(report.charts[host.dataset.chart], host);
  // Vega would label its element for screen readers. The host's label has the chart's key figures, so the drawing is hidden from them.
  const place = document.createElement("div");
  place.setAttribute("aria-hidden", "true");
  host.style.minHeight = `${host.offsetHeight}px`; // the page keeps its place meanwhile
  host.replaceChildren(place);
  const drawn = await vegaEmbed(place, spec, {
    mode: "vega-lite",
    renderer: "svg",
    ast: true, // expressions are interpreted: the page's policy forbids `eval`
    actions: false,
    defaultStyle: false,
    config,
    expressionFunctions: formats,
    tooltip: { disableDefaultStyle: true, id: "tooltip" },
  });
  views.get(host)?.finalize();
  views.set(host, drawn);
  report.charts[host.dataset.chart].drawn?.(drawn.view);
  host.style.minHeight = "";
  host.dataset.width = host.clientWidth;
}

/** Draws all charts, one after the other, so that the page stays usable meanwhile. */
async function drawAll(hosts) {
  root.dataset.charts = "drawing";
  for (const host of hosts) {
    try {
      await draw(host);
    } catch (error) {
      host.textContent = `This chart could not be drawn (${error.message}). Its data stands below.`;
      console.error(error);
    }
    await new Promise((done) => setTimeout(done));
  }
  root.dataset.charts = "drawn";
}

let drawing = Promise.resolve();

/** Draws all charts again, once the current drawing is finished. */
function redraw() {
  drawing = drawing.then(() => drawAll([...document.querySelectorAll(".plot")]));
}

function startCharts() {
  const hosts = [...document.querySelectorAll(".plot")];
  drawing = drawAll(hosts);
  let waiting = 0;
  addEventListener("resize", () => {
    if (matchMedia("print").matches) return; // on paper the drawings are scaled
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const changed = hosts.filter((host) => Math.abs(host.clientWidth - (host.dataset.width ?? 0)) > 1);
      if (changed.length) drawing = drawing.then(() => drawAll(changed));
    }, 200);
  });
}
