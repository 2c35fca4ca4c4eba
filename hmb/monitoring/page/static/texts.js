// Texts for numbers: bytes, times, rates and durations.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const whole = new Intl.NumberFormat("en");

// Numbers below 1,000 need no separator. They skip `format`, which is slow, because most numbers of a page are small.
export function number(value) {
  if (value === null || value === undefined) return "–";
  return Number.isInteger(value) && value >= 0 && value < 1000 ? String(value) : whole.format(value);
}

// A number with its noun, for example "1 batch" or "2 batches".
export const count = (value, one, several = `${one}s`) => `${number(value)} ${value === 1 ? one : several}`;

export function size(bytes) {
  if (bytes === null) return "unknown size";
  let value = bytes, unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit ? value.toFixed(1) : value} ${UNITS[unit]}`;
}

// A time in ms since 1970, in UTC, as `hmb state` prints it.
// A client can send a time that is too large for a date. The page shows such a time as a number.
const GREATEST_DATE = 8.64e15; // ms, of JavaScript's Date
export const time = (ms) => (ms === null || ms < 0 ? "–" : ms > GREATEST_DATE ? `${ms} ms` : new Date(ms).toISOString());
export const clock = (ms) => new Date(ms).toISOString().slice(11, 19);

export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${Math.round(ms * 100) / 100} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  return s < 3600 ? `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

export const rate = (value) => (value === null || value === undefined ? "–" : `${value < 10 ? value.toFixed(1) : whole.format(Math.round(value))}/s`);
