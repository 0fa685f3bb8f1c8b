// Scales of drawings: spans on a log scale, instants on a line, with ticks where people expect them. Pure.

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Steps of a span axis that have short names. @type {[number, string][]} */
const SPANS = [
  [10, "10 ms"],
  [100, "100 ms"],
  [SECOND, "1 s"],
  [10 * SECOND, "10 s"],
  [MINUTE, "1 min"],
  [10 * MINUTE, "10 min"],
  [HOUR, "1 h"],
  [6 * HOUR, "6 h"],
  [DAY, "1 d"],
  [7 * DAY, "7 d"],
];

/**
 * A log scale of spans, from 0 for the shortest tick to 1 for the longest.
 * @param {(number | undefined)[]} values
 */
export function spanScale(values) {
  const known = /** @type {number[]} */ (values.filter((value) => Number.isFinite(value)));
  const least = Math.max(10, Math.min(...known, 10 * SECOND));
  const most = Math.max(...known, 10 * SECOND);
  const sizes = SPANS.map(([size]) => size);
  const lowest = sizes.findLast((size) => size <= least) ?? sizes[0];
  const to = sizes.find((size) => size >= most && size > lowest) ?? Math.max(most, 10 * lowest);
  // Three ticks at least: on a shorter scale small differences would look great.
  const from = Math.min(lowest, sizes[Math.max(0, sizes.findLastIndex((size) => size <= to) - 2)]);
  const part = (ms) => Math.min(1, Math.max(0, Math.log(Math.max(ms, 1) / from) / Math.log(to / from)));
  const ticks = SPANS.filter(([size]) => size >= from && size <= to).map(([size, text]) => ({ at: part(size), text }));
  return { from, to, part, ticks };
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30]
  .map((each) => each * SECOND)
  .concat([1, 2, 5, 10, 15, 30].map((each) => each * MINUTE))
  .concat([1, 2, 3, 6, 12].map((each) => each * HOUR))
  .concat([1, 2, 7, 14, 30, 90, 365].map((each) => each * DAY));

/**
 * Instants between two others, round in a zone, about as many as wanted.
 * @param {number} from @param {number} to @param {number} wanted @param {number} [offset] of the zone from UTC in ms
 */
export function timeTicks(from, to, wanted, offset = 0) {
  const span = Math.max(1, to - from);
  const step = TIME_STEPS.find((each) => span / each <= wanted) ?? span;
  const ticks = [];
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) ticks.push(at);
  return { step, ticks };
}

const NICE = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];

/** The next round span: what grows beside it moves only when it has to. @param {number} ms */
export function niceSpan(ms) {
  const unit = [DAY, HOUR, MINUTE, SECOND, 1].find((each) => ms >= each) ?? 1;
  const value = Math.max(ms / unit, Number.EPSILON);
  const power = 10 ** Math.floor(Math.log10(value));
  const nice = NICE.find((each) => each * power >= value * 0.999999) ?? 10;
  return nice * power * unit;
}

/**
 * Ticks of a time that begins at 0: `0`, `5 s`, `10 s`.
 * @param {number} span @param {number} wanted
 */
export function spanTicks(span, wanted) {
  const sizes = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...TIME_STEPS];
  const step = sizes.find((each) => span / each <= wanted) ?? span;
  const ticks = [];
  for (let at = 0; at <= span * 1.0001; at += step) ticks.push(at);
  return ticks;
}
