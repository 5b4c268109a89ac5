// Tables with a row for each run: a heading sorts by its column, and a second click reverses the order.

function startSorting() {
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const value = (row) => row.cells[column].dataset.order ?? row.cells[column].textContent;
        const sorted = [...table.tBodies[0].rows].sort((a, b) => {
          const [x, y] = [value(a), value(b)];
          const order = Number.isNaN(Number(x)) || Number.isNaN(Number(y)) ? x.localeCompare(y, "en", { numeric: true }) : x - y;
          return down ? -order : order;
        });
        table.tBodies[0].append(...sorted);
      });
    });
  }
}
