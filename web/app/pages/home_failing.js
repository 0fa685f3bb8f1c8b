// What fails now, grouped by cause; what was given up; what is late.
import { html } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { rich } from "../lib/home.js";
import { to } from "../lib/route.js";
import { pauseJob, retryMatching, retryNow, startJob } from "../ui/acts.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { Countdown } from "./home_next.js";
import { Counted, Sentence, useSteady } from "./home_parts.js";

/** When the job is tried again, if it is. */
const Again = ({ retrying, at }) => {
  if (!retrying) return html`<span class="quiet">no retry</span>`;
  if (!at) return html`<span class="wait">being tried again</span>`;
  return html`<span class="wait">tried again <${Countdown} at=${at} /></span>`;
};

function FailingJob({ job }) {
  const retry = job.retrying && job.retry_at;
  return html`<li class="failing-job">
    <a class="main-link clip" href=${to.job(job.name)}>${job.name}</a>
    <span class="said small dots"><a href=${to.run(job.run)}>failed <${Time} at=${job.last_at} form="relative" /></a><${Again} retrying=${job.retrying} at=${job.retry_at} /></span>
    <span class="acts">
      ${retry && html`<${AskButton} className="ghost tiny" title=${`Retry ${job.name} now`} wish=${() => retryNow(job.name, job.run)}><${Icon} of="again" />Retry now<//>`}
      ${!job.retrying && html`<${AskButton} className="ghost tiny" title=${`Start ${job.name}`} wish=${() => startJob(job.name)}><${Icon} of="play" />Start<//>`}
      <${AskButton} className="ghost tiny" title=${`Pause ${job.name}`} wish=${() => pauseJob(job.name)}><${Icon} of="pause" />Pause<//>
    </span>
  </li>`;
}

/** All of a cause at once; exactly the runs that are named. */
function RetryGroup({ group }) {
  const all = group.jobs.length === group.count;
  const hint = !all && html`<p class="tiny quiet">The newest ${group.jobs.length} of ${plural(group.count, "job")} with this cause; the others stay as they are.</p>`;
  const onClick = () => retryMatching({ title: all ? `Retry ${plural(group.count, "job")}` : `Retry ${group.jobs.length} jobs`, filter: { q: group.jobs.map((job) => job.run) }, hint });
  return html`<button type="button" class="button tiny" onClick=${onClick}><${Icon} of="again" />Retry ${all ? (group.count === 2 ? "both" : `all ${group.count}`) : group.jobs.length}</button>`;
}

function Group({ group }) {
  const more = group.count - group.jobs.length;
  return html`<li class="cause">
    <div class="cause-head">
      <${State} of=${/time/i.test(group.cause) ? "timed_out" : "failed"} iconOnly />
      <h3 title=${group.example}>${group.example}</h3>
      <span class="small soft since">${group.count > 1 ? `${plural(group.count, "job")}, ` : ""}since <${Time} at=${group.since} /></span>
      ${group.count > 1 && html`<${RetryGroup} group=${group} />`}
    </div>
    <ul>${group.jobs.map((job) => html`<${FailingJob} key=${job.name} job=${job} />`)}</ul>
    ${more > 0 && html`<p class="small rest"><a href=${to.jobs("state:failing")}>and ${plural(more, "other job")}</a></p>`}
  </li>`;
}

/** @param {{failing: any}} props */
export function Failing({ failing: newest }) {
  const [failing, steady] = useSteady(newest);
  if (failing.total === 0) return null;
  const hidden = failing.causes - failing.groups.length;
  return html`<${Counted} id="failing" title="Failing now" count=${number(failing.total)} steady=${steady} className="is-bad" more=${html`<a href=${to.runs("state:failed since:24h")}>Failed runs</a>`}>
    <ul class="causes">${failing.groups.map((group) => html`<${Group} key=${group.cause} group=${group} />`)}</ul>
    ${hidden > 0 && html`<div class="list-foot"><a href=${to.jobs("state:failing")}>${plural(hidden, "more cause")}</a></div>`}
  <//>`;
}

/** Runs that took their daemon with them. @param {{runs: any[]}} props */
export function GivenUp({ runs }) {
  if (runs.length === 0) return null;
  return html`<${Counted} title="Given up" count=${number(runs.length)} className="is-bad">
    <p class="lead-text small soft">Daemons died while these ran, so they are not begun again by themselves.</p>
    <ul>${runs.slice(0, 10).map((run) => html`<li key=${run.run_id} class="failing-job">
      <a class="main-link clip" href=${to.job(run.job)}>${run.job}</a>
      <span class="said small"><a href=${to.run(run.run_id)}>given up <${Time} at=${run.at} form="relative" /></a></span>
      <span class="acts"><${AskButton} className="ghost tiny" title=${`Start ${run.job}`} wish=${() => startJob(run.job)}><${Icon} of="play" />Start<//></span>
    </li>`)}</ul>
  <//>`;
}

function LateJob({ late }) {
  const parts = rich(late.reason);
  // One that runs too long is not helped by another start.
  const runs = parts.some((part) => "href" in part && part.href);
  return html`<li class="failing-job">
    <span class="row clip"><${State} of="late" iconOnly /><a class="main-link clip" href=${to.job(late.job)}>${late.job}</a></span>
    <span class="said small dots"><span><${Sentence} parts=${parts} /></span><span class="quiet">late since <${Time} at=${late.since} /></span></span>
    <span class="acts">
      ${!runs && html`<${AskButton} className="ghost tiny" title=${`Start ${late.job}`} wish=${() => startJob(late.job)}><${Icon} of="play" />Start<//>`}
      <a class="button ghost tiny" href=${to.job(late.job, "why")}><${Icon} of="help" />Why</a>
    </span>
  </li>`;
}

/** Jobs whose limit has passed. @param {{jobs: any[]}} props */
export function Late({ jobs }) {
  if (jobs.length === 0) return null;
  return html`<${Counted} id="late" title="Late" count=${number(jobs.length)} className="is-late" more=${html`<a href=${to.jobs("state:late")}>Late jobs</a>`}>
    <ul>${jobs.slice(0, 10).map((late) => html`<${LateJob} key=${late.job} late=${late} />`)}</ul>
    ${jobs.length > 10 && html`<div class="list-foot"><a href=${to.jobs("state:late")}>all ${number(jobs.length)} late jobs</a></div>`}
  <//>`;
}
