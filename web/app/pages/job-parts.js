// Parts that the list of jobs and the page of one job share: schedule, next fire, last run, trend, findings.
import { computed, html, useMemo } from "../lib/dom.js";
import { plural, percent } from "../lib/format.js";
import { runState, statesOf, successOf } from "../lib/jobs.js";
import { to } from "../lib/route.js";
import { isOpenEnd, upcoming } from "../lib/schedule.js";
import * as time from "../lib/time.js";
import { Spark } from "../ui/bars.js";
import { Note } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { daemonNow, Span, Time } from "../ui/time.js";

/** The schedule in words, with what was written under it. @param {{schedule: any, zone?: boolean}} props */
export const Schedule = ({ schedule, zone = true }) => schedule
  ? html`<div class="two"><span>${schedule.description}</span><span class="quiet tiny"><code>${schedule.text}</code>${zone && html` <span class="nowrap">${schedule.timezone}</span>`}</span></div>`
  : html`<span class="quiet">by hand only</span>`;

/** How long until a moment; ticks by itself. @param {{at: string}} props */
export const Countdown = ({ at }) => html`<span class="nowrap">${time.relative(Date.parse(at), daemonNow())}</span>`;

/** The first moment at which a job fires; of a paused one after the pause. @param {any} job */
export const nextOf = (job) => (job.paused ? (isOpenEnd(job.paused.until) ? undefined : job.next_fire) : (upcoming(job.schedule?.next ?? [], daemonNow()) ?? job.next_fire));

/** The next fire of a job, or why there is none. @param {{job: any}} props */
export function NextFire({ job }) {
  if (!job.schedule) return null;
  if (!job.enabled) return html`<span class="quiet">never: disabled</span>`;
  return html`<${Next} job=${job} />`;
}

/** Drawn anew only when another moment is the next; the countdown ticks by itself. @param {{job: any}} props */
function Next({ job }) {
  const at = useMemo(() => computed(() => nextOf(job)), [job]).value;
  if (!at) return html`<span class="quiet">${job.paused ? "held until resumed" : job.schedule.next.length > 0 ? "due now" : "never again"}</span>`;
  return html`<div class="two"><${Countdown} at=${at} /><span class="quiet tiny" title=${job.paused ? "the first one after the pause" : undefined}><${Time} at=${at} ofJob=${job.schedule.timezone} /></span></div>`;
}

/** The last fire came to nothing after the last run began. @param {any} job */
const wasSkipped = (job) => job.last_fire_outcome === "skipped" && !(Date.parse(job.last_run?.started_at ?? "") > Date.parse(job.last_fire));

/** The last thing that happened: a run and how it went, or a fire that came to nothing. @param {{job: any}} props */
export function LastFire({ job }) {
  const { last_run: last } = job;
  if (wasSkipped(job)) {
    return html`<div class="two"><a class="plain" href=${`${to.job(job.name, "why")}&at=${encodeURIComponent(job.last_fire)}`} title="Why?"><${State} of="skipped" /></a><span class="quiet tiny nowrap"><${Time} at=${job.last_fire} form="relative" /></span></div>`;
  }
  if (!last) return html`<span class="quiet">never ran</span>`;
  const at = last.ended_at ?? last.started_at;
  return html`<div class="two"><a class="plain" href=${to.run(last.id)} title=${last.reason ?? "Open the run"}><${State} of=${runState(job)} /></a>
    <span class="quiet tiny nowrap">${at && html`<${Time} at=${at} form="relative" />`}${last.ended_at && last.started_at && html`<span class="wide-part">, took <${Span} from=${last.started_at} to=${last.ended_at} /></span>`}</span></div>`;
}

/** The last runs as bars, and how many of those that ended were good. @param {{job: any}} props */
export function Trend({ job }) {
  const { recent = [], success_rate: rate } = job;
  if (recent.length === 0) return null;
  const { good, of } = successOf(recent);
  return html`<div class="trend"><${Spark} runs=${recent} label=${job.name} /><span class=${`tiny nowrap ${typeof rate === "number" && rate < 0.5 ? "bad" : "quiet"}`} title=${`${good} of ${plural(of, "run")} succeeded`}>${typeof rate === "number" ? percent(rate) : "—"}</span></div>`;
}

/** All states of a job: the first as a chip, others behind it. @param {{job: any}} props */
export const JobStates = ({ job }) => html`<span class="states">${statesOf(job).map((state, at) => html`<${State} key=${state} of=${state} word=${state === "running" && job.running > 1 ? `${job.running} running` : state === "queued" ? `${job.pool.queued} queued` : undefined} chip=${at === 0 && state !== "fine"} />`)}</span>`;

const LEVELS = { error: ["bad", "cross"], warning: ["wait", "late"], note: ["calm", "info"] };

/** What may surprise about a schedule. @param {{lints: {code: string, level: string, message: string}[]}} props */
export const Lints = ({ lints }) => html`<div class="stack">${lints.map(({ code, level, message }) => {
  const [family, icon] = LEVELS[level] ?? LEVELS.note;
  return html`<${Note} key=${code + message} of=${family} icon=${icon}><span class="unseen">${level}: </span>${message} <code class="tiny">${code}</code><//>`;
})}</div>`;
