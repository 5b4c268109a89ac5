// Saves a chart as a picture, or its data as text, on the reader's own disk; nothing else leaves the page.

/** The drawing, with the present colours in place of the page's CSS variables. */
function standalone(host) {
  const drawing = host.querySelector("svg").cloneNode(true);
  const colours = getComputedStyle(root);
  const text = new XMLSerializer().serializeToString(drawing);
  const paper = colours.getPropertyValue("--paper").trim();
  const [, , width, height] = drawing.getAttribute("viewBox").split(" ");
  const filled = text.replace(/var\((--[\w-]+)\)/g, (_, name) => colours.getPropertyValue(name).trim());
  return filled.replace(/(<svg[^>]*>)/, `$1<rect width="${width}" height="${height}" fill="${paper}"/>`);
}

function asPicture(svg) {
  return new Promise((done, failed) => {
    const image = new Image();
    image.onload = () => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 2 * image.width, height: 2 * image.height });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    };
    image.onerror = () => failed(new Error("it cannot be drawn as a picture"));
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  });
}

/** The data of a chart: every data set with its columns and their units, separated by an empty line. */
function asText(chart) {
  const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : (value ?? ""));
  return Object.entries(chart.tables).filter(([name]) => chart.data[name]).map(([name, [, columns]]) => {
    const there = columns.filter(([field]) => field in chart.data[name]);
    const shown = there.map(([field]) => field);
    return [there.map(([, title, kind]) => headed(title, kind)), ...rows(chart.data[name]).map((row) => shown.map((field) => row[field]))].map((line) => line.map(quoted).join(",")).join("\n");
  }).join("\n\n") + "\n";
}

async function download(id, kind) {
  const host = document.querySelector(`.plot[data-chart="${id}"]`);
  const made = kind === "csv" ? new Blob([asText(report.charts[id])], { type: "text/csv" })
    : kind === "svg" ? new Blob([standalone(host)], { type: "image/svg+xml" })
    : await asPicture(standalone(host));
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(made), download: `${id}.${kind}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function startDownloads() {
  for (const button of document.querySelectorAll("[data-get]")) {
    button.addEventListener("click", () => download(button.parentElement.dataset.chart, button.dataset.get));
  }
}
