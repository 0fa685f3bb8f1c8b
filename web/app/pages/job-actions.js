// What can be done with a job: start, pause, resume, end what runs, end its retries. Used by the list and by the job itself.
import { html } from "../lib/dom.js";
import { startWill } from "../lib/jobs.js";
import { to } from "../lib/route.js";
import { isOpenEnd, pauseBody } from "../lib/schedule.js";
import { plural } from "../lib/format.js";
import * as time from "../lib/time.js";
import { zone } from "../lib/prefs.js";
import { daemonNow, Time } from "../ui/time.js";

const path = (name, verb) => `/jobs/${encodeURIComponent(name)}/${verb}`;
const lines = (texts) => texts.map((text) => html`<p key=${text}>${text}</p>`);

/** @param {any} job @returns {import("../ui/dialog.js").Wish} */
export const startWish = (job) => ({
  title: `Start ${job.name}`,
  will: lines(["One run begins by hand, now.", ...startWill(job)]),
  verb: "Start",
  fields: [{ name: "retries", label: "If it fails", type: "choice", value: "no", choices: [["no", "it has failed: no retries"], ["yes", "retry by the job’s own rules"]] }],
  request: ({ retries }) => ({ method: "POST", path: path(job.name, "start"), ...(retries === "yes" ? { body: { retries: true } } : {}) }),
  cli: ({ retries }) => ["job", "start", job.name, ...(retries === "yes" ? ["--retries"] : [])],
  done: (answer) => {
    const link = answer.runId ? { href: to.run(answer.runId), text: "Open the run" } : undefined;
    return [answer.queued ? `${job.name} waits for slots in ${answer.pool}.` : `${job.name} has started.`, { link }];
  },
});

/** @param {any} job @returns {import("../ui/dialog.js").Wish} */
export function pauseWish(job) {
  const shown = time.zoneFor(zone.value, job.schedule?.timezone);
  const name = time.zoneName(daemonNow(), shown);
  /** @param {Record<string, string>} values */
  const asMoment = ({ end }) => end === "moment";
  /** @returns {{durationSeconds?: number, until?: string, note?: string}} */
  const body = (values) => pauseBody(values, daemonNow(), shown);
  return {
    title: `Pause ${job.name}`,
    will: lines([
      job.schedule ? "It does not fire until the pause ends: each fire that comes meanwhile is recorded as skipped, and none is owed afterwards." : "It has no schedule, so nothing fires anyway.",
      "What waits in a queue is held. What runs goes on, and a start by hand is still possible.",
      ...(job.paused ? ["It is paused already; this replaces that pause."] : []),
    ]),
    verb: "Pause",
    fields: [
      { name: "end", label: "How long", type: "choice", value: "3600", choices: [["3600", "1 hour"], ["14400", "4 hours"], ["tomorrow", `until tomorrow, 08:00 ${name}`], ["604800", "7 days"], ["moment", "until a moment…"], ["open", "until somebody resumes it"]] },
      { name: "until", label: `Until (${shown})`, type: "moment", required: true, when: asMoment, value: "" },
      { name: "note", label: "Why (for whoever finds it paused)", value: "", hint: "Shown beside the pause and kept in the record." },
    ],
    request: (values) => ({ method: "POST", path: path(job.name, "pause"), body: body(values) }),
    cli: (values) => {
      const { durationSeconds, until, note } = body(values);
      return ["job", "pause", job.name, ...(durationSeconds ? ["--for", `${durationSeconds}s`] : ["--until", String(until)]), ...(note ? ["--reason", note] : [])];
    },
    done: (answer) => html`<span>${job.name} is paused${isOpenEnd(answer.paused?.until) ? " until somebody resumes it" : html` until <${Time} at=${answer.paused.until} ofJob=${job.schedule?.timezone} />`}.</span>`,
  };
}

/** @param {any} job @returns {import("../ui/dialog.js").Wish} */
export const resumeWish = (job) => ({
  title: `Resume ${job.name}`,
  will: lines([
    job.schedule ? "It fires again from its next moment on. What came during the pause stays skipped." : "The pause ends.",
    ...(job.pool?.queued > 0 ? [`${plural(job.pool.queued, "entry", "entries")} that ${job.pool.queued === 1 ? "was" : "were"} held in slot pool ${job.pool.name} may be admitted again.`] : []),
  ]),
  verb: "Resume",
  request: () => ({ method: "POST", path: path(job.name, "resume") }),
  cli: () => ["job", "resume", job.name],
  done: () => `${job.name} fires again.`,
});

/** @param {any} job @returns {import("../ui/dialog.js").Wish} */
export const cancelWish = (job) => ({
  title: `Cancel all instances of ${job.name}`,
  will: lines([
    `${job.running > 0 ? `${plural(job.running, "command")} that ${job.running === 1 ? "runs is" : "run are"} asked to end, and killed when ${job.running === 1 ? "it does" : "they do"} not.` : "No command runs now."}`,
    ...(job.pool?.queued > 0 ? [`${plural(job.pool.queued, "entry", "entries")} in the queue of slot pool ${job.pool.name} ${job.pool.queued === 1 ? "is" : "are"} cancelled.`] : []),
    "Runs that wait for a retry end too. The job itself stays as it is, and fires again.",
  ]),
  verb: "Cancel them",
  danger: true,
  request: () => ({ method: "POST", path: path(job.name, "cancel") }),
  cli: () => ["job", "stop", job.name],
  done: (answer) => `${plural(answer.instances ?? 0, "instance")} of ${job.name} cancelled.`,
});

/** @param {any} job @returns {import("../ui/dialog.js").Wish} */
export const retriesWish = (job) => ({
  title: `Cancel the retries of ${job.name}`,
  will: lines(["A run that waits for another attempt gets none, and has failed now. One that runs at this moment may end, and gets no other attempt either.", "Later fires are retried as before."]),
  verb: "Cancel retries",
  danger: true,
  request: () => ({ method: "POST", path: path(job.name, "retries/cancel") }),
  cli: () => ["job", "cancel-retries", job.name],
  done: (answer) => (answer.runs > 0 ? `${plural(answer.runs, "run")} of ${job.name} ${answer.runs === 1 ? "has" : "have"} failed without another attempt.` : `No run of ${job.name} waited for a retry.`),
});
