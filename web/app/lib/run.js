// What a run's page says in sentences: why it waits and behind whom, how it ended. Pure.
import { instant } from "./format.js";

const ENDS = { one: "st", two: "nd", few: "rd", other: "th" };
const ordinals = new Intl.PluralRules("en", { type: "ordinal" });
/** @param {number} position @param {number} total */
export const place = (position, total) => `${position}${ENDS[ordinals.select(position)]} of ${Math.max(position, total)} in the queue`;

/** What the daemon's short reasons mean, for whoever meets one for the first time. */
const MEANINGS = {
  "queue timeout": "It waited longer in its queue than its queueTimeout allows, and never began.",
  "cancelled by operator": "Somebody took its entry out of the queue.",
  "job removed, disabled, or configuration changed": "The job is not configured as it was when this run was made, so what waited was not begun.",
  "retry superseded": "A newer run of the job began before the next attempt was due; this one gets no other attempt.",
  "retry succeeded": "Another run of the job succeeded before the next attempt was due.",
  "retry cancelled": "Somebody cancelled the retries of the job.",
  "starting deadline passed": "It could not begin within its startingDeadline.",
  "launch interrupted": "The daemon stopped between the claim and the start of the command.",
  "launch failed": "The command could not be started: its shell, directory or user may be missing.",
  "daemon stopped": "The daemon was stopped while the command ran.",
  "daemon died": "The daemon died while the command ran; what became of it is not known.",
  "lease lapsed": "The daemon did not renew its claim in time, so nobody knows how it ended.",
  "crash limit reached": "The daemon died several times while this ran; it is not tried again.",
  "replaced by a newer instance": "The concurrencyPolicy of the job is Replace: a newer run took its place.",
};
/** @param {string | null | undefined} reason */
export const meaning = (reason) => MEANINGS[reason ?? ""];

/**
 * What is ahead of a waiting run: who holds the slots, who is before it in the queue, until when it waits.
 * @param {any} waits the run's waiting reason @param {any} pool the slot pool with its entries @param {string} runId
 */
export function aheadOf(waits, pool, runId) {
  const entries = pool?.entries ?? [];
  const own = entries.find((entry) => entry.id === waits.queue_id) ?? entries.find((entry) => entry.runId === runId && entry.state === "queued");
  const position = own?.position ?? waits.position;
  const holders = entries.filter((entry) => entry.state === "running");
  const before = entries.filter((entry) => entry.state === "queued" && entry.position < (position ?? 0));
  return {
    position,
    total: pool?.queued ?? position ?? 0,
    wants: own?.slots,
    priority: own?.priority,
    free: pool ? Math.max(0, pool.slots - pool.used) : undefined,
    slots: pool?.slots,
    holders,
    before,
    deadline: instant(own?.expiresAt),
    since: instant(own?.queuedAt),
    paused: pool?.paused ?? undefined,
  };
}

/** All attempts of a step, the one that runs is one of them. @param {any} step @returns {any[]} */
export function attemptsOfStep(step) {
  const all = (step.attempts ?? []).map((attempt) => ({ ...attempt, step: step.ref, live: false }));
  if (step.live) {
    const { number, fence, node, worker, pid, claimed_at: startedAt, ending } = step.live;
    all.push({ number, fence, node, worker, pid, started_at: startedAt, ended_at: null, outcome: "running", reason: ending ? `is ended: ${ending.cause} by ${ending.by}` : null, exit_code: null, log_bytes: undefined, step: step.ref, live: true });
  }
  return all.sort((one, other) => other.number - one.number || other.fence - one.fence);
}

/**
 * All attempts of a run, newest first: by their numbers of one step, by their beginnings of several.
 * @param {any} run
 * @returns {any[]}
 */
export function attemptsOf(run) {
  const steps = run.steps ?? [];
  const all = steps.flatMap(attemptsOfStep);
  return steps.length > 1 ? all.sort((one, other) => Date.parse(other.started_at) - Date.parse(one.started_at) || other.fence - one.fence) : all;
}

/** The name of a step with its place in a scatter: ‘load, item 3’. @param {string} ref @param {string} [title] of the step itself */
export function stepName(ref, title) {
  const [base, ...place] = ref.split("#");
  return place.length > 0 ? `${title ?? base}, item ${place.join(", ")}` : (title ?? base);
}

/** Why a step stands as it does: why it waits, else why it ended so. @param {any} step @returns {string} */
export const whyOf = (step) => step.waiting_reason?.text ?? step.reason ?? "";

/** The attempt whose end explains the run's. @param {any} run */
export const lastFailed = (run) => attemptsOf(run).find((attempt) => ["failed", "timed_out", "lost"].includes(attempt.outcome));

/**
 * The last lines of a log, those of standard error if there are any.
 * @param {string} text with the records' tags @param {boolean} isCut the first line is not whole @param {number} most
 * @returns {{stream: "err" | "out", lines: string[]}}
 */
export function lastLines(text, isCut, most) {
  const records = text.split("\n").slice(isCut ? 1 : 0).filter((line) => line.length >= 2);
  const of = (tags) => records.filter((line) => tags.includes(line[0])).map((line) => line.slice(2));
  const err = of(["e", "E"]);
  return err.length > 0 ? { stream: "err", lines: err.slice(-most) } : { stream: "out", lines: of(["o", "O"]).slice(-most) };
}

/** What can be done with a run now. @param {any} run @param {string} shown its state as people see it */
export function deedsFor(run, shown) {
  const ended = ["succeeded", "failed", "cancelled", "skipped", "timed_out"].includes(run.state);
  return { cancel: !ended, retry: shown === "retrying", rerun: ended, cancelRetries: shown === "retrying" };
}
