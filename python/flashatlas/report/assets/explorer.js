// The block explorer: a map of the drive's blocks over time, drawn on a canvas.

const SEQUENTIAL = 8; // steps of a ramp in the style sheet

async function unpack(run) {
  const packed = Uint8Array.from(atob(run.planes), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const blocks = run.blocks.flatMap(([count, times]) => Array(times).fill(count));
  const [cells, frames] = [blocks.length, run.times.length];
  if (bytes.length !== 4 * cells * frames) throw new Error("the pictures are damaged");
  const planes = [0, 1, 2, 3].map((k) => {
    const plane = bytes.subarray(k * cells * frames, (k + 1) * cells * frames);
    for (let i = cells; i < plane.length; i++) plane[i] = (plane[i] + plane[i - cells]) & 255;
    return plane;
  });
  let first = 0;
  const starts = blocks.map((count) => (first += count) - count);
  const [valid, low, high, role] = planes;
  const erases = (i) => (low[i] + 256 * high[i]) / run.eraseScale;
  let mostErases = 0;
  for (let i = 0; i < cells * frames; i++) mostErases = Math.max(mostErases, erases(i));
  return { ...run, cells, frames, blocks, starts, valid, role, erases, mostErases };
}

class Explorer {
  constructor(box) {
    this.at = (id) => box.querySelector(`#ex-${id}`);
    this.canvas = this.at("map");
    this.frame = 0;
    this.cursor = -1;
    this.timer = 0;
    this.kept = new Map();
  }

  async start() {
    this.at("run")?.addEventListener("change", (event) => this.choose(Number(event.target.value)));
    this.at("by").addEventListener("change", () => this.paint());
    this.at("frame").addEventListener("input", (event) => this.show(Number(event.target.value)));
    this.at("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.select(-1));
    this.canvas.addEventListener("focus", () => this.select(Math.max(this.cursor, 0)));
    this.canvas.addEventListener("blur", () => this.select(-1));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.paint()).observe(this.canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
    addEventListener("themechange", () => this.paint());
    addEventListener("beforeprint", () => this.paint());
    addEventListener("afterprint", () => this.paint());
    await this.choose(0);
  }

  async choose(number) {
    this.pause();
    if (!this.kept.has(number)) this.kept.set(number, await unpack(report.explorer[number]));
    this.run = this.kept.get(number);
    const slider = this.at("frame");
    slider.max = this.run.frames - 1;
    this.show(Math.min(this.frame, this.run.frames - 1));
  }

  time(frame) {
    const at = this.run.times[frame];
    return this.run.timed ? (at ? formats.duration(Number(at.toPrecision(4))) : "at the start") : `request ${formats.count(at)}`;
  }

  show(frame) {
    this.frame = frame;
    const slider = this.at("frame");
    slider.value = frame;
    const words = `${this.time(frame)}, picture ${frame + 1} of ${this.run.frames}`;
    slider.setAttribute("aria-valuetext", words);
    this.at("time").textContent = words;
    this.paint();
    this.tell();
  }

  play() {
    if (this.frame === this.run.frames - 1) this.show(0);
    this.at("play").textContent = "Pause";
    this.at("play").setAttribute("aria-pressed", "true");
    this.at("live").setAttribute("aria-live", "off"); // a screen reader hears only the picture at which playing stops
    this.timer = setInterval(() => (this.frame + 1 < this.run.frames ? this.show(this.frame + 1) : this.pause()), 180);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = 0;
    this.at("play").textContent = "Play";
    this.at("play").setAttribute("aria-pressed", "false");
    this.at("live").setAttribute("aria-live", "polite");
    if (this.run) this.tell();
  }

  /** Counts of the frame in words. */
  tell() {
    const { run, frame } = this;
    const counts = run.roles.map(() => 0);
    let [valid, all] = [0, 0];
    for (let c = 0; c < run.cells; c++) {
      const i = frame * run.cells + c;
      counts[run.role[i]] += run.blocks[c];
      valid += run.valid[i] * run.blocks[c];
      all += run.blocks[c];
    }
    const parts = run.roles.map((role, k) => `${formats.count(counts[k])} ${role}`);
    const name = report.runs.length > 1 ? `${report.runs[run.run]}, ` : "";
    this.at("live").textContent =
      `${name}${this.time(frame)}: of ${formats.count(all)} blocks ${parts.join(", ")}; ` +
      `${formats.share(Number((valid / all / 100).toFixed(3)))} of the slots are valid.`;
  }

  colours(by) {
    const style = getComputedStyle(this.canvas);
    const resolved = resolver(this.canvas.parentElement);
    const names = by === "role"
      ? this.run.roles.map((role, k) => (style.getPropertyValue(`--role-${role}`) ? `--role-${role}` : `--table-${k % 8}`))
      : Array.from({ length: SEQUENTIAL }, (_, k) => `--${by}-${k}`);
    return { found: names.map(resolved), names, ink: resolved("--ink") };
  }

  /** The colour of a cell: the number of a role, or of a step of the ramp. */
  step(by, i) {
    if (by === "role") return this.run.role[i];
    const share = by === "valid" ? this.run.valid[i] / 100 : this.run.erases(i) / (this.run.mostErases || 1);
    return Math.min(SEQUENTIAL - 1, Math.floor(share * SEQUENTIAL));
  }

  /** The number of columns and rows, and the side of a cell: the largest that fits into a wide picture. */
  lay(width) {
    const side = Math.max(4, Math.min(26, Math.floor(Math.sqrt((width * Math.min(width, 380)) / this.run.cells))));
    const columns = Math.max(1, Math.floor(width / side));
    return { side, columns, lines: Math.ceil(this.run.cells / columns) };
  }

  paint() {
    if (!this.run) return;
    const by = this.at("by").value;
    const width = this.canvas.parentElement.clientWidth;
    const { side, columns, lines } = (this.layout = this.lay(width));
    const density = Math.max(1, devicePixelRatio || 1);
    const [w, h] = [columns * side, lines * side];
    Object.assign(this.canvas, { width: Math.round(w * density), height: Math.round(h * density) });
    this.canvas.style.width = `${w}px`;
    const pen = this.canvas.getContext("2d");
    pen.scale(density, density);
    const { found, names, ink } = this.colours(by);
    const gap = side >= 6 ? 1 : 0;
    for (let c = 0; c < this.run.cells; c++) {
      pen.fillStyle = found[this.step(by, this.frame * this.run.cells + c)];
      pen.fillRect((c % columns) * side, Math.floor(c / columns) * side, side - gap, side - gap);
    }
    if (this.cursor >= 0) {
      pen.strokeStyle = ink;
      pen.lineWidth = 2;
      pen.strokeRect((this.cursor % columns) * side, Math.floor(this.cursor / columns) * side, side - gap, side - gap);
    }
    this.legend(by, names);
  }

  legend(by, names) {
    const key = `${by} ${names} ${this.run.mostErases}`;
    if (this.legendFor === key) return;
    this.legendFor = key;
    const list = document.createElement("ul");
    list.className = "key";
    list.setAttribute("aria-label", "Colours of the map");
    const top = (k) => (by === "valid" ? 1 : this.run.mostErases) * (k / SEQUENTIAL);
    const show = (x) => (by === "valid" ? String(Math.round(100 * x)) : formats.count(Number(x.toPrecision(3))));
    const unit = by === "valid" ? " %" : "";
    names.forEach((name, k) => {
      const item = document.createElement("li");
      const patch = document.createElement("i");
      patch.style.background = `var(${name})`;
      item.append(patch, by === "role" ? this.run.roles[k] : `${show(top(k))}–${show(top(k + 1))}${unit}`);
      list.append(item);
    });
    this.at("legend").replaceChildren(list);
  }

  point(event) {
    const { side, columns } = this.layout;
    const bounds = this.canvas.getBoundingClientRect();
    const scale = (columns * side) / bounds.width;
    const column = Math.floor(((event.clientX - bounds.left) * scale) / side);
    const cell = Math.floor(((event.clientY - bounds.top) * scale) / side) * columns + column;
    this.select(column >= 0 && column < columns && cell < this.run.cells ? cell : -1);
  }

  select(cell) {
    if (cell === this.cursor || !this.run) return;
    this.cursor = Math.min(cell, this.run.cells - 1);
    this.paint();
    if (this.cursor < 0) return;
    const { run } = this;
    const i = this.frame * run.cells + this.cursor;
    const [first, count] = [run.starts[this.cursor], run.blocks[this.cursor]];
    const range = count > 1 ? `Blocks ${formats.count(first)} to ${formats.count(first + count - 1)}` : `Block ${formats.count(first)}`;
    this.at("cell").textContent =
      `${range}: ${run.roles[run.role[i]]}, ${run.valid[i]} % valid, ` +
      `${formats.count(Number(run.erases(i).toFixed(2)))} erases${count > 1 ? " in the mean" : ""}`;
  }

  key(event) {
    const { columns } = this.layout;
    const moves = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -this.run.cells, End: this.run.cells };
    if (event.key === " ") this.timer ? this.pause() : this.play();
    else if (event.key in moves) this.select(Math.max(0, Math.min(this.run.cells - 1, Math.max(this.cursor, 0) + moves[event.key])));
    else return;
    event.preventDefault();
  }
}

async function startExplorer() {
  const box = document.getElementById("explorer");
  if (!box) return;
  const fail = (why) => {
    const place = box.querySelector("#ex-fallback");
    place.hidden = false;
    place.textContent = why;
    for (const part of box.querySelectorAll(".controls, canvas, .cell")) part.hidden = true;
  };
  if (typeof DecompressionStream === "undefined") {
    fail("This browser cannot unpack the pictures of the blocks: it lacks DecompressionStream (Chrome 80, Firefox 113, Safari 16.4).");
    return;
  }
  try {
    await new Explorer(box).start();
  } catch (error) {
    fail(`The pictures of the blocks cannot be shown: ${error.message}.`);
  }
}
