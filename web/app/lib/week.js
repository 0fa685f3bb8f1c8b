// A week of fires as a grid of hours on the clock of a zone. Pure.
import { clock, day } from "./time.js";
import { instantOf, shifted, wall } from "./schedule.js";

/**
 * @typedef {{job: string, at: number, count: number}} Batch fires of a job within an hour, and the first of them
 * @typedef {{key: string, batches: Batch[], count: number}} Cell
 */

const HOUR_MS = 3_600_000;
/** A job that fires in so many hours of a week says nothing about one of them. */
const STEADY_HOURS = 7 * 20;

/** Seven dates from this one on. @param {string} first */
export const weekDays = (first) => Array.from({ length: 7 }, (_, at) => shifted(first, at));

/** When the week begins and ends. @param {string} first @param {string} zone */
export const weekSpan = (first, zone) => ({
  from: /** @type {number} */ (instantOf(`${first}T00:00`, zone)),
  to: /** @type {number} */ (instantOf(`${shifted(first, 7)}T00:00`, zone)),
});

/** The hour on a clock: `2026-11-30T02`. @param {number} at @param {string} zone */
export const hourKey = (at, zone) => `${day(at, zone)}T${clock(at, zone, false).slice(0, 2)}`;

/** Whether the clock of the zone shows this hour at all. @param {string} key @param {string} zone */
export function hasHour(key, zone) {
  const at = instantOf(`${key}:00`, zone);
  return at !== undefined && (wall(at, zone).startsWith(key) || wall(at + HOUR_MS - 1000, zone).startsWith(key));
}

/**
 * Jobs that fire in nearly every hour, and all others: the former would hide the latter.
 * @param {Batch[]} batches
 */
export function apart(batches) {
  const hours = new Map();
  for (const { job } of batches) hours.set(job, (hours.get(job) ?? 0) + 1);
  const steady = [...hours].filter(([, count]) => count >= STEADY_HOURS).map(([job]) => job).sort();
  const isSteady = new Set(steady);
  return { steady, others: batches.filter(({ job }) => !isSteady.has(job)) };
}

/**
 * The batches by the hour they are in; within an hour by time, then by name.
 * @param {Batch[]} batches @param {string} zone
 * @returns {Map<string, Cell>}
 */
export function cells(batches, zone) {
  const found = new Map();
  for (const batch of batches) {
    const key = hourKey(batch.at, zone);
    const cell = found.get(key) ?? { key, batches: [], count: 0 };
    cell.batches.push(batch);
    cell.count += batch.count;
    found.set(key, cell);
  }
  for (const cell of found.values()) cell.batches.sort((one, other) => one.at - other.at || (one.job < other.job ? -1 : 1));
  return found;
}

/** How full a cell is, in four steps. @param {number} count @param {number} most */
export const heat = (count, most) => (count === 0 ? 0 : Math.min(4, Math.max(1, Math.ceil((count / Math.max(most, 1)) * 4))));

/**
 * The batches of an answer of the API.
 * @param {any} answer
 * @returns {Batch[]}
 */
export const batchesOf = (answer) => answer.hours.map(({ job, first, count }) => ({ job, at: Date.parse(first), count }));
