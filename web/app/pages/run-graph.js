// The graph of a run as it stands, its steps as a table, and the step that is picked.
import { html } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { rowsOf } from "../lib/graph.js";
import { param, setParams } from "../lib/route.js";
import { Graph } from "../ui/graph.js";
import { Card, Loaded } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Told } from "../ui/told.js";
import { RunStep } from "./run-step.js";

const SHOWN_MAX = 200;
const pick = (ref) => setParams({ step: param("step") === ref ? "" : ref }, { replace: true });
const cell = (label, content, className = "") => html`<td data-label=${label} class=${className}>${content}</td>`;

/** In the order in which the graph is read, branches by their numbers. @param {any[]} steps @param {any} graph */
function inOrder(steps, graph) {
  const place = new Map((graph ? rowsOf(graph) : []).map((row, at) => [row.ref, at]));
  const key = (step) => step.ref.split("#");
  return [...steps].sort((one, other) => {
    const [a, b] = [key(one), key(other)];
    return (place.get(a[0]) ?? 0) - (place.get(b[0]) ?? 0) || Number(a[1] ?? 0) - Number(b[1] ?? 0) || Number(a[2] ?? 0) - Number(b[2] ?? 0);
  });
}

/** @param {{run: any, graph: any}} props */
function Steps({ run, graph }) {
  const steps = inOrder(run.steps, graph).slice(0, SHOWN_MAX);
  const titles = new Map((graph?.nodes ?? []).map((node) => [node.ref, node.title]));
  return html`<${Card} title="Steps" flush=${true} more=${html`<span class="quiet">${plural(run.steps.length, "step")} reached${run.steps.length > SHOWN_MAX ? `, the first ${SHOWN_MAX} are shown` : ""}</span>`}>
    <div class="scroll-x" role="region" aria-label="Steps" tabindex="-1"><table class="list as-cards"><thead><tr>${["Step", "State", "Attempt", "Why"].map((head) => html`<th key=${head} scope="col" class=${head === "Attempt" ? "number" : ""}>${head}</th>`)}</tr></thead>
    <tbody>${steps.map((step) => {
      const [base, ...branch] = step.ref.split("#");
      return html`<tr key=${step.ref} class=${step.ref === param("step") ? "at" : ""}>
        ${cell("Step", html`<button type="button" class="link" onClick=${() => pick(step.ref)}>${titles.get(base) ?? base}</button>${branch.length > 0 ? html` <span class="quiet">item ${branch.join(", ")}</span>` : ""}`, "lead")}
        ${cell("State", html`<${State} of=${step.state} />`)}
        ${cell("Attempt", step.attempts.length > 0 || step.live ? step.attempt : "", "number")}
        ${cell("Why", step.reason ? html`<${Told} text=${step.reason} />` : "", "c-reason")}
      </tr>`;
    })}</tbody></table></div><//>`;
}

/** @param {{run: any, query: any}} props */
export function RunGraph({ run, query }) {
  return html`<div class="stack wide"><${Card} title="Graph"><${Loaded} query=${query} lines=${6}>${(graph) => html`<${Graph} graph=${graph} label=${`The steps of ${run.job}`} picked=${param("step").split("#")[0]} onPick=${pick} />`}<//>
      ${param("step") && query.data && html`<${RunStep} key=${param("step")} run=${run} name=${param("step")} graph=${query.data} onPick=${pick} />`}<//>
    <${Steps} run=${run} graph=${query.data} /></div>`;
}
