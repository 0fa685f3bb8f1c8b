// What runs, against what is typical, and what waits for what.
import { html } from "../lib/dom.js";
import { instant, number, plural } from "../lib/format.js";
import { progress, waitWords } from "../lib/home.js";
import { to } from "../lib/route.js";
import { span, whole } from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { State } from "../ui/state.js";
import { daemonNow, Span } from "../ui/time.js";
import { Countdown } from "./home_next.js";
import { Counted, Sentence, useSteady } from "./home_parts.js";

/** The bar and the words; the only part of a row that ticks. */
function Elapsed({ from, typical }) {
  const elapsed = Math.max(0, daemonNow() - (instant(from) ?? 0));
  const along = progress(elapsed, typical);
  const over = along?.tooLong;
  const words = !along ? "no typical time yet" : over ? `${along.factor < 10 ? along.factor.toFixed(1) : Math.round(along.factor)} × typical ${span(typical)}` : along.over > 0 ? `${span(typical)} is typical` : `of about ${span(typical)}`;
  return html`<div class=${`elapsed ${over ? "is-over" : ""}`}>
    <div class="words small"><strong>${whole(elapsed)}</strong> <span class=${over ? "wait" : "quiet"}>${over && html`<${Icon} of="late" />`}${words}</span></div>
    <div class="along" aria-hidden="true">${along && html`<i class="within" style=${{ width: `${along.within * 100}%` }}></i>${along.over > 0 && html`<i class="over" style=${{ width: `${along.over * 100}%` }}></i>`}`}</div>
  </div>`;
}

const RunningRow = ({ run }) => html`<li class="running-row">
  <div class="who">
    <a class="main-link clip" href=${to.run(run.id)} title=${run.id}>${run.job}</a>
    <span class="tiny quiet where">${run.pool ? html`<a class="plain" href=${to.slots(run.pool)}><${Icon} of="slots" />${run.pool}</a>` : ""}<a class="plain" href=${to.settings("nodes")}>${run.node}</a>
      ${run.attempt > 1 && html`<span class="wait">attempt ${run.attempt}</span>`}${run.ending && html`<span class="wait">being ended</span>`}</span>
  </div>
  <${Elapsed} from=${run.started_at} typical=${run.typical_ms} />
</li>`;

/** @param {{running: any}} props */
export function Running({ running: newest }) {
  const [running, steady] = useSteady(newest);
  const more = running.total - running.runs.length;
  return html`<${Counted} id="running" title="Running" steady=${steady} count=${number(running.total)} more=${html`<a href=${to.runs("state:running")}>Running runs</a>`}>
    ${running.total === 0 ? html`<p class="none">Nothing runs at the moment.</p>` : html`<ul>${running.runs.map((run) => html`<${RunningRow} key=${run.id} run=${run} />`)}</ul>`}
    ${more > 0 && html`<div class="list-foot"><a href=${to.runs("state:running")}>${plural(more, "other")}, begun later</a></div>`}
  <//>`;
}

function WaitRow({ group }) {
  const { of, parts, reason } = waitWords(group);
  const { head } = group;
  return html`<li class="wait-row">
    <${State} of=${of} iconOnly />
    <div class="grow">
      <div class="what"><${Sentence} parts=${parts} /></div>
      <div class="small soft dots">
        ${group.retry_at && html`<span>the next <${Countdown} at=${group.retry_at} /></span>`}
        ${reason.length > 0 && html`<span><${Sentence} parts=${reason} /></span>`}
        ${head && html`<span>${group.pool ? "first in line" : "first"}: <a href=${to.run(head.run_id)}>${head.job ?? "run"}</a></span>`}
        ${group.oldest_since && html`<span title="How long the oldest of them has waited">oldest <${Span} from=${group.oldest_since} /></span>`}
      </div>
    </div>
  </li>`;
}

/** @param {{waiting: any}} props */
export function Waiting({ waiting: newest }) {
  const [waiting, steady] = useSteady(newest);
  return html`<${Counted} id="waiting" title="Waiting, and why" steady=${steady} count=${number(waiting.total)} more=${html`<a href=${to.slots()}>Queues</a>`}>
    ${waiting.total === 0 ? html`<p class="none">Nothing waits.</p>` : html`<ul>${waiting.groups.map((group) => html`<${WaitRow} key=${`${group.pool} ${group.code === "backoff"}${group.pool ? "" : group.text}`} group=${group} />`)}</ul>`}
  <//>`;
}
