// The runs of one job.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { usePages } from "../lib/pages.js";
import { param, setParams, to } from "../lib/route.js";
import { shortId } from "../lib/format.js";
import { List, ListFoot } from "../ui/list.js";
import { Fault, Loaded, Nothing } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Span, Time, Told } from "../ui/time.js";

const STATES = ["pending", "running", "succeeded", "failed", "cancelled", "skipped"];
const TRIGGERS = { schedule: "schedule", manual: "by hand", catchup: "catch-up", api: "by hand", retry: "retry", rerun: "rerun" };

const Waits = ({ run, clock }) => {
  const text = run.waiting_reason?.text ?? run.reason;
  return text ? html`<span class=${run.waiting_reason ? "wait" : ""}><${Told} text=${text} ofJob=${clock} /></span>` : null;
};

/** @param {{job: any}} props */
export function JobRuns({ job }) {
  const state = param("state");
  const path = withQuery("/api/runs", { job: job.name, state, "pagination.page_size": 50 });
  const list = usePages(path, { topics: ["runs", "slots"], keyOf: (run) => run.id });
  const clock = job.schedule?.timezone;
  const columns = [
    { key: "state", title: "State", lead: true, cell: (run) => html`<${State} of=${run.state === "running" && run.waiting_reason?.code === "retry" ? "retrying" : run.state} />` },
    { key: "run", title: "Run", lead: true, cell: (run) => html`<a class="main-link mono" href=${to.run(run.id)} title=${run.id}>${shortId(run.id)}</a>` },
    { key: "trigger", title: "Because of", cell: (run) => html`${TRIGGERS[run.trigger?.kind] ?? run.trigger?.kind ?? "—"}${run.trigger?.scheduled_at && html` <span class="quiet tiny">due <${Time} at=${run.trigger.scheduled_at} ofJob=${clock} bare /></span>`}` },
    { key: "started", title: "Started", cell: (run) => html`<${Time} at=${run.started_at} ofJob=${clock} />` },
    { key: "took", title: "Took", number: true, cell: (run) => html`<${Span} from=${run.started_at} to=${run.ended_at} />` },
    { key: "why", title: "Reason", className: "grow-cell", cell: (run) => html`<${Waits} run=${run} clock=${clock} />` },
  ];
  return html`<section class="card flush" aria-label="Runs of this job">
    <header><div class="row wrap quick" role="group" aria-label="Runs in one state">
      <button type="button" class="button ghost tiny" aria-pressed=${state === "" ? "true" : "false"} onClick=${() => setParams({ state: "" })}>all</button>
      ${STATES.map((each) => html`<button type="button" key=${each} class="button ghost tiny" aria-pressed=${state === each ? "true" : "false"} onClick=${() => setParams({ state: each })}><${State} of=${each} /></button>`)}</div>
      <div class="more"><a href=${to.runs(`job:${/\s/.test(job.name) ? `"${job.name}"` : job.name}`)}>In the list of all runs</a></div></header>
    <div class="body"><${Loaded} query=${list} lines=${8}>${() => html`
      ${list.rows.length > 0 ? html`<${List} rows=${list.rows} columns=${columns} keyOf=${(run) => run.id} hrefOf=${(run) => to.run(run.id)} label="Runs" />`
        : state ? html`<${Nothing} title="No run of this job is in that state."><button type="button" class="button" onClick=${() => setParams({ state: "" })}>Show all runs</button><//>`
          : html`<${Nothing} title="It has not run yet." command=${`ductor job start ${/^[\w.-]+$/.test(job.name) ? job.name : `'${job.name}'`} --follow`} />`}
      ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
      ${list.rows.length > 0 && html`<${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "run" : "runs"} more=${list.more} loading=${list.loadingMore} />`}`}<//></div>
  </section>`;
}
