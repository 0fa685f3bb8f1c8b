// What a job is now, in four parts: its schedule, what comes next, how the last run went, how the last ones went.
import { html } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { median, runState, successOf } from "../lib/jobs.js";
import { to } from "../lib/route.js";
import { isOpenEnd } from "../lib/schedule.js";
import { span } from "../lib/time.js";
import { Note } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Span, Time } from "../ui/time.js";
import { Told } from "../ui/told.js";
import { Countdown, nextOf } from "./job-parts.js";

const Part = ({ name, children }) => html`<div class="part"><h2 class="tiny quiet">${name}</h2>${children}</div>`;
const Big = ({ children }) => html`<div class="big">${children}</div>`;
const Under = ({ children }) => html`<div class="small soft">${children}</div>`;

function Next({ job }) {
  const { schedule, paused } = job;
  if (!job.enabled) return html`<${Big}>never<//><${Under}>Disabled in the configuration: it neither fires nor starts.<//>`;
  if (!schedule) return html`<${Big}>when started<//><${Under}>It has no schedule.<//>`;
  const at = nextOf(job);
  if (at) return html`<${Big}><${Countdown} at=${at} /><//><${Under}><${Time} at=${at} ofJob=${schedule.timezone} />${paused ? ", after the pause" : ""}<//>`;
  if (paused) return html`<${Big}>held<//><${Under}>Until somebody resumes it.<//>`;
  return schedule.next.length > 0 ? html`<${Big}>due now<//>` : html`<${Big}>never again<//><${Under}>The expression has no further moment.<//>`;
}

function Last({ job }) {
  const { last_run: last } = job;
  if (!last) return html`<${Big}>never ran<//><${Under}>Nothing is recorded yet.<//>`;
  return html`<${Big}><a class="plain" href=${to.run(last.id)}><${State} of=${runState(job)} /></a><//>
    <${Under}>${last.ended_at
      ? html`<${Time} at=${last.ended_at} form="relative" />${last.started_at && html`, took <${Span} from=${last.started_at} to=${last.ended_at} />`}`
      : last.started_at ? html`began <${Time} at=${last.started_at} form="relative" />` : "has not begun"}<//>
    ${last.reason && html`<p class="small bad"><${Told} text=${last.reason} ofJob=${job.schedule?.timezone} /></p>`}`;
}

function Recent({ job }) {
  const { good, of } = successOf(job.recent);
  const typical = median(job.recent);
  return html`<${Big}>${of > 0 ? `${good} of ${of} succeeded` : "—"}<//><${Under}>${of === 0 ? "No run has ended." : typical === undefined ? "" : `typically ${span(typical)}`}<//>`;
}

/** What holds now and needs to be said in a sentence. */
function Now({ job }) {
  const { paused, late, pool, running } = job;
  return html`
    ${paused && html`<${Note} of="wait" icon="pause"><strong>Paused by ${paused.by}</strong> ${isOpenEnd(paused.until) ? "until somebody resumes it" : html`until <${Time} at=${paused.until} ofJob=${job.schedule?.timezone} />, <${Time} at=${paused.until} form="relative" />`}${paused.note ? html`: ‘${paused.note}’.` : "."}${job.schedule ? " Fires until then are recorded as skipped." : ""}<//>`}
    ${(late ?? []).map((each) => html`<${Note} key=${each.check} of="bad" icon="late"><strong>Late</strong> since <${Time} at=${each.since} ofJob=${job.schedule?.timezone} />: <${Told} text=${each.reason} ofJob=${job.schedule?.timezone} />${each.run_id && html` <a href=${to.run(each.run_id)}>The run</a>`}<//>`)}
    ${job.queue_unavailable && html`<${Note} of="bad" icon="cross">The state of its slot pool cannot be read: its fires are skipped until that is repaired.<//>`}
    ${pool?.queued > 0 && html`<${Note} of="wait" icon="wait">${plural(pool.queued, "entry", "entries")} of this job ${pool.queued === 1 ? "waits" : "wait"} for slots in <a href=${to.slots(pool.name)}>${pool.name}</a>.<//>`}
    ${running > 0 && html`<${Note} of="busy" icon="turn">${plural(running, "instance")} ${running === 1 ? "runs" : "run"} now. <a href="?tab=runs&state=running">Show</a><//>`}`;
}

/** @param {{job: any}} props */
export const Glance = ({ job }) => html`<section class="glance card" aria-label="At a glance">
    <${Part} name="Schedule"><${Big}>${job.schedule?.description ?? "by hand only"}<//>${job.schedule && html`<${Under}><code>${job.schedule.text}</code> <span class="nowrap">${job.schedule.timezone}</span><//>`}<//>
    <${Part} name="Next fire"><${Next} job=${job} /><//>
    <${Part} name="Last run"><${Last} job=${job} /><//>
    <${Part} name="Last 20 ended runs"><${Recent} job=${job} /><//>
  </section>
  <div class="stack now-notes"><${Now} job=${job} /></div>`;
