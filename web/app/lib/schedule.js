// Schedules as people ask about them: moments with their offset, local times as instants, remarks about changes of the
// clock, quick questions. Pure: `now` and zones come in as arguments.
import { clock, day, weekday } from "./time.js";

/** @typedef {{instant: string, local: string, second?: string}} Fire a moment on up to three clocks */

const MOMENT = /^(\d{4,}-\d\d-\d\d)T(\d\d:\d\d)(?::(\d\d))?(?:\.\d+)?(Z|[+-]\d\d:\d\d)$/;
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/**
 * A time of the API with its offset, in parts; undefined for what is none.
 * @param {string | undefined} text like `2026-03-29T03:00:00+02:00`
 */
export function moment(text) {
  const found = MOMENT.exec(text ?? "");
  if (!found) return undefined;
  const [, date, minute, second, offset] = found;
  return {
    date,
    weekday: DAYS[new Date(`${date}T00:00:00Z`).getUTCDay()],
    clock: second && second !== "00" ? `${minute}:${second}` : minute,
    offset: offset === "Z" ? "+00:00" : offset,
  };
}

/** The day after or before a date. @param {string} date `2026-11-30` @param {number} by */
export function shifted(date, by) {
  return new Date(Date.parse(`${date}T00:00:00Z`) + by * 86_400_000).toISOString().slice(0, 10);
}

/**
 * A day as one says it: `today`, `tomorrow`, `yesterday`, `Mon`, or its date.
 * @param {string} date @param {string} today
 */
export function dayWord(date, today) {
  const away = Math.round((Date.parse(date) - Date.parse(today)) / 86_400_000);
  if (away === 0) return "today";
  if (away === 1) return "tomorrow";
  if (away === -1) return "yesterday";
  const name = DAYS[new Date(`${date}T00:00:00Z`).getUTCDay()];
  return away > -7 && away < 7 ? name : `${name} ${date}`;
}

/** What a clock in a zone shows, as `2026-11-30T02:30:00`: the form of a field for date and time. @param {number} at @param {string} zone */
export const wall = (at, zone) => `${day(at, zone)}T${clock(at, zone)}`;

/**
 * The instant at which the clock of a zone shows this; of two the earlier one, and in a gap the first after it.
 * @param {string} local `2026-11-30T02:30` with or without seconds @param {string} zone
 * @returns {number | undefined}
 */
export function instantOf(local, zone) {
  const text = local.length === 16 ? `${local}:00` : local;
  const asUtc = Date.parse(`${text}Z`);
  if (Number.isNaN(asUtc)) return undefined;
  const offsetAt = (at) => Date.parse(`${wall(at, zone)}Z`) - Math.floor(at / 1000) * 1000;
  const around = [asUtc - 86_400_000, asUtc + 86_400_000].map(offsetAt);
  const fitting = around.map((offset) => asUtc - offset).filter((at) => wall(at, zone) === text);
  if (fitting.length > 0) return Math.min(...fitting);
  // Left out by a change of the clock: the change itself is looked for.
  let [low, high] = [asUtc - Math.max(...around), asUtc - Math.min(...around)];
  while (high - low > 1000) {
    const middle = Math.floor((low + high) / 2000) * 1000;
    if (wall(middle, zone) < text) low = middle;
    else high = middle;
  }
  return high;
}

/**
 * What is to be said beside each fire: the clock changed since the one before, or the time was moved or comes twice.
 * @param {Fire[]} fires @param {{code: string, message: string}[]} [lints]
 * @returns {(string | undefined)[]}
 */
export function clockRemarks(fires, lints = []) {
  const ofClock = lints.filter(({ code }) => code.startsWith("dst-"));
  let before;
  return fires.map(({ local }) => {
    const now = moment(local);
    if (!now) return undefined;
    const lint = ofClock.find(({ message }) => message.startsWith(now.date));
    const changed = before && before !== now.offset ? `the clock changes from ${before} to ${now.offset}` : undefined;
    before = now.offset;
    return lint ? lint.message.replace(/^[^:]*: /, "") : changed;
  });
}

/**
 * The first moment that is not over.
 * @param {string[]} instants @param {number} now
 */
export const upcoming = (instants, now) => instants.find((instant) => Date.parse(instant) > now);

/**
 * The expression with the place that is wrong under it; columns count characters.
 * @param {string} expression @param {number} column @param {number} length
 */
export const caret = (expression, column, length) => `${expression}\n${" ".repeat(column)}${"^".repeat(Math.max(1, length))}`;

/** A pause whose end is so far away that it means: until somebody ends it. */
export const OPEN_END = "9000-01-01T00:00:00Z";
/** @param {string | null | undefined} until */
export const isOpenEnd = (until) => !until || until >= "9000";

/**
 * What to send for a pause as it was chosen.
 * @param {any} values how it ends, until when, and why @param {number} now @param {string} zone
 */
export function pauseBody({ end, until, note }, now, zone) {
  const noted = note.trim() ? { note: note.trim() } : {};
  if (/^\d+$/.test(end)) return { durationSeconds: Number(end), ...noted };
  return { until: pauseEnd(end, until, now, zone), ...noted };
}

/** @param {string} end @param {string} until @param {number} now @param {string} zone */
function pauseEnd(end, until, now, zone) {
  if (end === "open") return OPEN_END;
  const local = end === "tomorrow" ? `${shifted(day(now, zone), 1)}T08:00` : until;
  const at = instantOf(local, zone);
  return at === undefined ? local : new Date(at).toISOString().replace(".000Z", "Z");
}

/**
 * Times one is likely to ask about: recent moments that did not simply run, one of each streak, then others; each with a word.
 * @param {{local: string, outcome: string, skipped?: {code: string} | null}[]} fires newest first @param {string} today in the zone of the fires
 * @param {number} [count]
 */
export function questions(fires, today, count = 8) {
  const kind = (fire) => `${fire?.outcome} ${fire?.skipped?.code}`;
  const odd = fires.filter((fire, at) => fire.outcome !== "run" && kind(fire) !== kind(fires[at - 1])).slice(0, count - 3);
  const plain = fires.filter((fire) => fire.outcome === "run").slice(0, count - odd.length);
  return [...odd, ...plain].map((fire) => {
    const parts = moment(fire.local);
    return { at: fire.local, outcome: fire.outcome, word: parts ? `${dayWord(parts.date, today)} ${parts.clock}` : fire.local };
  });
}

/**
 * Names that are nearly this one, the nearest first.
 * @param {string} name @param {string[]} names @param {number} [count]
 */
export function near(name, names, count = 4) {
  const wanted = name.toLowerCase();
  return names
    .map((each) => ({ each, far: distance(wanted, each.toLowerCase()) }))
    .filter(({ each, far }) => far <= Math.max(2, Math.floor(wanted.length / 3)) || (wanted.length > 2 && each.toLowerCase().includes(wanted)))
    .sort((one, other) => one.far - other.far)
    .slice(0, count)
    .map(({ each }) => each);
}

/** Letters to change, add or take out. @param {string} one @param {string} other */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at += 1) {
    const next = [at];
    for (let to = 1; to <= other.length; to += 1) {
      next[to] = Math.min(row[to] + 1, next[to - 1] + 1, row[to - 1] + (one[at - 1] === other[to - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[other.length];
}

/** `Mon 2026-11-30 02:30` on the clock of a zone. @param {number} at @param {string} zone */
export const dated = (at, zone) => `${weekday(at, zone)} ${day(at, zone)} ${clock(at, zone, at % 60_000 !== 0)}`;
