// Workflows: all definitions with how each stands and how its last runs went; and the place where a new one is written.
import { html } from "../lib/dom.js";
import { usePages } from "../lib/pages.js";
import { param, to } from "../lib/route.js";
import { isOfConfiguration, standing } from "../lib/workflow.js";
import { Spark } from "../ui/bars.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Fault, Loaded, PageHead } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { NewWorkflow } from "./workflow-new.js";
import { FirstWorkflow } from "./workflows-first.js";

const PAGE_SIZE = 50;

/** @param {{workflow: any}} props */
export function Standing({ workflow }) {
  const { word, family, text } = standing(workflow);
  const icon = { good: "check", wait: "dots", calm: "off" }[family] ?? "dots";
  return html`<span class="row wrap"><span class=${`state chip of-${family}`} title=${text}><${Icon} of=${icon} />${word}</span>${workflow.draft && workflow.newest_version && html`<span class="tag" title=${text}>draft</span>`}${isOfConfiguration(workflow) && html`<span class="tag" title="A dag of the configuration: its file is changed, nothing here">config</span>`}</span>`;
}

export function Workflows() {
  const list = usePages(`/api/workflows?include=recent&pagination.page_size=${PAGE_SIZE}`, { topics: ["workflows", "runs", "config"], keyOf: (row) => row.family_slug });
  if (param("new")) return html`<${NewWorkflow} />`;
  const columns = [
    { key: "workflow", title: "Workflow", lead: true, cell: (row) => html`<div class="two"><a class="main-link" href=${to.workflow(row.family_slug)}>${row.title || row.family_slug}</a>${row.title && row.title !== row.family_slug && html`<code class="quiet tiny">${row.family_slug}</code>`}</div>` },
    { key: "standing", title: "Stands at", cell: (row) => html`<${Standing} workflow=${row} />` },
    { key: "bars", title: "Last runs", cell: (row) => html`<${Spark} runs=${row.recent ?? []} label=${row.family_slug} />` },
    { key: "last", title: "Last run", cell: (row) => html`<${LastRun} run=${row.recent?.[0]} />` },
    { key: "changed", title: "Changed", cell: (row) => html`<${Time} at=${row.updated_at} />` },
    { key: "do", title: html`<span class="unseen">Actions</span>`, className: "of-actions", cell: (row) => row.current_version && html`<a class="button ghost tiny icon" href=${to.workflow(row.family_slug, "start")} aria-label=${`Start ${row.family_slug}`} title="Start a run"><${Icon} of="play" /></a>` },
  ];
  return html`<${PageHead} title="Workflows"><a class="button" href=${to.workflows(true)}><${Icon} of="plus" />New workflow</a><//>
    <section class="card flush" aria-label="All workflows"><div class="body"><${Loaded} query=${list} lines=${6}>${() => (list.rows.length === 0 ? html`<${FirstWorkflow} />` : html`
      <${List} rows=${list.rows} columns=${columns} keyOf=${(row) => row.family_slug} hrefOf=${(row) => to.workflow(row.family_slug)} label="Workflows" />
      ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
      <${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "workflow" : "workflows"} more=${list.more} loading=${list.loadingMore} />`)}<//></div></section>`;
}

const LastRun = ({ run }) => (run ? html`<a class="plain row" href=${to.run(run.id)}><${State} of=${run.state} /><${Time} at=${run.started_at ?? run.created_at} form="relative" /></a>` : html`<span class="quiet">—</span>`);
