// What a run is called, how it was begun, how long it took, and what a filter asks the daemon for. Pure.
import { instant, plural } from "./format.js";
import { readFilter } from "./filter.js";

/**
 * @typedef {{code: string, text: string, pool: string | null, queue_id: string | null, position?: number}} Waiting
 * @typedef {{kind: string, scheduled_at?: string, principal?: string}} Trigger
 * @typedef {{id: string, job: string, state: string, reason?: string | null, trigger?: Trigger, rerun_of?: string | null,
 *   created_at?: string, started_at?: string | null, ended_at?: string | null, duration_ms?: number | null,
 *   scheduled_at?: string | null, attempt?: number, pool?: string | null, waiting_reason?: Waiting | null}} Row
 */

const ENDED = new Set(["succeeded", "failed", "cancelled", "skipped", "timed_out", "unreadable"]);
/** @param {{state: string}} run */
export const hasEnded = (run) => ENDED.has(run.state);

/**
 * The state as people see it: a run that waits for its turn or its next attempt is not ‘running’.
 * @param {Row} run
 */
export function shownState(run) {
  if (hasEnded(run)) return run.state;
  const code = run.waiting_reason?.code;
  if (code === "retry") return "retrying";
  if (run.state === "pending" || code) return "waiting";
  return run.state;
}

/** How long it took, or has taken so far; undefined if it never started. @param {Row} run @param {number} now */
export function tookMs(run, now) {
  if (typeof run.duration_ms === "number") return run.duration_ms;
  const began = instant(run.started_at);
  if (began === undefined) return undefined;
  const ended = instant(run.ended_at);
  if (ended === undefined && hasEnded(run)) return undefined;
  return Math.max(0, (ended ?? now) - began);
}

/** When it began to do something, or to exist. @param {Row} run */
export const beganAt = (run) => instant(run.started_at) ?? instant(run.created_at);

/** The due moment it stands for. @param {Row} run */
export const dueAt = (run) => run.scheduled_at ?? run.trigger?.scheduled_at;

const KINDS = {
  schedule: ["clock", "schedule", "by schedule"],
  manual: ["play", "by hand", "by hand"],
  catchup: ["again", "caught up", "caught up after a missed fire"],
  boot: ["play", "at boot", "after the machine booted"],
  run: ["dots", "another run", "by another run"],
};

/**
 * What began it: a mark, a word for lists, words for its page.
 * @param {Row} run
 */
export function triggerOf(run) {
  const kind = run.trigger?.kind ?? "";
  const [icon, word, words] = KINDS[kind] ?? ["dots", kind, kind];
  if (run.rerun_of) return { icon: "again", word: "rerun", words: "a rerun", by: run.trigger?.principal };
  return { icon, word, words, by: run.trigger?.principal };
}

const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** When a run of this id was made: ids carry their time. @param {string} id */
export function madeAt(id) {
  const text = /^run_([0-9a-z]{26})$/.exec(id)?.[1];
  if (!text) return undefined;
  let at = 0;
  for (const letter of text.slice(0, 10)) {
    const digit = DIGITS.indexOf(letter);
    if (digit < 0) return undefined;
    at = at * 32 + digit;
  }
  return at;
}

/** States that a filter may name. `waiting` and `retrying` are what people see; the daemon has no words for them. */
export const STATE_WORDS = ["running", "waiting", "retrying", "paused", "succeeded", "failed", "timed_out", "cancelled", "skipped"];
const OF_DAEMON = { waiting: "pending", retrying: "running" };
const KNOWN_STATES = [...STATE_WORDS, "pending"];
export const TRIGGER_WORDS = ["schedule", "manual", "catchup", "boot", "run"];

/**
 * @param {{jobs?: () => string[], pools?: () => string[]}} names
 * @returns {import("./filter.js").FilterKey[]}
 */
export const filterKeys = ({ jobs = () => [], pools = () => [] } = {}) => [
  { key: "state", about: "how it stands", values: STATE_WORDS },
  { key: "job", about: "runs of this job", values: jobs },
  { key: "trigger", about: "what began it", values: TRIGGER_WORDS },
  { key: "pool", about: "its slot pool", values: pools },
  { key: "since", about: "begun then or later", values: ["15m", "1h", "6h", "24h", "7d", "today", "yesterday"] },
  { key: "until", about: "begun before that", values: ["1h", "24h", "today"] },
];

const LENGTH = /^\d+(?:\.\d+)?(?:ms|s|m|h|d|w)$/;

/**
 * A time as the daemon reads it: a length before now, or an instant.
 * @param {string} text @param {(day: "today" | "yesterday" | string) => number | undefined} midnight of a day in the shown zone
 */
export function timeOf(text, midnight) {
  if (LENGTH.test(text)) return text;
  if (text === "today" || text === "yesterday" || /^\d{4}-\d\d-\d\d$/.test(text)) {
    const at = midnight(text);
    return at === undefined ? undefined : new Date(at).toISOString();
  }
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : new Date(at).toISOString();
}

/**
 * What a filter text asks for.
 * @param {string} text
 * @param {(day: string) => number | undefined} midnight
 * @returns {{query: Record<string, string | string[]>, faults: string[], keep?: (run: Row) => boolean, states: string[],
 *   words: string[], isEmpty: boolean}} `keep`: rows that the daemon cannot tell apart are told apart here
 */
export function readRunFilter(text, midnight) {
  const { query: read, words, faults } = readFilter(text, filterKeys());
  /** @type {Record<string, string | string[]>} */
  const query = {};
  const states = read.state ?? [];
  for (const state of states) if (!KNOWN_STATES.includes(state)) faults.push(`no run is ‘${state}’; states are ${STATE_WORDS.join(", ")}`);
  for (const word of read.trigger ?? []) {
    if (!TRIGGER_WORDS.includes(word)) faults.push(`nothing is begun by ‘${word}’; triggers are ${TRIGGER_WORDS.join(", ")}`);
  }
  // What cannot be read is said, and left out.
  const known = states.filter((state) => KNOWN_STATES.includes(state));
  if (known.length > 0) query.state = [...new Set(known.map((state) => OF_DAEMON[state] ?? state))];
  const triggers = read.trigger?.filter((word) => TRIGGER_WORDS.includes(word)) ?? [];
  if (triggers.length > 0) query.trigger = triggers;
  for (const key of ["job", "pool"]) if (read[key]) query[key] = read[key];
  for (const key of ["since", "until"]) {
    const value = read[key]?.at(-1);
    if (!value) continue;
    const time = timeOf(value, midnight);
    if (time) query[key] = time;
    else faults.push(`‘${value}’ is no time; write 30m, 24h, 7d, today or 2026-11-30`);
  }
  if (words.length > 0) query.q = words;
  const narrow = states.includes("retrying") && !states.includes("running");
  const keep = narrow ? (run) => run.state !== "running" || shownState(run) === "retrying" : undefined;
  return { query, faults, keep, states, words, isEmpty: Object.keys(query).length === 0 && faults.length === 0 };
}

/** Quick filters: what they are called and what they write. */
export const QUICK = [
  { key: "all", title: "All", text: "" },
  { key: "failed", title: "Failed", text: "state:failed", icon: "cross" },
  { key: "running", title: "Running", text: "state:running", icon: "turn" },
  { key: "waiting", title: "Waiting", text: "state:waiting", icon: "wait" },
  { key: "retrying", title: "Retrying", text: "state:retrying", icon: "again" },
];

/** The state a filter text asks for, as a quick filter. @param {string[]} states */
export function quickOf(states) {
  if (states.length === 0) return "all";
  if (states.length > 1) return "";
  const word = states[0] === "pending" ? "waiting" : states[0];
  return QUICK.some(({ key }) => key === word) ? word : "";
}

/**
 * A sentence about what a bulk change will do.
 * @param {{count: number, cancel: number, retry: number, rerun: number, retry_failed?: number, collapsed: number}} preview
 */
export function deedsOf(preview) {
  const said = [];
  if (preview.cancel > 0) said.push(`${plural(preview.cancel, "run is", "runs are")} cancelled; a running command gets SIGTERM`);
  if (preview.retry > 0) said.push(`${plural(preview.retry, "run gets", "runs get")} the next attempt now`);
  if (preview.rerun > 0) said.push(`${plural(preview.rerun, "job starts", "jobs start")} as a new run`);
  if (preview.retry_failed) said.push(`${plural(preview.retry_failed, "workflow run is", "workflow runs are")} tried again where ${preview.retry_failed === 1 ? "it" : "they"} failed, as a new run each`);
  if (preview.collapsed > 0) said.push(`${plural(preview.collapsed, "older run is", "older runs are")} left alone: another run stands for ${preview.collapsed === 1 ? "it" : "each"}`);
  return said;
}

/**
 * What was done, in one sentence.
 * @param {{cancelled: number, ending: number, retried: number, rerun: number, retried_failed?: number, collapsed: number, refused_count: number}} done
 */
export function doneWords(done) {
  const said = [];
  if (done.cancelled > 0) said.push(`${plural(done.cancelled, "run")} cancelled${done.ending > 0 ? `, ${done.ending} of them still ending` : ""}`);
  if (done.retried > 0) said.push(`${plural(done.retried, "run")} retried`);
  if (done.rerun > 0) said.push(`${plural(done.rerun, "job")} started again`);
  if (done.retried_failed) said.push(`${plural(done.retried_failed, "workflow run")} tried again where ${done.retried_failed === 1 ? "it" : "they"} failed`);
  if (done.refused_count > 0) said.push(`${plural(done.refused_count, "run")} left alone: they had moved on`);
  return said.length > 0 ? `${said.join("; ")}.` : "Nothing was left to do.";
}

/**
 * Fires to come that a filter would let in once they are runs.
 * @param {{query: Record<string, any>, states: string[], words: string[]}} asked
 * @param {{job: string, at: string}[]} fires
 * @param {Map<string, string>} slotPools of jobs
 */
export function firesOf(asked, fires, slotPools) {
  const { query, states, words } = asked;
  if (query.until || (states.length > 0 && !states.includes("waiting") && !states.includes("pending"))) return [];
  if (query.trigger && !query.trigger.includes("schedule")) return [];
  const lower = words.map((word) => word.toLowerCase());
  return fires.filter(({ job }) =>
    (!query.job || query.job.includes(job))
    && (!query.pool || query.pool.includes(slotPools.get(job)))
    && (lower.length === 0 || lower.some((word) => job.toLowerCase().includes(word))));
}
