// Actions on jobs and runs that more than one page offers; each asks before it does.
import { html } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { ask } from "./dialog.js";
import { say } from "./toast.js";

/** @param {string} id */
const runLink = (id) => (id ? { link: { href: to.run(id), text: "Open the run" } } : {});

/** Starts a job. @param {string} job @returns {import("./dialog.js").Wish} */
export const startJob = (job) => ({
  title: `Start ${job}`,
  will: html`<p>Starts the job <strong>${job}</strong> once, now. If its slot pool is full, it waits in the queue.</p>`,
  verb: "Start",
  request: () => ({ method: "POST", path: `/jobs/${encodeURIComponent(job)}/start` }),
  cli: () => ["job", "start", job],
  done: (answer) => [answer.queued ? `${job} waits for slots of ${answer.pool}` : `${job} starts`, runLink(answer.runId)],
});

const LENGTHS = /** @type {[string, string][]} */ ([["900", "15 minutes"], ["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"], ["604800", "1 week"]]);

/** Pauses a job for a time. @param {string} job @returns {import("./dialog.js").Wish} */
export const pauseJob = (job) => ({
  title: `Pause ${job}`,
  will: html`<p>Holds the job <strong>${job}</strong>: it does not fire, and what waits of it does not begin. Running commands go on.</p>`,
  verb: "Pause",
  fields: [
    { name: "seconds", label: "For", type: "choice", choices: LENGTHS, value: "3600", hint: "It goes on by itself then." },
    { name: "note", label: "Why", hint: "Shown to everybody who asks why it does not run." },
  ],
  request: ({ seconds, note }) => ({ method: "POST", path: `/jobs/${encodeURIComponent(job)}/pause`, body: { durationSeconds: Number(seconds), ...(note ? { note } : {}) } }),
  cli: ({ seconds, note }) => ["job", "pause", job, "--for", `${seconds}s`, ...(note ? ["--reason", note] : [])],
  done: () => `${job} is paused`,
});

/** The next attempt of a run that waits for it, now. @param {string} job @param {string} run @returns {import("./dialog.js").Wish} */
export const retryNow = (job, run) => ({
  title: `Retry ${job} now`,
  will: html`<p>The next attempt of this run of <strong>${job}</strong> begins at once instead of after its back-off.</p>`,
  verb: "Retry now",
  request: () => ({ method: "POST", path: `/api/runs/${encodeURIComponent(run)}:retry` }),
  done: (answer) => [`Attempt ${answer.attempt} of ${job} begins`, runLink(run)],
});

/** What a bulk action would do to each run, in words. */
const DEEDS = { retry: "tried again now", rerun: "started as a new run", cancel: "cancelled", collapsed: "left alone: another run of its job stands for it" };

/**
 * Tries runs again that a filter matches: first asks the daemon what that would be, then the person.
 * @param {{title: string, filter: object, hint?: any}} wish
 */
export async function retryMatching({ title, filter, hint }) {
  const path = "/api/runs:retry_matching";
  let preview;
  try {
    preview = await act("POST", path, { body: { filter, preview: true } });
  } catch (problem) {
    say(problem.detail ?? String(problem), { bad: true });
    return;
  }
  if (preview.count === 0) {
    say("Nothing to retry: these runs have moved on.");
    return;
  }
  ask({
    title,
    will: html`<p>${[preview.retry > 0 && `${plural(preview.retry, "run")} that ${preview.retry === 1 ? "waits" : "wait"} for another attempt ${preview.retry === 1 ? "gets" : "get"} it now`, preview.rerun > 0 && `${plural(preview.rerun, "job")} ${preview.rerun === 1 ? "starts" : "start"} as a new run`].filter(Boolean).join("; ")}.</p>
      <ul class="tiny">${preview.sample.map((run) => html`<li key=${run.id}><strong>${run.job}</strong> ${DEEDS[run.action] ?? run.action}</li>`)}</ul>
      ${preview.count > preview.sample.length && html`<p class="quiet tiny">and ${preview.count - preview.sample.length} more</p>`}${hint}`,
    verb: "Retry",
    request: () => ({ method: "POST", path, body: { filter, preview: false, expected_count: preview.count } }),
    done: (answer) => `${plural(answer.retried + answer.rerun, "job")} tried again${answer.refused_count > 0 ? `, ${answer.refused_count} refused` : ""}`,
  });
}
