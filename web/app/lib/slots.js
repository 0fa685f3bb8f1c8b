// What a slot pool's answer means: who holds, who waits, why, until when. Pure: a pool of `GET /pools` in, facts out.
import { instant, number, plural } from "./format.js";

/**
 * @typedef {{node: string, fence: number, claimedAt: string, leaseUntil: string | null, pid: number | null}} Claim
 * @typedef {{id: string, job: string, runId: string, attempt: number, kind: string, state: string, slots: number, priority: number,
 *   position?: number, waitingReason?: string, queuedAt: string, expiresAt: string, finishedAt: string | null, reason: string | null,
 *   node: string | null, readmitted: number, claim: Claim | null}} Entry
 * @typedef {{name: string, slots: number, configuredSlots: number, maxQueued: number, used: number, queued: number, truncated: boolean,
 *   paused: {until: string | null, note: string, by: string} | null, draining: boolean, blockedBy: {kind: string, since: string} | null,
 *   entries?: Entry[]}} Pool
 */

/** The entries by what they are. @param {Pool} pool */
export function parts(pool) {
  const all = pool.entries ?? [];
  const running = all.filter((entry) => entry.state === "running");
  const waiting = all.filter((entry) => entry.state === "queued");
  const ended = all.filter((entry) => entry.state !== "running" && entry.state !== "queued");
  return { running, waiting, ended, head: waiting[0] };
}

/** @param {Pool} pool */
export const freeOf = (pool) => Math.max(pool.slots - pool.used, 0);

/**
 * The pool in one state and one word: the worst thing that is true of it.
 * @param {Pool} pool
 * @returns {{state: string, word: string}}
 */
export function condition(pool) {
  if (pool.paused) return { state: "paused", word: "paused" };
  if (pool.draining) return { state: "draining", word: "draining" };
  if (pool.queued >= pool.maxQueued) return { state: "bad", word: "queue full" };
  if (pool.queued > 0 && pool.blockedBy && pool.blockedBy.kind !== "slots") return { state: "warning", word: "head held up" };
  if (pool.queued > 0) return { state: "waiting", word: `${number(pool.queued)} waiting` };
  if (pool.used >= pool.slots) return { state: "full", word: "full" };
  if (pool.used > 0) return { state: "running", word: "in use" };
  return { state: "free", word: "idle" };
}

/** The claim that a head with `concurrencyPolicy: Forbid` waits for, if it is in this pool. @param {Pool} pool */
export function blocker(pool) {
  const { running, head } = parts(pool);
  return pool.blockedBy?.kind === "forbid" ? running.find((entry) => entry.job === head?.job && entry.runId !== head.runId) : undefined;
}

/** `2 slots`, `1 slot`. @param {number} count */
export const slotsWord = (count) => plural(count, "slot");

/** @param {number} count */
const isFree = (count) => (count === 0 ? "none is free" : count === 1 ? "1 is free" : `${number(count)} are free`);

/**
 * Why the first of the queue waits, and what that means for the others.
 * @param {Pool} pool
 * @returns {undefined | {kind: string, since?: string, head: Entry, text: string, behind: string, remedy: string}}
 */
export function why(pool) {
  const { head } = parts(pool);
  if (pool.queued === 0 || !head) return undefined;
  const kind = pool.blockedBy?.kind ?? "none";
  const others = pool.queued - 1;
  const behind = others === 0 ? "" : `${plural(others, "entry", "entries")} ${others === 1 ? "waits" : "wait"} behind it, whatever ${others === 1 ? "its" : "their"} priority and size.`;
  return { kind, since: pool.blockedBy?.since, head, behind, ...reasons(pool, head)[kind] ?? { text: `waits: ${head.waitingReason ?? kind}.`, remedy: "" } };
}

/** @param {Pool} pool @param {Entry} head @returns {Record<string, {text: string, remedy: string}>} */
const reasons = (pool, head) => ({
  none: { text: "is first and is admitted with the next pass.", remedy: "" },
  slots: { text: `waits for ${slotsWord(head.slots)}; ${isFree(freeOf(pool))}.`, remedy: "" },
  node: {
    text: `can only be claimed by node ${head.node ?? "that queued it"}.`,
    remedy: "",
  },
  job_paused: { text: "waits because its job is paused.", remedy: "Resume the job, or cancel the entry." },
  pool_paused: { text: "waits because the pool is paused: nothing is admitted.", remedy: "" },
  forbid: {
    text: `waits until the run before it has ended (concurrencyPolicy: Forbid); ${freeOf(pool) === 0 ? "no slot is free" : `${slotsWord(freeOf(pool))} would be free`}.`,
    remedy: "Cancel one of the two, or wait; with Allow both would run.",
  },
  drift: {
    text: "waits because this node’s configuration of its job differs from the one published last.",
    remedy: "Reload the configuration of this node, or let a node with the published one claim it.",
  },
});

/** What a drain means now. @param {Pool} pool */
export function drainSentence(pool) {
  if (!pool.draining) return "";
  const running = parts(pool).running.length;
  const claims = running > 0 ? plural(running, "claim") : "";
  const queued = pool.queued > 0 ? `${number(pool.queued)} waiting ${pool.queued === 1 ? "entry" : "entries"}` : "";
  const what = [claims, queued].filter(Boolean).join(" and ");
  const one = running + pool.queued === 1;
  const until = what ? ` until ${what} ${one ? "ends" : "end"}` : " until the next pass";
  return `Draining from ${number(pool.slots)} to ${number(pool.configuredSlots)}: new work is refused${until}. What has entered keeps its place, at ${slotsWord(pool.slots)}.`;
}

/** How full the queue is, in words. @param {Pool} pool */
export function backlog(pool) {
  const part = pool.maxQueued > 0 ? pool.queued / pool.maxQueued : 0;
  const room = Math.max(pool.maxQueued - pool.queued, 0);
  const tone = part >= 1 ? "bad" : part >= 0.8 ? "wait" : "calm";
  const text = room === 0 ? "the queue is full: new work is refused" : `room for ${number(room)} more`;
  return { part: Math.min(part, 1), room, tone, text };
}

/** What went out lately, by state. @param {Entry[]} ended */
export function outcomes(ended) {
  const count = (state) => ended.filter((entry) => entry.state === state).length;
  return { finished: count("finished"), expired: count("expired"), cancelled: count("cancelled") };
}

/** What the kinds of entries are called. */
const KINDS = { scheduled: "by schedule", manual: "started by hand", retry: "a retry", catchup: "caught up", task: "a task", poke: "a poke", boot: "at boot" };
/** @param {string} kind */
export const kindWord = (kind) => KINDS[kind] ?? kind;

/**
 * Ahead of each waiting entry: how many entries, and how many slots they want.
 * @param {Entry[]} waiting in order
 * @returns {Map<string, {entries: number, slots: number}>}
 */
export function ahead(waiting) {
  const found = new Map();
  let slots = 0;
  waiting.forEach((entry, index) => {
    found.set(entry.id, { entries: (entry.position ?? index + 1) - 1, slots });
    slots += entry.slots;
  });
  return found;
}

/**
 * A colour for each job that holds slots: the one it had, else the one its name leads to, else the next that nobody has.
 * @param {Map<string, number>} before @param {string[]} jobs @param {number} count
 * @returns {Map<string, number>}
 */
export function hues(before, jobs, count = 8) {
  const found = new Map();
  const unique = [...new Set(jobs)];
  const taken = new Set();
  for (const job of unique) {
    const had = before.get(job);
    if (had !== undefined && !taken.has(had)) {
      found.set(job, had);
      taken.add(had);
    }
  }
  for (const job of unique) {
    if (found.has(job)) continue;
    let hue = [...job].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) >>> 0, 7) % count;
    for (let step = 0; step < count && taken.has(hue); step += 1) hue = (hue + 1) % count;
    found.set(job, hue);
    taken.add(hue);
  }
  return found;
}

/**
 * Whether a pool is meant by the filter of the page.
 * @param {Pool} pool @param {{query: Record<string, string[]>, words: string[]}} filter
 */
export function matches(pool, { query, words }) {
  const named = words.every((word) => pool.name.toLowerCase().includes(word.toLowerCase()));
  const is = query.is ?? [];
  const jobs = query.job ?? [];
  const hasJob = jobs.length === 0 || (pool.entries ?? []).some((entry) => (entry.state === "running" || entry.state === "queued") && jobs.includes(entry.job));
  return named && hasJob && (is.length === 0 || is.some((word) => standing(pool).includes(word)));
}

/** Everything that is true of a pool, as words of a filter. @param {Pool} pool */
export function standing(pool) {
  const found = [];
  if (pool.paused) found.push("paused");
  if (pool.draining) found.push("draining");
  if (pool.queued > 0) found.push("waiting");
  if (pool.queued >= pool.maxQueued) found.push("full");
  if (pool.used > 0) found.push("held");
  if (pool.used === 0 && pool.queued === 0) found.push("idle");
  if (pool.blockedBy && pool.blockedBy.kind !== "slots") found.push("blocked");
  return found;
}

/** The instant of an entry's field in milliseconds, 0 if it has none. @param {string | null | undefined} text */
export const at = (text) => instant(text) ?? 0;
