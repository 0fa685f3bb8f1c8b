// What can be done with a run, each as a wish that says what it will do before it is done.
import { html } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { plural, shortId } from "../lib/format.js";
import { to } from "../lib/route.js";
import { shownState } from "../lib/runs.js";
import { wordOf } from "../ui/state.js";

const pathOf = (run, verb) => `/api/runs/${encodeURIComponent(run.id)}${verb}`;
const name = (run) => html`<strong>${run.job}</strong> <code title=${run.id}>${shortId(run.id)}</code>`;
const openRun = (id) => ({ link: { href: to.run(id), text: "Open it" } });

/** What a cancel does, by how the run stands. */
function cancelWill(run) {
  const state = shownState(run);
  if (state === "waiting") return "It waits and has not begun: it is withdrawn from the queue and ends as cancelled.";
  if (state === "retrying") return "It waits for its next attempt: it gets none and ends as cancelled.";
  return "Its command gets SIGTERM, and SIGKILL if it does not end within the job’s killTimeout. It ends as cancelled and is not retried.";
}

/**
 * The run as it is now, when it has moved on since it was shown.
 * @param {any} run @param {(run: any, etag: string | undefined, moved: string) => any} make
 */
const moved = (run, make) => async (problem) => {
  if (problem.status !== 412) return undefined;
  const { body, etag } = await get(pathOf(run, ""));
  return make(body, etag, `It has changed since you looked: it is ${wordOf(shownState(body))} now. Nothing was done yet.`);
};

const Moved = ({ text }) => text && html`<p class="bad"><strong>${text}</strong></p>`;

export const wishes = {
  /** @returns {import("../ui/dialog.js").Wish} */
  cancel: (run, etag, note) => ({
    title: `Cancel this run of ${run.job}?`,
    will: html`<${Moved} text=${note} /><p>${name(run)}: ${cancelWill(run)}</p>`,
    verb: "Cancel the run",
    danger: true,
    request: () => ({ method: "POST", path: pathOf(run, ":cancel"), ifMatch: etag }),
    cli: () => ["run", "cancel", run.id],
    done: (answer) => (answer.state === "ending" ? `${run.job} is being ended` : `${run.job} is cancelled`),
    refused: moved(run, wishes.cancel),
  }),
  /** @returns {import("../ui/dialog.js").Wish} */
  retry: (run, etag, note) => ({
    title: "Retry now",
    will: html`<${Moved} text=${note} /><p>${name(run)}: its next attempt begins at once instead of after its back-off. It still waits for slots if its slot pool is full.</p>`,
    verb: "Retry now",
    request: () => ({ method: "POST", path: pathOf(run, ":retry"), ifMatch: etag }),
    cli: () => ["run", "retry", run.id],
    done: (answer) => `Attempt ${answer.attempt} of ${run.job} begins`,
    refused: moved(run, wishes.retry),
  }),
  /** @returns {import("../ui/dialog.js").Wish} */
  rerun: (run) => ({
    title: `Run ${run.job} again`,
    will: html`<p>A new run of <strong>${run.job}</strong> starts with the job as it is configured now. This run stays as it is; the new one names it.</p>`,
    verb: "Run again",
    fields: [{ name: "retries", label: "If an attempt fails", type: "choice", value: "no", choices: [["no", "the run fails"], ["yes", "it is tried again by the job’s rules"]] }],
    request: ({ retries }) => ({ method: "POST", path: pathOf(run, ":rerun"), body: retries === "yes" ? { retries: true } : {} }),
    cli: ({ retries }) => ["run", "rerun", run.id, ...(retries === "yes" ? ["--retries"] : [])],
    done: (answer) => [answer.pool ? `${run.job} waits for slots of ${answer.pool}` : `${run.job} starts`, openRun(answer.id)],
  }),
  /** @returns {import("../ui/dialog.js").Wish} */
  pin: (run) => ({
    title: `Keep this run of ${run.job}`,
    will: html`<p>${name(run)} and its logs stay until somebody says otherwise, however many newer runs there are and however old it gets.</p>`,
    verb: "Keep it",
    fields: [{ name: "reason", label: "Why", hint: "Whoever finds it kept reads this." }],
    request: ({ reason }) => ({ method: "POST", path: pathOf(run, ":pin"), body: reason ? { reason } : {} }),
    cli: ({ reason }) => ["run", "pin", run.id, ...(reason ? ["--reason", reason] : [])],
    done: () => `This run of ${run.job} is kept`,
  }),
  /** @returns {import("../ui/dialog.js").Wish} */
  unpin: (run) => ({
    title: "Keep it no longer",
    will: html`<p>${name(run)} goes with its age or number like any other run, perhaps within a minute.</p>`,
    verb: "Unpin",
    request: () => ({ method: "POST", path: pathOf(run, ":unpin") }),
    cli: () => ["run", "unpin", run.id],
    done: () => `This run of ${run.job} is kept no longer than others`,
  }),
  /** @returns {import("../ui/dialog.js").Wish} */
  cancelRetries: (run) => ({
    title: `Cancel the retries of ${run.job}?`,
    will: html`<p>Every run of <strong>${run.job}</strong> that waits for another attempt fails now; an attempt that runs is its last. New fires are not touched.</p>`,
    verb: "Cancel the retries",
    danger: true,
    request: () => ({ method: "POST", path: `/jobs/${encodeURIComponent(run.job)}/retries/cancel` }),
    cli: () => ["job", "cancel-retries", run.job],
    done: (answer) => `${plural(answer.runs, "run")} of ${run.job} ${answer.runs === 1 ? "gets" : "get"} no other attempt`,
  }),
  /** @returns {import("../ui/dialog.js").Wish} */
  pauseJob: (run) => ({
    title: `Pause ${run.job}`,
    will: html`<p><strong>${run.job}</strong> does not fire, and what waits of it is not begun. What runs goes on. The pause ends by itself.</p>`,
    verb: "Pause the job",
    fields: [
      { name: "for", label: "For", type: "choice", value: "3600", choices: [["900", "15 minutes"], ["3600", "1 hour"], ["14400", "4 hours"], ["86400", "1 day"], ["604800", "7 days"]] },
      { name: "note", label: "Why", hint: "Whoever finds it paused reads this." },
    ],
    request: (values) => ({ method: "POST", path: `/jobs/${encodeURIComponent(run.job)}/pause`, body: { durationSeconds: Number(values.for), ...(values.note ? { note: values.note } : {}) } }),
    cli: (values) => ["job", "pause", run.job, "--for", `${Number(values.for) / 60}m`, ...(values.note ? ["--reason", values.note] : [])],
    done: () => [`${run.job} is paused`, { link: { href: to.job(run.job), text: "Open the job" } }],
  }),
};
