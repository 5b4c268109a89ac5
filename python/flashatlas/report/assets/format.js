// Values as text, with their units. Specifications and data tables use the names of `formats`.

// one formatter for all numbers: making one takes longer than all other work for a mark
const plain = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 12 });
const three = new Intl.NumberFormat("en-GB", { minimumFractionDigits: 3, maximumFractionDigits: 3 });
const trimmed = (value, digits) => plain.format(Number(value.toPrecision(digits)));

function scaled(value, digits, steps) {
  for (const [unit, size] of steps) if (Math.abs(value) >= size) return `${trimmed(value / size, digits)} ${unit}`;
  return `${trimmed(value, digits)} ${steps[steps.length - 1][0]}`;
}

const BINARY = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];

/** Units of the numbers behind a format, for the headings of downloaded data. */
const UNITS = { duration: "ns", bytes: "bytes", memory: "bytes", rate: "bytes/s", share: "of 1" };

const headed = (title, kind) => (UNITS[kind] ? `${title} (${UNITS[kind]})` : title);

const missing = (format) => (value) => (value === null || value === undefined || Number.isNaN(value) ? "–" : format(value));

const formats = {
  duration: missing((ns) => (ns === 0 ? "0" : scaled(ns, 7, [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]]))),
  bytes: missing((n) => scaled(n, 7, BINARY)),
  memory: missing((n) => scaled(n, 3, BINARY)),
  rate: missing((n) => (n === 0 ? "0" : scaled(n, 6, [["GB/s", 1e9], ["MB/s", 1e6], ["kB/s", 1e3], ["B/s", 1]]))),
  share: missing((x) => `${trimmed(100 * x, 6)} %`),
  nines: missing((left) => `${trimmed(100 * (1 - left), 14)} %`), // `left` is the share that is not done yet
  ratio: missing((x) => three.format(x)),
  count: missing((n) => trimmed(n, 15)),
  short: missing((n) => (Math.abs(n) < 10000 ? trimmed(n, 6) : scaled(n, 6, [["G", 1e9], ["M", 1e6], ["k", 1e3]]).replace(" ", " "))),
  text: (value) => String(value),
};

/** The format of ticks. With the three digits that a ratio has in tables, close ticks would look the same. */
const tickKind = (kind) => (kind === "ratio" ? "count" : kind);

/** Words for ticks at any values, with the fewest digits that keep each tick within a twentieth of their range. */
function tickWords(values, kind) {
  const range = Math.max(...values) - Math.min(...values);
  const off = (value) => range / 20 || Math.abs(value) * 1e-6;
  const digits = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12].find((n) => values.every((value) => Math.abs(value - Number(value.toPrecision(n))) <= off(value))) ?? 15;
  return values.map((value) => formats[tickKind(kind)](Number(value.toPrecision(digits))));
}
