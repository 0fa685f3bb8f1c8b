// What a job is now, in words and by order of importance. Pure: from the job as the API has it.
import { plural } from "./format.js";

const BAD = ["failed", "timed_out", "lost", "expired"];

/**
 * The states a job is in, the one to show first at the head.
 * @param {any} job
 * @returns {string[]} of disabled, paused, failing, retrying, late, running, queued, fine
 */
export function statesOf(job) {
  const found = [];
  if (!job.enabled) found.push("disabled");
  if (job.paused) found.push("paused");
  if (isFailing(job)) found.push("failing");
  if (isRetrying(job)) found.push("retrying");
  if (job.late?.length > 0) found.push("late");
  if (job.running > 0) found.push("running");
  if (job.pool?.queued > 0) found.push("queued");
  if (found.length === 0) found.push("fine");
  return found;
}

/** It began, and nothing of it runs now: it waits for another attempt. @param {any} job */
export const isRetrying = (job) => job.last_run?.state === "running" && job.running === 0;

/** The state of its last run, more exactly: waiting for slots, or for another attempt. @param {any} job */
export const runState = (job) => (isRetrying(job) ? "retrying" : job.last_run.state === "pending" && job.pool ? "queued" : job.last_run.state);

/** The last run that ended was a failure, or its attempts have failed so far. @param {any} job */
export const isFailing = (job) => isRetrying(job) || BAD.includes(job.recent?.[0]?.state ?? "");

/** What happens when it fires while it still runs. @param {any} job */
export function overlap(job) {
  if (job.concurrency_policy === "Replace") return "An instance that still runs is ended first (Replace).";
  if (job.concurrency_policy === "Forbid") {
    return job.pool ? "While an instance runs, the next one waits in the queue (Forbid)." : "While an instance runs, the next one is skipped (Forbid).";
  }
  return "Instances may run side by side (Allow).";
}

/** What becomes of a start while another instance runs. @param {any} job */
function beside(job) {
  if (job.concurrency_policy === "Replace") return "that is ended for this one (Replace)";
  if (job.concurrency_policy !== "Forbid") return "they run side by side (Allow)";
  return job.pool ? "this one waits until that has ended (Forbid)" : "the start will be refused (Forbid)";
}

/** What a start by hand will do, in sentences. @param {any} job @returns {string[]} */
export function startWill(job) {
  const said = [];
  if (job.pool) {
    const ahead = job.pool.queued > 0 ? `, behind ${plural(job.pool.queued, "entry", "entries")} of this job alone` : "";
    said.push(`It enters the queue of slot pool ${job.pool.name} with priority ${job.pool.priority} and waits for ${plural(job.pool.slots, "slot")}${ahead}.`);
  } else said.push("It takes no slots, so it begins at once.");
  if (job.running > 0) said.push(`${plural(job.running, "instance")} ${job.running === 1 ? "runs" : "run"} now; ${beside(job)}.`);
  if (job.paused) said.push("The job is paused; a start by hand does not mind.");
  return said;
}

/** How many of the runs that succeeded or failed were good. @param {{state: string}[]} runs */
export function successOf(runs) {
  const ended = runs.filter(({ state }) => state === "succeeded" || BAD.includes(state));
  const good = ended.filter(({ state }) => state === "succeeded").length;
  return { good, of: ended.length };
}

/** How long a run typically takes; undefined where none has. @param {{duration_ms?: number | null}[]} runs */
export function median(runs) {
  const lengths = runs.flatMap(({ duration_ms: took }) => (typeof took === "number" ? [took] : [])).sort((one, other) => one - other);
  return lengths[Math.floor(lengths.length / 2)];
}
