// What became of each due moment of a job: ran, caught up, owed, skipped; with the reason in words.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { usePages } from "../lib/pages.js";
import { addressWith, param, setParams, to } from "../lib/route.js";
import { capital } from "../lib/format.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Fault, Loaded, Nothing } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { Told } from "../ui/told.js";

const OUTCOMES = [["", "all"], ["run", "ran"], ["caught_up", "caught up"], ["owed", "owed"], ["skipped", "skipped"]];

/** Why it is so, in words. @param {{fire: any}} props */
function Reason({ fire }) {
  if (fire.skipped) return html`<span>${capital(fire.skipped.text)}.</span>`;
  if (fire.outcome === "owed") return "It was missed, and its run has still to begin.";
  if (fire.outcome === "caught_up") return "It was missed, and made up for.";
  if (fire.outcome === "unreadable") return "Its record cannot be read.";
  return html`<span class="quiet">On time.</span>`;
}

const ofRun = (run) => html`<div class="two"><a class="plain row" href=${to.run(run.id)}>${run.state ? html`<${State} of=${run.state} />` : html`<span class="quiet small">no longer kept</span>`}</a>${run.reason && html`<span class="quiet tiny"><${Told} text=${run.reason} /></span>`}</div>`;

/** @param {{job: any}} props */
export function Fires({ job }) {
  const outcome = param("outcome");
  const path = withQuery(`/api/schedules/${encodeURIComponent(job.name)}/fires`, { outcome, "pagination.page_size": 50 });
  const list = usePages(path, { topics: ["runs", "jobs"], keyOf: (fire) => `${fire.instant} ${fire.node ?? ""}` });
  const clock = job.schedule?.timezone;
  const columns = [
    { key: "due", title: "Due", lead: true, cell: (fire) => html`<${Time} at=${fire.instant} ofJob=${clock} form="long" />` },
    { key: "became", title: "Became", cell: (fire) => html`<${State} of=${fire.outcome} />` },
    { key: "why", title: "Why", className: "grow-cell", cell: (fire) => html`<${Reason} fire=${fire} />` },
    { key: "run", title: "Run", cell: (fire) => (fire.run ? ofRun(fire.run) : null) },
    ...(list.rows.some(({ node }) => node) ? [{ key: "node", title: "Node", cell: (fire) => fire.node ?? "" }] : []),
    { key: "ask", title: html`<span class="unseen">Ask why</span>`, className: "of-actions", cell: (fire) => html`<a class="button ghost tiny" href=${addressWith({ tab: "why", at: fire.local, outcome: "" })} aria-label=${`Why, ${fire.local}`}><${Icon} of="help" />Why?</a>` },
  ];
  return html`<section class="card flush" aria-label="Fires of this job">
    <header><div class="row wrap one-of" role="group" aria-label="Fires of one outcome">${OUTCOMES.map(([key, word]) => html`<button type="button" key=${key} class="button ghost tiny" aria-pressed=${key === outcome ? "true" : "false"} onClick=${() => setParams({ outcome: key })}>${key ? html`<${State} of=${key} />` : word}</button>`)}</div></header>
    <div class="body"><${Loaded} query=${list} lines=${8}>${() => html`
      ${list.rows.length > 0 ? html`<${List} rows=${list.rows} columns=${columns} keyOf=${(fire) => `${fire.instant} ${fire.node ?? ""}`} label="Fires" />` : html`<${None} job=${job} outcome=${outcome} />`}
      ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
      ${list.rows.length > 0 && html`<${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "fire" : "fires"} more=${list.more} loading=${list.loadingMore} />`}`}<//></div>
  </section>`;
}

function None({ job, outcome }) {
  if (outcome) return html`<${Nothing} title="No recorded fire of this job became that."><button type="button" class="button" onClick=${() => setParams({ outcome: "" })}>Show all fires</button><//>`;
  if (!job.schedule) return html`<${Nothing} title="This job has no schedule, so nothing fires: it runs when somebody starts it." />`;
  return html`<${Nothing} title="No moment of this schedule has come since ductor knows it." />`;
}
