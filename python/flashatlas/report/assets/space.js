// The runs of a study: the chosen runs, and means over the axes that a view does not show.

const space = report.space;
const runCount = report.runs.length;
const factors = space.factors; // name, words of its levels in order, the level of each run (-1: without)
const numbers = space.numbers; // name, title, format, better, values, and intervals of groups
const groupOf = space.groupOf; // runs of one group differ in their seed alone
const groupSize = groupOf.reduce((sizes, group) => ((sizes[group] = (sizes[group] ?? 0) + 1), sizes), []);
const unsteady = new Set(space.unsteady); // runs that were not steady
const factorNamed = new Map(factors.map((factor) => [factor.name, factor]));
const numberNamed = new Map(numbers.map((number) => [number.name, number]));

/** The reader's choice: the levels of each factor, by its name, and the least and most of each number, by its name. */
const choice = { levels: new Map(), ranges: new Map() };
const onChoice = [];

function isChosen(run) {
  for (const [name, levels] of choice.levels) if (!levels.has(factorNamed.get(name).levels[run])) return false;
  for (const [name, [least, most]] of choice.ranges) {
    const value = numberNamed.get(name).values[run];
    if (value === null || value < least || value > most) return false;
  }
  return true;
}

let chosen = [...Array(runCount).keys()];

function choose() {
  chosen = [...Array(runCount).keys()].filter(isChosen);
  document.getElementById("chosen").textContent = `${formats.count(chosen.length)} of ${formats.count(runCount)} runs`;
  document.getElementById("choose-all").disabled = chosen.length === runCount;
  for (const tell of onChoice) tell();
}

/** The level of a factor that a run has, in words. */
const wordOf = (factor, run) => (factor.levels[run] < 0 ? "–" : factor.words[factor.levels[run]]);

/** The words of a factor in the order of its levels. Last comes the word for runs without a level. */
const orderOf = (factor) => [...factor.words, "–"];

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Means of a number over runs that share their levels of some factors.
 *
 * `how` says what `low` and `high` are. If only seeds are averaged, and there are enough of them, they are an interval.
 * Otherwise they are the least and the most: of the seeds, or of the means of configurations.
 * `hollow` counts runs that were not steady.
 */
function means(number, by) {
  const found = new Map();
  for (const run of chosen) {
    if (number.values[run] === null) continue;
    const words = by.map((factor) => wordOf(factor, run));
    const key = JSON.stringify(words);
    if (!found.has(key)) found.set(key, { words, runs: [] });
    found.get(key).runs.push(run);
  }
  return [...found.values()].map(({ words, runs }) => {
    const groups = new Set(runs.map((run) => groupOf[run]));
    const [group] = groups;
    const hollow = runs.filter((run) => unsteady.has(run)).length;
    if (groups.size === 1 && groupSize[group] === runs.length && group in number.low) {
      return { words, runs, hollow, mean: mean(runs.map((run) => number.values[run])), low: number.low[group], high: number.high[group], how: "95 % interval" };
    }
    const valuesOf = (one) => runs.filter((run) => groupOf[run] === one).map((run) => number.values[run]);
    const each = groups.size === 1 ? valuesOf(group) : [...groups].map((one) => mean(valuesOf(one)));
    const spread = Math.min(...each) < Math.max(...each);
    return { words, runs, hollow, mean: mean(each), low: spread ? Math.min(...each) : null, high: spread ? Math.max(...each) : null, how: spread ? "least to most" : "" };
  });
}

/** The configurations of the chosen runs, each with its means of some numbers. */
function configurations(wanted) {
  const found = new Map();
  for (const run of chosen) {
    if (!found.has(groupOf[run])) found.set(groupOf[run], []);
    found.get(groupOf[run]).push(run);
  }
  return [...found.values()].map((runs) => ({
    runs,
    values: wanted.map((number) => {
      const known = runs.map((run) => number.values[run]).filter((value) => value !== null);
      return known.length ? mean(known) : null;
    }),
  }));
}

function fillSelect(id, options, selected) {
  const select = document.getElementById(id);
  for (const [value, title, disabled] of options) {
    select.append(Object.assign(document.createElement("option"), { value, textContent: title, disabled: Boolean(disabled) }));
  }
  if (selected !== undefined) select.value = selected;
  return select;
}

const numberOptions = () => numbers.map((number) => [number.name, number.title]);

/** Factors as options; a factor with more than `most` levels cannot be chosen. */
function factorOptions(most) {
  return factors.map((factor) => {
    const many = factor.words.length > most;
    return [factor.name, many ? `${factor.name} (${factor.words.length} values)` : factor.name, many];
  });
}

/** Replaces a chart by `made`, once the current drawing is finished. */
function show(id, made) {
  const host = document.querySelector(`.plot[data-chart="${id}"]`);
  report.charts[id] = made;
  host.setAttribute("aria-label", made.says);
  if (root.dataset.charts) drawing = drawing.then(() => drawAll([host]));
}

function startChoice() {
  const place = document.getElementById("choose-levels");
  for (const factor of factors.filter((one) => one.words.length > 1 && one.words.length <= 40)) {
    const set = document.createElement("fieldset");
    const all = orderOf(factor).filter((word, level) => factor.levels.includes(word === "–" ? -1 : level));
    set.append(Object.assign(document.createElement("legend"), { textContent: factor.name }));
    for (const word of all) {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
      box.dataset.level = word === "–" ? -1 : factor.words.indexOf(word);
      label.append(box, word);
      set.append(label);
    }
    set.addEventListener("change", () => {
      const on = [...set.querySelectorAll("input:checked")].map((box) => Number(box.dataset.level));
      if (on.length === all.length) choice.levels.delete(factor.name);
      else choice.levels.set(factor.name, new Set(on));
      choose();
    });
    place.append(set);
  }
  document.getElementById("choose-all").addEventListener("click", () => {
    choice.levels.clear();
    choice.ranges.clear();
    for (const box of place.querySelectorAll("input")) box.checked = true;
    choose();
  });
}
