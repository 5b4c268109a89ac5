// The legend of runs: a click hides a run or shows it again in every chart; pointing at a run highlights it.

const hidden = new Set();

/** The number of the run colour that a drawn part has, or undefined. */
function colourOf(part) {
  return /^var\(--run-(\d+)\)$/.exec(part.getAttribute("stroke") ?? "")?.[1] ?? /^var\(--run-(\d+)\)$/.exec(part.getAttribute("fill") ?? "")?.[1];
}

function standOut(wanted) {
  for (const part of document.querySelectorAll(".plot svg path")) {
    const colour = colourOf(part);
    if (colour !== undefined) part.style.strokeOpacity = part.style.fillOpacity = wanted === undefined || Number(colour) === wanted ? "" : "0.12";
  }
}

/** The names of the runs that a button of the key stands for: one run, or all runs with a value of a factor. */
function runsOf(button) {
  return button.dataset.run.split(",").map((number) => report.runs[Number(number)]);
}

function startKeys() {
  const buttons = [...document.querySelectorAll(".key button.run")];
  for (const button of buttons) {
    const { colour } = button.dataset;
    button.addEventListener("pointerenter", () => standOut(colour === undefined ? undefined : Number(colour)));
    button.addEventListener("pointerleave", () => standOut());
    button.addEventListener("click", () => {
      const names = runsOf(button);
      if (names.some((name) => !hidden.has(name))) {
        const all = new Set([...hidden, ...names]);
        if (all.size === report.runs.length) return; // at least one run stays visible
        for (const name of names) hidden.add(name);
      } else for (const name of names) hidden.delete(name);
      for (const other of buttons) other.setAttribute("aria-pressed", String(runsOf(other).some((name) => !hidden.has(name))));
      redraw();
    });
  }
}
