// The runs one by one: a table to sort, filter and leaf through, and the details of the chosen run.

const PAGE = 100;

/** The path of the report of a run; empty if reports of runs were not written. */
const reportOf = (run) => (space.reports && space.keys[run] ? `${space.reports}/${space.keys[run]}.html` : "");

const folderOf = (run) => `${space.store}/runs/${space.keys[run].slice(0, 2)}/${space.keys[run]}`;

/** Shows the settings and the numbers of some runs, and the commands that repeat and report each run. */
function pick(runs) {
  const place = document.getElementById("picked");
  place.replaceChildren(...runs.slice(0, 20).map((run) => {
    const box = document.createElement("article");
    const title = document.createElement("h4");
    const to = reportOf(run);
    title.append(to ? Object.assign(document.createElement("a"), { href: to, textContent: report.runs[run] }) : report.runs[run]);
    const list = Object.assign(document.createElement("dl"), { className: "facts" });
    const add = (name, value) => {
      const pair = document.createElement("div");
      pair.append(cell("dt", name), cell("dd", value));
      list.append(pair);
    };
    for (const factor of factors) if (factor.levels[run] >= 0) add(factor.name, wordOf(factor, run));
    if (unsteady.has(run)) add("steady", "no");
    for (const number of numbers.slice(0, 8)) if (number.values[run] !== null) add(number.title, formats[number.format](number.values[run]));
    box.append(title, list);
    const commands = [`flashatlas rerun ${folderOf(run)} --check`];
    if (!to) commands.push(`flashatlas report ${folderOf(run)} --out ${space.keys[run].slice(0, 12)}.html`);
    box.append(Object.assign(document.createElement("pre"), { textContent: commands.join("\n"), tabIndex: 0 }));
    return box;
  }));
  if (runs.length > 20) place.append(cell("p", `and ${runs.length - 20} runs more`));
  const dialog = document.getElementById("picked-box");
  if (!dialog.open) dialog.showModal();
}

class RunsTable {
  constructor(table) {
    this.table = table;
    this.page = 0;
    this.sort = null;
    this.columns = [
      ...factors.filter((factor) => factor.words.length > 1).map((factor) => ({ title: factor.name, text: (run) => wordOf(factor, run), order: (run) => factor.levels[run], css: "text" })),
      ...(unsteady.size ? [{ title: "steady", text: (run) => (unsteady.has(run) ? "no" : "yes"), order: (run) => Number(!unsteady.has(run)), css: "text" }] : []),
      ...numbers.slice(0, 10).map((number) => ({ title: number.title, text: (run) => brief(number, number.values[run]), order: (run) => number.values[run] })),
    ];
    const head = document.createElement("tr");
    head.append(cell("th", "Run", { scope: "col" }));
    this.heads = this.columns.map((column, at) => {
      const th = document.createElement("th");
      th.scope = "col";
      const button = Object.assign(document.createElement("button"), { type: "button", className: "sort", textContent: column.title });
      button.addEventListener("click", () => this.order(at));
      th.append(button);
      head.append(th);
      return th;
    });
    table.tHead.append(head);
    this.filter = document.getElementById("runs-filter");
    this.filter.addEventListener("input", () => this.show(0));
    document.getElementById("runs-back").addEventListener("click", () => this.show(this.page - 1));
    document.getElementById("runs-on").addEventListener("click", () => this.show(this.page + 1));
    onChoice.push(() => this.show(0));
  }

  order(at) {
    const down = this.sort?.at === at && !this.sort.down;
    this.sort = { at, down };
    for (const head of this.heads) head.removeAttribute("aria-sort");
    this.heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
    this.show(0);
  }

  /** The runs that the table lists, in its order. */
  listed() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = chosen.filter((run) => {
      if (!words.length) return true;
      const said = factors.map((factor) => `${factor.name}=${wordOf(factor, run)}`).join(" ").toLowerCase();
      return words.every((word) => said.includes(word));
    });
    if (this.sort) {
      const { order } = this.columns[this.sort.at];
      const sign = this.sort.down ? -1 : 1;
      // missing values stand last, in both orders
      found.sort((a, b) => {
        const [x, y] = [order(a), order(b)];
        return x === null || y === null ? (x === null) - (y === null) : sign * (x - y);
      });
    }
    return found;
  }

  show(page) {
    const found = this.listed();
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    this.page = Math.min(Math.max(page, 0), pages - 1);
    const lines = found.slice(this.page * PAGE, (this.page + 1) * PAGE).map((run) => {
      const line = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      const button = Object.assign(document.createElement("button"), { type: "button", className: "pick", textContent: space.keys[run].slice(0, 8) });
      button.setAttribute("aria-label", `Run ${report.runs[run]}`);
      button.addEventListener("click", () => pick([run]));
      head.append(button);
      line.append(head, ...this.columns.map((column) => cell("td", column.text(run), { className: column.css ?? "" })));
      return line;
    });
    this.table.tBodies[0].replaceChildren(...lines);
    document.getElementById("runs-page").textContent = `${formats.count(found.length)} runs, page ${this.page + 1} of ${pages}`;
    document.getElementById("runs-back").disabled = this.page === 0;
    document.getElementById("runs-on").disabled = this.page === pages - 1;
  }
}

function startRuns() {
  new RunsTable(document.getElementById("runs-table"));
  document.getElementById("picked-close").addEventListener("click", () => document.getElementById("picked-box").close());
}
