// What a workflow is and how it goes: its graph, its last runs as bars, who published what when.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { typeWord } from "../lib/graph.js";
import { param, setParams, to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { isOfConfiguration } from "../lib/workflow.js";
import { Graph } from "../ui/graph.js";
import { Json } from "../ui/json.js";
import { Card, Facts, Loaded } from "../ui/parts.js";
import { Time } from "../ui/time.js";
import { LastRuns } from "./workflow-runs.js";

const pick = (ref) => setParams({ step: param("step") === ref ? "" : ref }, { replace: true });

/** A step of the document, bodies included. @param {any[]} steps @param {string} ref @returns {any} */
function stepIn(steps, ref) {
  for (const step of Array.isArray(steps) ? steps : []) {
    const found = step?.ref === ref ? step : stepIn(step?.args?.body?.steps, ref);
    if (found) return found;
  }
  return undefined;
}

/** @param {{step: any}} props */
const Step = ({ step }) => html`<section class="step-pane" aria-label=${`Step ${step.ref}`}><h3>${step.title || step.ref} <code class="quiet small">${step.ref}</code> <span class="tag">${typeWord(step.type)}</span></h3><${Json} value=${step} label=${`Step ${step.ref} as JSON`} /></section>`;

/** @param {{workflow: any}} props */
export function Overview({ workflow }) {
  const shown = workflow.draft ? "draft" : (workflow.newest_version ?? undefined);
  const query = useQuery(withQuery(`/api/workflows/${encodeURIComponent(workflow.family_slug)}/graph`, { version: shown }), { topics: ["workflows"], touches: (change) => change.id === workflow.family_slug });
  const step = param("step") && stepIn(workflow.document?.steps, param("step"));
  const { document } = workflow;
  return html`<div class="stack wide">
    <${Card} title="Graph" more=${html`<span class="quiet">${workflow.draft ? "of the draft" : `of version ${workflow.newest_version}`}</span>`}>
      <${Loaded} query=${query} lines=${5}>${(graph) => html`<${Graph} graph=${graph} label=${`The steps of ${workflow.title || workflow.family_slug}`} picked=${param("step")} onPick=${pick} />`}<//>
      ${step && html`<${Step} step=${step} />`}
    <//>
    <${LastRuns} workflow=${workflow} />
    <${Card} title="About it"><${Facts} of=${[
      ["Steps", Array.isArray(document?.steps) ? document.steps.length : undefined],
      ["Runs at once", document?.concurrency && `${document.concurrency.limit}${document.concurrency.key ? ` for each ${document.concurrency.key}` : ""}`],
      ["Longest run", document?.run_timeout],
      ["Labels", document?.labels && Object.entries(document.labels).map(([key, value]) => html`<span class="tag" key=${key}>${key}: ${String(value)}</span> `)],
      ["By itself", workflow.schedule],
      ["Made", isOfConfiguration(workflow) ? undefined : html`<${Time} at=${workflow.created_at} form="long" />`],
      ["Changed", html`<${Time} at=${workflow.updated_at} form="long" />`],
      ["Record version", isOfConfiguration(workflow) ? undefined : workflow.record_version],
      ["SHA-256", workflow.sha256 && html`<code class="breaks">${workflow.sha256}</code>`],
    ]} /><p class="small"><a href=${to.workflow(workflow.family_slug, "definition")}>The whole document</a></p><//>
  </div>`;
}
