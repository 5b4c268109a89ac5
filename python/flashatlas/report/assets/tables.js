// The data behind a chart, as a table. A table is made when it is first asked for: a reader rarely wants all of them.

function cell(tag, content, attributes = {}) {
  const made = Object.assign(document.createElement(tag), attributes);
  made.textContent = content;
  return made;
}

function dataTable(caption, columns, data) {
  const shown = columns.filter(([field]) => field in data && (field !== "run" || report.runs.length > 1));
  const table = document.createElement("table");
  table.append(cell("caption", caption));
  const head = table.createTHead().insertRow();
  for (const [, title] of shown) head.append(cell("th", title, { scope: "col" }));
  const body = table.createTBody();
  for (const row of rows(data)) {
    if (shown.some(([field, , kind]) => kind !== "text" && row[field] === null)) continue; // such a row only breaks a line of the chart
    const line = body.insertRow();
    for (const [field, , kind] of shown) line.append(cell("td", formats[kind](row[field]), { className: kind }));
  }
  const scroll = document.createElement("div");
  scroll.className = "scroll tall";
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", `Data: ${caption}`);
  scroll.append(table);
  return scroll;
}

function startTables() {
  for (const details of document.querySelectorAll("details.data")) {
    details.addEventListener("toggle", () => {
      if (!details.open || details.querySelector("table")) return;
      const chart = report.charts[details.dataset.chart];
      for (const [name, [caption, columns]] of Object.entries(chart.tables)) {
        if (chart.data[name]) details.append(dataTable(caption, columns, chart.data[name]));
      }
    });
  }
}
