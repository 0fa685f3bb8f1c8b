// The log of one attempt of a run, and which attempt that is.
import { html } from "../lib/dom.js";
import { param, setParams, to } from "../lib/route.js";
import { attemptsOf } from "../lib/run.js";
import { span } from "../lib/time.js";
import { LogView } from "../ui/log.js";
import { Nothing } from "../ui/parts.js";
import { State, wordOf } from "../ui/state.js";

/** Bytes of a log. @param {any} run @param {any} attempt */
export const logAddress = (run, attempt) => `/api/runs/${encodeURIComponent(run.id)}/steps/${encodeURIComponent(attempt.step)}/attempts/${attempt.number}/log?fence=${attempt.fence}`;

/** The page's tab with it. @param {any} run @param {number} number */
export const logTab = (run, number) => `${to.run(run.id, "log")}&attempt=${number}`;

/** An attempt that was lost has the number of the one after it: its claim tells them apart. */
const keyOf = (each, attempts) => (attempts.find(({ number }) => number === each.number) === each ? String(each.number) : `${each.number}.${each.fence}`);

const took = (each) => (each.live ? "" : `, ${span(Date.parse(each.ended_at) - Date.parse(each.started_at))}`);

/** @param {{run: any}} props */
export function Log({ run }) {
  const attempts = attemptsOf(run);
  const attempt = attempts.find((each) => keyOf(each, attempts) === param("attempt")) ?? attempts[0];
  if (!attempt) return html`<div class="card"><${Nothing} title=${run.ended_at ? "There is no log: it ended before its command began." : "There is no log yet: its command has not begun."} /></div>`;
  const at = keyOf(attempt, attempts);
  return html`<div class="stack">
    <div class="row wrap log-of">
      ${attempts.length > 1
        ? html`<label class="small" for="log-attempt">Attempt</label><select class="input" id="log-attempt" value=${at} onChange=${(event) => setParams({ attempt: event.currentTarget.value, log_at: "" })}>
            ${attempts.map((each) => html`<option key=${keyOf(each, attempts)} value=${keyOf(each, attempts)} selected=${keyOf(each, attempts) === at}>${each.number}: ${wordOf(each.outcome)}${took(each)}</option>`)}</select>`
        : html`<span class="small">Attempt <strong>${attempt.number}</strong></span>`}
      <${State} of=${attempt.outcome} />${attempt.reason && attempt.reason !== attempt.outcome && html`<span class="soft small">${attempt.reason}</span>`}
    </div>
    <${LogView} runId=${run.id} step=${attempt.step} attempt=${attempt.number} fence=${attempt.fence} live=${attempt.live} />
  </div>`;
}
