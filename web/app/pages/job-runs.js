// The runs of one job.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { usePages } from "../lib/pages.js";
import { param, setParams, to } from "../lib/route.js";
import { shortId } from "../lib/format.js";
import { meaning } from "../lib/run.js";
import { dueAt, hasEnded, shownState, tookMs, triggerOf } from "../lib/runs.js";
import { span, whole } from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Fault, Loaded, Nothing } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { daemonNow, Time } from "../ui/time.js";
import { Told } from "../ui/told.js";

const STATES = ["pending", "running", "succeeded", "failed", "cancelled", "skipped"];

/** Why it waits, or why it ended so. */
function Reason({ run, clock }) {
  const waits = run.waiting_reason;
  if (waits) return html`<span class="wait"><${Told} text=${waits.text} ofJob=${clock} /></span>`;
  return run.reason ? html`<span title=${meaning(run.reason)}><${Told} text=${run.reason} ofJob=${clock} /></span>` : null;
}

/** What began it, and for which moment. */
function Trigger({ run, clock }) {
  const { icon, word, by } = triggerOf(run);
  const due = dueAt(run);
  return html`<span class="row"><${Icon} of=${icon} /><span>${word}${due ? html` <span class="quiet tiny nowrap">due <${Time} at=${due} ofJob=${clock} bare /></span>` : by ? html` <span class="quiet tiny">by ${by}</span>` : ""}</span></span>`;
}

/** How long it took; grows while it goes on. */
function Took({ run }) {
  const ms = tookMs(run, hasEnded(run) ? 0 : daemonNow());
  return ms === undefined ? null : html`<span class="nowrap">${hasEnded(run) ? span(ms) : whole(ms)}</span>`;
}

/** @param {{job: any}} props */
export function JobRuns({ job }) {
  const state = param("state");
  const path = withQuery("/api/runs", { job: job.name, state, "pagination.page_size": 50 });
  const list = usePages(path, { topics: ["runs", "slots"], keyOf: (run) => run.id });
  const clock = job.schedule?.timezone;
  const columns = [
    { key: "state", title: "State", lead: true, cell: (run) => html`<${State} of=${shownState(run)} />` },
    { key: "run", title: "Run", lead: true, cell: (run) => html`<a class="main-link mono" href=${to.run(run.id)} title=${run.id}>${shortId(run.id)}</a>` },
    { key: "trigger", title: "Begun by", cell: (run) => run.trigger && html`<${Trigger} run=${run} clock=${clock} />` },
    { key: "started", title: "Started", cell: (run) => html`<${Time} at=${run.started_at} ofJob=${clock} />` },
    { key: "took", title: "Took", number: true, cell: (run) => html`<${Took} run=${run} />` },
    { key: "why", title: "Reason", className: "grow-cell", cell: (run) => html`<${Reason} run=${run} clock=${clock} />` },
  ];
  return html`<section class="card flush" aria-label="Runs of this job">
    <header><div class="row wrap one-of" role="group" aria-label="Runs in one state">
      <button type="button" class="button ghost tiny" aria-pressed=${state === "" ? "true" : "false"} onClick=${() => setParams({ state: "" })}>all</button>
      ${STATES.map((each) => html`<button type="button" key=${each} class="button ghost tiny" aria-pressed=${state === each ? "true" : "false"} onClick=${() => setParams({ state: each })}><${State} of=${each === "pending" ? "waiting" : each} /></button>`)}</div>
      <div class="more"><a href=${to.runs(`job:${/\s/.test(job.name) ? `"${job.name}"` : job.name}`)}>In the list of all runs</a></div></header>
    <div class="body"><${Loaded} query=${list} lines=${8}>${() => html`
      ${list.rows.length > 0 ? html`<${List} rows=${list.rows} columns=${columns} keyOf=${(run) => run.id} hrefOf=${(run) => to.run(run.id)} label="Runs" />`
        : state ? html`<${Nothing} title="No run of this job is in that state."><button type="button" class="button" onClick=${() => setParams({ state: "" })}>Show all runs</button><//>`
          : html`<${Nothing} title="It has not run yet." command=${`ductor job start ${/^[\w.-]+$/.test(job.name) ? job.name : `'${job.name}'`} --follow`} />`}
      ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
      ${list.rows.length > 0 && html`<${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "run" : "runs"} more=${list.more} loading=${list.loadingMore} />`}`}<//></div>
  </section>`;
}
