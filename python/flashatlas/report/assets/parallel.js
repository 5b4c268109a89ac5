// Parallel coordinates: a line for each run across axes of factors and numbers. Dragging along an axis chooses a range.

const MARGIN = { top: 46, bottom: 22, side: 66 };
const ROOM = 92; // pixels of an axis with its words; if the page is too narrow for all axes, they scroll

class Parallel {
  constructor(canvas) {
    this.canvas = canvas;
    this.live = document.getElementById("parallel-live");
    this.drag = null;
    this.cursor = -1;
    this.shown = new Set(space.shown.parallel);
    const boxes = document.getElementById("parallel-axes");
    for (const number of numbers) {
      const label = document.createElement("label");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: this.shown.has(number.name) });
      box.addEventListener("change", () => {
        if (box.checked) this.shown.add(number.name);
        else this.shown.delete(number.name);
        this.lay();
        this.paint();
      });
      label.append(box, number.title);
      boxes.append(label);
    }
    this.by = fillSelect("parallel-by", [["", "–"], ...factorOptions(COLOURS)], space.shown.by);
    this.by.addEventListener("change", () => this.paint());
    canvas.addEventListener("pointerdown", (event) => this.press(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", () => this.release());
    canvas.addEventListener("pointercancel", () => {
      this.drag = null; // it was a scroll, which chooses nothing
      this.paint();
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.select(-1));
    canvas.addEventListener("focus", () => this.select(Math.max(this.cursor, 0)));
    new ResizeObserver(() => this.paint()).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    addEventListener("themechange", () => this.paint());
    onChoice.push(() => this.paint());
    this.lay();
  }

  /** Makes the axes, each with the places of the runs: from 0 (bottom) to 1 (top), or null without a value. */
  lay() {
    const named = factors.filter((factor) => factor.words.length > 1).map((factor) => {
      const last = Math.max(factor.words.length - 1, 1);
      return { name: factor.name, title: factor.name, factor, at: factor.levels.map((level) => (level < 0 ? null : level / last)) };
    });
    const counted = numbers.filter((number) => this.shown.has(number.name)).map((number) => {
      const known = number.values.filter((value) => value !== null);
      const [least, most] = known.reduce(([a, b], value) => [Math.min(a, value), Math.max(b, value)], [Infinity, -Infinity]);
      const log = least > 0 && most / least > 50;
      const to = log ? Math.log : (value) => value;
      const share = (value) => (most > least ? (to(value) - to(least)) / (to(most) - to(least)) : 0.5);
      const from = (part) => {
        const value = to(least) + part * (to(most) - to(least));
        return log ? Math.exp(value) : value;
      };
      return { name: number.name, title: number.title, number, least, most, from, share, at: number.values.map((value) => (value === null ? null : share(value))) };
    });
    this.axes = [...named, ...counted];
    this.cursor = Math.min(this.cursor, this.axes.length - 1);
  }

  x(axis) {
    return MARGIN.side + (axis * (this.width - 2 * MARGIN.side)) / Math.max(this.axes.length - 1, 1);
  }

  y(share) {
    return this.height - MARGIN.bottom - share * (this.height - MARGIN.top - MARGIN.bottom);
  }

  shareAt(event) {
    const y = event.clientY - this.canvas.getBoundingClientRect().top;
    return Math.min(1, Math.max(0, (this.height - MARGIN.bottom - y) / (this.height - MARGIN.top - MARGIN.bottom)));
  }

  /** The chosen range of an axis, as shares; null if all of it is chosen. */
  range(axis) {
    if (axis.number) {
      const found = choice.ranges.get(axis.name);
      return found ? found.map((value) => axis.share(value)) : null;
    }
    const levels = choice.levels.get(axis.name);
    if (!levels?.size) return null;
    const last = Math.max(axis.factor.words.length - 1, 1);
    return [Math.min(...levels) / last, Math.max(...levels) / last];
  }

  choose(axis, from, to) {
    const [low, high] = [Math.min(from, to), Math.max(from, to)];
    if (axis.number) {
      // take the least and the greatest number as they are: a number computed back from a share is slightly off
      if (low <= 0 && high >= 1) choice.ranges.delete(axis.name);
      else choice.ranges.set(axis.name, [low <= 0 ? axis.least : axis.from(low), high >= 1 ? axis.most : axis.from(high)]);
    } else {
      const last = Math.max(axis.factor.words.length - 1, 1);
      const half = 0.5 / last;
      const levels = axis.factor.words.map((_, level) => level).filter((level) => level / last >= low - half && level / last <= high + half);
      if (levels.length === axis.factor.words.length) choice.levels.delete(axis.name);
      else choice.levels.set(axis.name, new Set(levels));
      for (const box of document.querySelectorAll("#choose-levels fieldset")) {
        if (box.querySelector("legend").textContent !== axis.name) continue;
        const on = choice.levels.get(axis.name);
        for (const input of box.querySelectorAll("input")) input.checked = !on || on.has(Number(input.dataset.level));
      }
    }
    choose();
  }

  clear(axis) {
    this.choose(axis, 0, 1);
  }

  press(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const nearest = this.axes.map((_, i) => [Math.abs(this.x(i) - x), i]).sort((a, b) => a[0] - b[0])[0];
    if (!nearest || nearest[0] > 30) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = { axis: this.axes[nearest[1]], from: this.shareAt(event), to: this.shareAt(event) };
  }

  move(event) {
    if (!this.drag) return;
    this.drag.to = this.shareAt(event);
    this.paint();
  }

  release() {
    if (!this.drag) return;
    const { axis, from, to } = this.drag;
    this.drag = null;
    if (Math.abs(to - from) < 0.02) this.clear(axis); // a click
    else this.choose(axis, from, to);
  }

  key(event) {
    const axis = this.axes[this.cursor];
    if (event.key === "ArrowLeft") this.select(Math.max(0, this.cursor - 1));
    else if (event.key === "ArrowRight") this.select(Math.min(this.axes.length - 1, this.cursor + 1));
    else if (event.key === "Escape" && axis) this.clear(axis);
    else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && axis) {
      const step = axis.number ? 0.05 : 1 / Math.max(axis.factor.words.length - 1, 1);
      const move = event.key === "ArrowUp" ? step : -step;
      const [low, high] = this.range(axis) ?? [0, 1];
      // without Shift the lower end moves, with Shift the upper one
      if (event.shiftKey) this.choose(axis, low, Math.min(1, Math.max(low, high + move)));
      else this.choose(axis, Math.max(0, Math.min(high, low + move)), high);
      this.tell();
    } else return;
    event.preventDefault();
  }

  select(number) {
    this.cursor = number;
    this.paint();
    if (number >= 0) this.tell();
  }

  tell() {
    const axis = this.axes[this.cursor];
    if (!axis) return;
    const range = choice.ranges.get(axis.name);
    const levels = choice.levels.get(axis.name);
    const said = range ? range.map((value) => formats[axis.number.format](Number(value.toPrecision(4)))).join(" to ")
      : levels ? [...levels].filter((level) => level >= 0).map((level) => axis.factor.words[level]).join(", ") : "all";
    this.live.textContent = `${axis.title}: ${said || "none"}; ${formats.count(chosen.length)} runs`;
  }

  paint() {
    const { canvas } = this;
    this.width = Math.max(canvas.parentElement.clientWidth, 2 * MARGIN.side + ROOM * (this.axes.length - 1));
    this.height = 360;
    const density = Math.max(1, devicePixelRatio || 1);
    Object.assign(canvas, { width: Math.round(this.width * density), height: Math.round(this.height * density) });
    Object.assign(canvas.style, { width: `${this.width}px`, height: `${this.height}px` });
    const pen = canvas.getContext("2d");
    pen.scale(density, density);
    const resolved = resolver(canvas.parentElement);
    const ink = resolved("--ink");
    const [soft, line, accent, paper] = ["--ink-2", "--line", "--accent", "--paper"].map(resolved);
    const by = factorNamed.get(this.by.value);
    const signs = Array.from({ length: COLOURS }, (_, i) => resolved(`--run-${i}`));
    const on = new Set(chosen);
    this.lines(pen, [...Array(runCount).keys()].filter((run) => !on.has(run)), () => line, 0.35);
    this.lines(pen, chosen, (run) => (by && by.levels[run] >= 0 ? signs[by.levels[run] % COLOURS] : accent), Math.max(0.12, Math.min(0.8, 60 / chosen.length)));
    this.axes.forEach((axis, i) => this.axis(pen, axis, i, { ink, soft, accent, paper }));
    canvas.dataset.drawn = String(chosen.length);
  }

  lines(pen, runs, colour, opacity) {
    pen.globalAlpha = opacity;
    pen.lineWidth = 1;
    for (const run of runs) {
      pen.strokeStyle = colour(run);
      pen.setLineDash(unsteady.has(run) ? [5, 3] : []);
      pen.beginPath();
      let open = false; // a run without a number leaves a gap
      this.axes.forEach((axis, i) => {
        const at = axis.at[run];
        if (at === null) open = false;
        else if (open) pen.lineTo(this.x(i), this.y(at));
        else {
          pen.moveTo(this.x(i), this.y(at));
          open = true;
        }
      });
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.globalAlpha = 1;
  }

  axis(pen, axis, i, { ink, soft, accent, paper }) {
    const x = this.x(i);
    pen.strokeStyle = soft;
    pen.lineWidth = this.cursor === i ? 3 : 1;
    pen.beginPath();
    pen.moveTo(x, this.y(0));
    pen.lineTo(x, this.y(1));
    pen.stroke();
    const dragged = this.drag?.axis === axis ? [this.drag.from, this.drag.to] : null;
    const range = dragged ?? this.range(axis);
    if (range) {
      const [top, bottom] = [this.y(Math.max(...range)), this.y(Math.min(...range))];
      pen.globalAlpha = 0.25;
      pen.fillStyle = accent;
      pen.fillRect(x - 8, top - 3, 16, bottom - top + 6);
      pen.globalAlpha = 1;
      pen.strokeStyle = accent;
      pen.lineWidth = 1.5;
      pen.strokeRect(x - 8, top - 3, 16, bottom - top + 6);
    }
    pen.textAlign = "center";
    pen.fillStyle = ink;
    pen.font = "600 12px system-ui, sans-serif";
    const room = (this.width - 2 * MARGIN.side) / Math.max(this.axes.length - 1, 1) - 8;
    // titles stand at two heights, so that neighbours do not touch
    pen.fillText(axis.title, x, i % 2 ? 14 : 30, Math.max(60, 2 * room));
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = soft;
    pen.strokeStyle = paper;
    pen.lineWidth = 3;
    pen.lineJoin = "round";
    for (const [share, word] of this.ticks(axis)) {
      pen.textAlign = i === this.axes.length - 1 ? "right" : "left";
      const place = [word, x + (i === this.axes.length - 1 ? -10 : 10), this.y(share) + 4, Math.max(40, room)];
      pen.strokeText(...place); // a halo, so that the lines behind a word do not cross it out
      pen.fillText(...place);
    }
  }

  ticks(axis) {
    if (axis.number) {
      const shares = [0, 0.25, 0.5, 0.75, 1];
      const said = tickWords(shares.map((share) => axis.from(share)), axis.number.format);
      return shares.map((share, i) => [share, said[i]]);
    }
    const last = Math.max(axis.factor.words.length - 1, 1);
    const every = Math.ceil(axis.factor.words.length / 20);
    return axis.factor.words.map((word, level) => [level / last, word]).filter((_, level) => level % every === 0);
  }
}

function startParallel() {
  new Parallel(document.getElementById("parallel"));
}
