// The log of one attempt of a run, and which step and attempt that is.
import { html } from "../lib/dom.js";
import { param, setParams, to } from "../lib/route.js";
import { attemptsOf, attemptsOfStep, lastFailed, stepName } from "../lib/run.js";
import { useQuery } from "../lib/store.js";
import { span } from "../lib/time.js";
import { LogView } from "../ui/log.js";
import { Fault, Nothing, Skeleton } from "../ui/parts.js";
import { State, wordOf } from "../ui/state.js";

/** So many steps can be chosen among; others are opened from their own place. */
const STEPS_MAX = 200;

/** Bytes of a log. @param {any} run @param {any} attempt */
export const logAddress = (run, attempt) => `/api/runs/${encodeURIComponent(run.id)}/steps/${encodeURIComponent(attempt.step)}/attempts/${attempt.number}/log?fence=${attempt.fence}`;

/** The page's tab with it. @param {any} run @param {number} number @param {string} [step] */
export const logTab = (run, number, step) => `${to.run(run.id, "log")}${step && step !== "main" ? `&step=${encodeURIComponent(step)}` : ""}&attempt=${number}`;

/** An attempt that was lost has the number of the one after it: its claim tells them apart. */
const keyOf = (each, attempts) => (attempts.find(({ number }) => number === each.number) === each ? String(each.number) : `${each.number}.${each.fence}`);

const took = (each) => (each.live ? "" : `, ${span(Date.parse(each.ended_at) - Date.parse(each.started_at))}`);

/** @param {{id: string, label: string, value: string, options: {key: string, text: string}[], set: (value: string) => void}} props */
const Choice = ({ id, label, value, options, set }) => html`<label class="small" for=${id}>${label}</label><select class="input" id=${id} value=${value} onChange=${(event) => set(event.currentTarget.value)}>${options.map(({ key, text }) => html`<option key=${key} value=${key} selected=${key === value}>${text}</option>`)}</select>`;

/** Steps that have something to show, in the order in which they began. @param {any} run */
const stepsWithLogs = (run) => run.steps.filter((step) => step.attempts.length > 0 || step.live)
  .map((step) => ({ step, from: Date.parse(attemptsOfStep(step).at(-1)?.started_at ?? "") })).sort((one, other) => one.from - other.from).map(({ step }) => step);

/** @param {{run: any, graph?: any}} props */
export function Log({ run, graph }) {
  const titles = new Map((graph?.nodes ?? []).map((node) => [node.ref, node.title]));
  const steps = stepsWithLogs(run);
  const wanted = param("step");
  const known = steps.find((step) => step.ref === wanted);
  // One of ten thousand branches is not among those that came with the run.
  const query = useQuery(wanted && !known ? `/api/runs/${encodeURIComponent(run.id)}/steps/${encodeURIComponent(wanted)}` : null, { topics: ["runs"], touches: (change) => change.id === run.id });
  const newest = (run.state === "failed" ? lastFailed(run) : undefined) ?? attemptsOf(run)[0];
  const step = wanted ? (known ?? query.data) : steps.find((each) => each.ref === newest?.step);
  if (wanted && !step) return query.error ? html`<div class="card"><div class="body"><${Fault} error=${query.error} again=${query.reload} /></div></div>` : html`<div class="card"><${Skeleton} lines=${4} /></div>`;
  const nameOf = (ref) => stepName(ref, titles.get(ref.split("#")[0]));
  const attempts = step ? attemptsOfStep(step) : [];
  const attempt = attempts.find((each) => keyOf(each, attempts) === param("attempt")) ?? attempts[0];
  const listed = steps.slice(0, STEPS_MAX);
  const choices = step && !listed.includes(step) ? [step, ...listed] : listed;
  const ofStep = (choices.length > 1 || steps.length > STEPS_MAX) && html`<${Choice} id="log-step" label="Step" value=${step?.ref ?? ""} options=${choices.map(({ ref, state }) => ({ key: ref, text: `${nameOf(ref)}: ${wordOf(state)}` }))} set=${(ref) => setParams({ step: ref, attempt: "", log_at: "" })} />`;
  if (!attempt) {
    return html`<div class="stack">${ofStep && html`<div class="row wrap log-of">${ofStep}</div>`}<div class="card"><${Nothing} title=${step ? `${nameOf(step.ref)} has no attempt: nothing was printed.` : run.ended_at ? "There is no log: it ended before its command began." : "There is no log yet: its command has not begun."} /></div></div>`;
  }
  const at = keyOf(attempt, attempts);
  return html`<div class="stack">
    <div class="row wrap log-of">
      ${ofStep}
      ${attempts.length > 1
        ? html`<${Choice} id="log-attempt" label="Attempt" value=${at} options=${attempts.map((each) => ({ key: keyOf(each, attempts), text: `${each.number}: ${wordOf(each.outcome)}${took(each)}` }))} set=${(key) => setParams({ attempt: key, log_at: "" })} />`
        : html`<span class="small">Attempt <strong>${attempt.number}</strong></span>`}
      <${State} of=${attempt.outcome} />${attempt.reason && attempt.reason !== attempt.outcome && html`<span class="soft small">${attempt.reason}</span>`}
    </div>
    <${LogView} key=${attempt.step} runId=${run.id} step=${attempt.step} attempt=${attempt.number} fence=${attempt.fence} live=${attempt.live} />
  </div>`;
}
