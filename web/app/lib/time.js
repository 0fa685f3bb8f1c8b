// Instants in the zone a person chose, spans in words. Pure: `now` and the zone come in as arguments.

const formats = new Map();

function format(zone, options) {
  const key = `${zone}|${JSON.stringify(options)}`;
  let known = formats.get(key);
  if (!known) {
    known = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options });
    formats.set(key, known);
  }
  return known;
}

/** The zone of this browser. */
export const browserZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/**
 * The zone to show a time in.
 * @param {string} choice `utc`, `browser` or `job`
 * @param {string} [ofJob] the zone of the job the time belongs to
 */
export function zoneFor(choice, ofJob) {
  if (choice === "utc") return "UTC";
  if (choice === "job" && ofJob && isZone(ofJob)) return ofJob;
  return browserZone();
}

/** @param {string} zone */
export function isZone(zone) {
  try {
    format(zone, { hour: "2-digit" });
    return true;
  } catch {
    return false;
  }
}

/** What stands beside a time: `UTC`, `CET`, `GMT+5:30`. @param {number} at @param {string} zone */
export function zoneName(at, zone) {
  if (zone === "UTC") return "UTC";
  const parts = format(zone, { hour: "2-digit", timeZoneName: "short" }).formatToParts(at);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? zone;
}

/** `2026-11-30`. @param {number} at @param {string} zone */
export function day(at, zone) {
  const parts = format(zone, { year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(at);
  const of = (type) => parts.find((part) => part.type === type)?.value ?? "";
  return `${of("year")}-${of("month")}-${of("day")}`;
}

/** `14:02:11`. @param {number} at @param {string} zone @param {boolean} [seconds] */
export function clock(at, zone, seconds = true) {
  const options = { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) };
  return format(zone, options).format(at);
}

/**
 * A time as short as its day allows: today only the clock, else the date too.
 * @param {number} at @param {string} zone @param {number} now
 */
export function short(at, zone, now) {
  const date = day(at, zone);
  if (date === day(now, zone)) return clock(at, zone);
  return `${date.slice(0, 4) === day(now, zone).slice(0, 4) ? date.slice(5) : date} ${clock(at, zone, false)}`;
}

/** `2026-11-30 14:02:11 CET`. @param {number} at @param {string} zone */
export const long = (at, zone) => `${day(at, zone)} ${clock(at, zone)} ${zoneName(at, zone)}`;

/** Weekday in three letters. @param {number} at @param {string} zone */
export const weekday = (at, zone) => format(zone, { weekday: "short" }).format(at);

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1000],
];

/**
 * A span in at most two units: `1 d 4 h`, `3 min 20 s`, `4.2 s`, `850 ms`.
 * @param {number} ms
 */
export function span(ms) {
  if (!Number.isFinite(ms)) return "—";
  const all = Math.max(0, Math.round(ms));
  if (all < 1000) return `${all} ms`;
  if (all < 10_000) return `${(Math.floor(all / 100) / 10).toFixed(1)} s`;
  return whole(all);
}

/** A span without parts of a second, for what ticks. @param {number} ms */
export function whole(ms) {
  const all = Math.max(0, ms);
  const at = UNITS.findIndex(([, size]) => all >= /** @type {number} */ (size));
  if (at < 0) return "0 s";
  const [name, size] = /** @type {[string, number]} */ (UNITS[at]);
  const count = Math.floor(all / size);
  const next = /** @type {[string, number] | undefined} */ (UNITS[at + 1]);
  const rest = next ? Math.floor((all - count * size) / next[1]) : 0;
  return rest > 0 && next ? `${count} ${name} ${rest} ${next[0]}` : `${count} ${name}`;
}

/**
 * `3 min ago`, `in 20 s`, `now`.
 * @param {number} at @param {number} now
 */
export function relative(at, now) {
  const away = at - now;
  if (Math.abs(away) < 1000) return "now";
  const text = coarse(Math.abs(away));
  return away < 0 ? `${text} ago` : `in ${text}`;
}

/** The largest unit only, but minutes with seconds below ten. @param {number} ms */
function coarse(ms) {
  if (ms < 600_000) return whole(ms);
  for (const [name, size] of /** @type {[string, number][]} */ (UNITS)) {
    if (ms >= size) return `${Math.floor(ms / size)} ${name}`;
  }
  return whole(ms);
}

/** Milliseconds that clocks of a zone are ahead of UTC. @param {number} at @param {string} zone */
export function offsetOf(at, zone) {
  const second = Math.floor(at / 1000) * 1000;
  return Date.parse(`${day(second, zone)}T${clock(second, zone)}Z`) - second;
}

/**
 * When a day begins in a zone.
 * @param {string} word `today`, `yesterday` or a date like 2026-11-30
 * @param {string} zone @param {number} now
 */
export function midnight(word, zone, now) {
  const shift = word === "yesterday" ? -1 : 0;
  const date = /^\d/.test(word) ? word : day(now, zone);
  const [year, month, date_] = date.split("-").map(Number);
  const wall = Date.UTC(year, month - 1, date_ + shift);
  if (Number.isNaN(wall) || new Date(wall).getUTCMonth() !== (shift ? new Date(wall).getUTCMonth() : month - 1)) return undefined;
  // Twice, for the day on which the clocks change.
  const guess = wall - offsetOf(wall, zone);
  return wall - offsetOf(guess, zone);
}
