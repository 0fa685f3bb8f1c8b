// What can be done with a slot pool: pause, resume, cancel what waits. Each asks first.
import { html } from "../lib/dom.js";
import { instant, plural } from "../lib/format.js";
import { slotsWord } from "../lib/slots.js";

const encode = encodeURIComponent;
const path = (pool, rest) => `/pools/${encode(pool)}/${rest}`;

/** @type {[string, string][]} */
const LENGTHS = [
  ["900", "15 minutes"],
  ["3600", "1 hour"],
  ["14400", "4 hours"],
  ["86400", "1 day"],
  ["604800", "1 week"],
  ["until", "Until a moment I choose"],
  ["", "Until somebody resumes it"],
];

/** @param {Record<string, string>} values */
function pauseBody({ length, until, note }) {
  const body = {};
  const at = length === "until" && until ? instant(until) : undefined;
  if (at !== undefined) body.until = new Date(at).toISOString();
  else if (length && length !== "until") body.durationSeconds = Number(length);
  if (note) body.note = note;
  return body;
}

/** @param {import("../lib/slots.js").Pool} pool @returns {import("../ui/dialog.js").Wish} */
export const pauseWish = (pool) => ({
  title: `Pause ${pool.name}`,
  will: html`<p>No entry of <strong>${pool.name}</strong> is admitted while the pause holds, on every node and over restarts.</p>
    <p>${pool.used > 0 ? `What holds its ${slotsWord(pool.used)} goes on.` : "Nothing runs in it now."} New work still enters the queue (${pool.queued} of ${pool.maxQueued}), and deadlines of what waits go on running.</p>`,
  verb: "Pause",
  fields: [
    { name: "length", label: "For", type: "choice", choices: LENGTHS, value: "3600" },
    { name: "until", label: "Until, in the zone of this browser", type: "moment", value: "", required: true, when: ({ length }) => length === "until" },
    { name: "note", label: "Reason", value: "", hint: "For whoever finds it paused." },
  ],
  request: (values) => ({ method: "POST", path: path(pool.name, "pause"), body: pauseBody(values) }),
  cli: (values) => {
    const { durationSeconds, until, note } = pauseBody(values);
    return ["slots", "pause", pool.name, ...(durationSeconds ? ["--for", `${durationSeconds}s`] : []), ...(until ? ["--until", until] : []), ...(note ? ["--note", note] : [])];
  },
  done: () => `${pool.name} is paused`,
});

/** @param {import("../lib/slots.js").Pool} pool @returns {import("../ui/dialog.js").Wish} */
export const resumeWish = (pool) => ({
  title: `Resume ${pool.name}`,
  will: html`<p>Admission to <strong>${pool.name}</strong> goes on at once, in the order of the queue${pool.queued > 0 ? `: ${plural(pool.queued, "entry waits", "entries wait")}` : ""}.</p>`,
  verb: "Resume",
  request: () => ({ method: "POST", path: path(pool.name, "resume") }),
  cli: () => ["slots", "resume", pool.name],
  done: () => `${pool.name} goes on`,
});

/** @param {string} pool @param {string} id */
const cancelRequest = (pool, id) => ({ method: "POST", path: path(pool, `queue/${encode(id)}/cancel`) });

/** @param {import("../lib/slots.js").Pool} pool @param {import("../lib/slots.js").Entry} entry @returns {import("../ui/dialog.js").Wish} */
export const cancelWish = (pool, entry) => ({
  title: `Cancel the waiting entry of ${entry.job}`,
  will: html`<p>The entry at place ${entry.position} of <strong>${pool.name}</strong> leaves the queue. Its run <code>${entry.runId}</code> ends ${entry.attempt > 1 ? "failed, as it was tried before" : "skipped"}, with the reason ‘cancelled by operator’. Nothing that runs is touched.</p>`,
  verb: "Cancel the entry",
  danger: true,
  request: () => cancelRequest(pool.name, entry.id),
  cli: () => ["slots", "cancel", pool.name, entry.id],
  done: () => `The entry of ${entry.job} is cancelled`,
});

/** Names with their number, most first. @param {import("../lib/slots.js").Entry[]} entries */
function byJob(entries) {
  const counts = new Map();
  for (const { job } of entries) counts.set(job, (counts.get(job) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]);
}

/** @param {import("../lib/slots.js").Pool} pool @param {import("../lib/slots.js").Entry[]} entries @returns {import("../ui/dialog.js").Wish} */
export const cancelManyWish = (pool, entries) => ({
  title: `Cancel ${plural(entries.length, "waiting entry", "waiting entries")} of ${pool.name}`,
  will: html`<p>These leave the queue, and their runs end skipped (failed where they were tried before). What has begun meanwhile is left alone.</p>
    <ul>${byJob(entries).map(([job, count]) => html`<li><strong>${job}</strong>: ${count}</li>`)}</ul>`,
  verb: `Cancel ${plural(entries.length, "entry", "entries")}`,
  danger: true,
  requests: () => entries.map(({ id }) => cancelRequest(pool.name, id)),
  cli: () => entries.map(({ id }) => ["slots", "cancel", pool.name, id]),
  done: (answers) => {
    const refused = answers.filter(({ problem }) => problem);
    const count = answers.length - refused.length;
    if (refused.length === 0) return `${plural(count, "entry is", "entries are")} cancelled`;
    return [`${plural(count, "entry is", "entries are")} cancelled; ${plural(refused.length, "was", "were")} refused: ${refused[0].problem.detail}`, { bad: true }];
  },
});
