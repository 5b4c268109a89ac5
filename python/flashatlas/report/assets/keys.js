// The key of runs: a click hides a run or shows it again, in every chart; pointing at one makes it stand out.

const hidden = new Set();

/** Whether a drawn part has the colour of a run, and which. */
function colourOf(part) {
  return /^var\(--run-(\d+)\)$/.exec(part.getAttribute("stroke") ?? "")?.[1] ?? /^var\(--run-(\d+)\)$/.exec(part.getAttribute("fill") ?? "")?.[1];
}

function standOut(run) {
  for (const part of document.querySelectorAll(".plot svg path")) {
    const colour = colourOf(part);
    if (colour !== undefined) part.style.strokeOpacity = part.style.fillOpacity = run === undefined || Number(colour) === run % 8 ? "" : "0.12";
  }
}

function startKeys() {
  const buttons = [...document.querySelectorAll(".key button.run")];
  for (const button of buttons) {
    const run = Number(button.dataset.run);
    const name = report.runs[run];
    button.addEventListener("pointerenter", () => standOut(run));
    button.addEventListener("pointerleave", () => standOut());
    button.addEventListener("click", () => {
      if (hidden.has(name)) hidden.delete(name);
      else if (hidden.size < report.runs.length - 1) hidden.add(name); // one stays
      for (const other of buttons) other.setAttribute("aria-pressed", String(!hidden.has(report.runs[Number(other.dataset.run)])));
      redraw();
    });
  }
}
