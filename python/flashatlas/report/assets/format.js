// Values as text, with their units. The names of `formats` are what the specifications and data tables ask for.

const trimmed = (value, digits) => Number(value.toPrecision(digits)).toLocaleString("en-GB", { maximumFractionDigits: 12 });

function scaled(value, digits, steps) {
  for (const [unit, size] of steps) if (Math.abs(value) >= size) return `${trimmed(value / size, digits)} ${unit}`;
  return `${trimmed(value, digits)} ${steps[steps.length - 1][0]}`;
}

const missing = (format) => (value) => (value === null || value === undefined || Number.isNaN(value) ? "–" : format(value));

const formats = {
  duration: missing((ns) => (ns === 0 ? "0" : scaled(ns, 7, [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]]))),
  bytes: missing((n) => (n < 1024 ? `${n} B` : scaled(n, 5, [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]))),
  rate: missing((n) => `${trimmed(n / 1e6, 6)} MB/s`),
  share: missing((x) => `${trimmed(100 * x, 6)} %`),
  ratio: missing((x) => x.toLocaleString("en-GB", { minimumFractionDigits: Number.isInteger(x) ? 0 : 3, maximumFractionDigits: 4 })),
  count: missing((n) => trimmed(n, 15)),
  short: missing((n) => (Math.abs(n) < 10000 ? trimmed(n, 6) : scaled(n, 6, [["G", 1e9], ["M", 1e6], ["k", 1e3]]).replace(" ", " "))),
  text: (value) => String(value),
};
