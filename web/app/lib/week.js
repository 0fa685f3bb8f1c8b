// A week of fires as a grid of hours on the clock of a zone. Pure: from the calendar as the API has it.
import { clock, day } from "./time.js";
import { instantOf, shifted, wall } from "./schedule.js";

/**
 * @typedef {{job: string, at: string, count: number}} Due a job within an hour, its first moment there, and how many there are
 * @typedef {{day: string, hour: number, total: number, jobs: number, fires: Due[]}} Hour only the first of many jobs are among its fires
 * @typedef {{key: string, fires: Due[], count: number, jobs: number, unnamed: number}} Cell `unnamed`: jobs that are not among its fires
 */

const HOUR_MS = 3_600_000;
/** A job that fires in so many hours of a week says nothing about one of them. */
const STEADY_HOURS = 7 * 20;

/** Seven dates from this one on. @param {string} first */
export const weekDays = (first) => Array.from({ length: 7 }, (_, at) => shifted(first, at));

/** The hour on a clock: `2026-11-30T02`. @param {number} at @param {string} zone */
export const hourKey = (at, zone) => `${day(at, zone)}T${clock(at, zone, false).slice(0, 2)}`;

/** Whether the clock of the zone shows this hour at all. @param {string} key @param {string} zone */
export function hasHour(key, zone) {
  const at = instantOf(`${key}:00`, zone);
  return at !== undefined && (wall(at, zone).startsWith(key) || wall(at + HOUR_MS - 1000, zone).startsWith(key));
}

/** Jobs that fire in nearly every hour: they would hide all others. @param {Hour[]} hours @returns {string[]} */
export function steadyJobs(hours) {
  const found = new Map();
  for (const { fires } of hours) for (const { job } of fires) found.set(job, (found.get(job) ?? 0) + 1);
  return [...found].filter(([, count]) => count >= STEADY_HOURS).map(([job]) => job).sort();
}

/**
 * The hours by the cell they belong to, without some jobs. An hour that comes twice is one cell.
 * @param {Hour[]} hours @param {string[]} [without]
 * @returns {Map<string, Cell>}
 */
export function cells(hours, without = []) {
  const left = new Set(without);
  /** @type {Map<string, Cell>} */
  const found = new Map();
  for (const hour of hours) {
    const key = `${hour.day}T${String(hour.hour).padStart(2, "0")}`;
    const fires = hour.fires.filter(({ job }) => !left.has(job));
    const taken = hour.fires.filter(({ job }) => left.has(job));
    const jobs = hour.jobs - taken.length;
    if (jobs === 0) continue;
    const count = hour.total - taken.reduce((sum, each) => sum + each.count, 0);
    const before = found.get(key);
    const cell = { key, fires: [...(before?.fires ?? []), ...fires], count: (before?.count ?? 0) + count, jobs: 0, unnamed: (before?.unnamed ?? 0) + jobs - fires.length };
    cell.jobs = new Set(cell.fires.map(({ job }) => job)).size + cell.unnamed;
    found.set(key, cell);
  }
  return found;
}

/** How full a cell is, in four steps. @param {number} count @param {number} most */
export const heat = (count, most) => (count === 0 ? 0 : Math.min(4, Math.max(1, Math.ceil((count / Math.max(most, 1)) * 4))));
