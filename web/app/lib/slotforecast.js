// When waiting work will probably start: the queue is played forward with how long each job held its slots lately. Pure.
//
// It is a guess and is called one. Where a length is not known, or a holder has run longer than ever, nothing is said.
import { at, blocker, freeOf, parts } from "./slots.js";

/**
 * How long jobs held their slots, from the entries that ended.
 * @param {import("./slots.js").Entry[]} ended
 * @returns {Map<string, {usual: number, longest: number, count: number}>}
 */
export function lengths(ended) {
  /** @type {Map<string, number[]>} */
  const seen = new Map();
  for (const entry of ended) {
    if (entry.state !== "finished" || !entry.claim || !entry.finishedAt) continue;
    const held = at(entry.finishedAt) - at(entry.claim.claimedAt);
    if (held >= 0) seen.set(entry.job, [...(seen.get(entry.job) ?? []), held]);
  }
  const found = new Map();
  for (const [job, all] of seen) {
    all.sort((one, other) => one - other);
    found.set(job, { usual: all[Math.floor(all.length / 2)], longest: all[all.length - 1], count: all.length });
  }
  return found;
}

/**
 * When a holder is expected to let go; Infinity when nobody can say.
 * @param {import("./slots.js").Entry} entry @param {Map<string, {usual: number, longest: number}>} known @param {number} now
 */
function endOf(entry, known, now) {
  const length = known.get(entry.job);
  const from = at(entry.claim?.claimedAt);
  if (!length || !from) return Infinity;
  if (now <= from + length.usual) return from + length.usual;
  return now <= from + length.longest ? from + length.longest : Infinity;
}

/**
 * @param {import("./slots.js").Pool} pool @param {number} now
 * @returns {{starts: Map<string, number>, known: Map<string, {usual: number, longest: number, count: number}>}}
 *   `starts`: of waiting entries, as far as it can be told
 */
export function forecast(pool, now) {
  const { running, waiting, ended } = parts(pool);
  const known = lengths(ended);
  const starts = new Map();
  const kind = pool.blockedBy?.kind;
  if (kind === "forbid" && !pool.paused) {
    // Only the head can be told: it begins when the run before it ends.
    const before = blocker(pool);
    const end = before ? endOf(before, known, now) : Infinity;
    if (end !== Infinity) starts.set(waiting[0].id, end);
    return { starts, known };
  }
  if (pool.paused || (kind !== undefined && kind !== "slots")) return { starts, known };
  const ends = running.map((entry) => ({ at: endOf(entry, known, now), slots: entry.slots })).sort((one, other) => one.at - other.at);
  let free = freeOf(pool);
  let clock = now;
  for (const entry of waiting) {
    while (free < entry.slots) {
      const next = ends.shift();
      if (!next || next.at === Infinity) return { starts, known };
      clock = Math.max(clock, next.at);
      free += next.slots;
    }
    starts.set(entry.id, clock);
    // What will not be there any more at that time takes no slots.
    if (clock > at(entry.expiresAt)) continue;
    free -= entry.slots;
    const length = known.get(entry.job);
    insert(ends, { at: length ? clock + length.usual : Infinity, slots: entry.slots });
  }
  return { starts, known };
}

/** Keeps the ends in order. @param {{at: number, slots: number}[]} ends @param {{at: number, slots: number}} one */
function insert(ends, one) {
  let low = 0;
  let high = ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle].at <= one.at) low = middle + 1;
    else high = middle;
  }
  ends.splice(low, 0, one);
}
