// The graph of a run as it stands, its steps as a table, and the step that is picked.
import { withQuery } from "../lib/api.js";
import { html, useState } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { rowsOf } from "../lib/graph.js";
import { usePages } from "../lib/pages.js";
import { param, setParams } from "../lib/route.js";
import { whyOf } from "../lib/run.js";
import { Graph } from "../ui/graph.js";
import { ListFoot } from "../ui/list.js";
import { Card, Fault, Loaded } from "../ui/parts.js";
import { State, wordOf } from "../ui/state.js";
import { Told } from "../ui/told.js";
import { RunStep } from "./run-step.js";

const PAGE_SIZE = 100;
const STATES = ["failed", "running", "waiting", "queued", "retrying", "succeeded", "skipped"];
const pick = (ref) => setParams({ step: param("step") === ref ? "" : ref }, { replace: true });
const cell = (label, content, className = "") => html`<td data-label=${label} class=${className}>${content}</td>`;

/** @param {{graph: any, steps: any[]}} props */
function Rows({ graph, steps }) {
  const titles = new Map((graph?.nodes ?? []).map((node) => [node.ref, node.title]));
  return html`<div class="scroll-x" role="region" aria-label="Steps" tabindex="-1"><table class="list as-cards"><thead><tr>${["Step", "State", "Attempt", "Why"].map((head) => html`<th key=${head} scope="col" class=${head === "Attempt" ? "number" : ""}>${head}</th>`)}</tr></thead>
    <tbody>${steps.map((step) => {
      const [base, ...branch] = step.ref.split("#");
      return html`<tr key=${step.ref} class=${step.ref === param("step") ? "at" : ""}>
        ${cell("Step", html`<button type="button" class="link" onClick=${() => pick(step.ref)}>${titles.get(base) ?? base}</button>${branch.length > 0 ? html` <span class="quiet">item ${branch.join(", ")}</span>` : ""}`, "lead")}
        ${cell("State", html`<${State} of=${step.state} />`)}
        ${cell("Attempt", step.attempts.length > 0 || step.live ? step.attempt : "", "number")}
        ${cell("Why", whyOf(step) ? html`<${Told} text=${whyOf(step)} />` : "", "c-reason")}
      </tr>`;
    })}</tbody></table></div>`;
}

/** Where all fit into one answer they are read in the order of the graph. @param {{run: any, graph: any}} props */
function AllSteps({ run, graph }) {
  return html`<${Card} title="Steps" flush=${true} more=${html`<span class="quiet">${plural(run.steps.length, "step")} reached</span>`}><${Rows} graph=${graph} steps=${inOrder(run.steps, graph)} /><//>`;
}

/** Many steps come by pages, and can be narrowed to a state. @param {{run: any, graph: any}} props */
function PagedSteps({ run, graph }) {
  const [state, setState] = useState("");
  const list = usePages(withQuery(`/api/runs/${encodeURIComponent(run.id)}/steps`, { state: state || undefined, "pagination.page_size": PAGE_SIZE }), { topics: ["runs"], touches: (/** @type {any} */ change) => change.id === run.id, rest: 3000, keyOf: (step) => step.ref });
  const choice = html`<label class="row small" for="steps-state"><span>State</span><select class="input" id="steps-state" value=${state} onChange=${(event) => setState(event.currentTarget.value)}><option value="">all</option>${STATES.map((each) => html`<option key=${each} value=${each}>${wordOf(each)}</option>`)}</select></label>`;
  return html`<${Card} title="Steps" flush=${true} more=${choice}><${Loaded} query=${list} lines=${5}>${() => (list.rows.length === 0
    ? html`<p class="quiet pad">No step is ${state ? wordOf(state) : "reached"}.</p>`
    : html`<${Rows} graph=${graph} steps=${list.rows} />${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}<${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "step" : "steps"} more=${list.more} loading=${list.loadingMore} />`)}<//><//>`;
}

/** In the order in which the graph is read, branches by their numbers. @param {any[]} steps @param {any} graph */
function inOrder(steps, graph) {
  const place = new Map((graph ? rowsOf(graph) : []).map((row, at) => [row.ref, at]));
  const key = (step) => step.ref.split("#");
  return [...steps].sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    return (place.get(a[0]) ?? 0) - (place.get(b[0]) ?? 0) || Number(a[1] ?? 0) - Number(b[1] ?? 0) || Number(a[2] ?? 0) - Number(b[2] ?? 0);
  });
}

/** @param {{run: any, query: any}} props */
export function RunGraph({ run, query }) {
  return html`<div class="stack wide"><${Card} title="Graph"><${Loaded} query=${query} lines=${6}>${(graph) => html`<${Graph} graph=${graph} label=${`The steps of ${run.job}`} picked=${param("step").split("#")[0]} onPick=${pick} />`}<//>
      ${param("step") && query.data && html`<${RunStep} key=${param("step")} run=${run} name=${param("step")} graph=${query.data} onPick=${pick} />`}<//>
    ${run.more_steps || run.steps.length > PAGE_SIZE ? html`<${PagedSteps} run=${run} graph=${query.data} />` : html`<${AllSteps} run=${run} graph=${query.data} />`}</div>`;
}
