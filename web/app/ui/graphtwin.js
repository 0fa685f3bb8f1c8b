// The steps of a graph as a table: what the picture says, for whoever reads rather than looks.
import { html, useState } from "../lib/dom.js";
import { branchWords, rowsOf, typeWord } from "../lib/graph.js";
import { State } from "./state.js";

const cell = (label, content, className = "") => html`<td data-label=${label} class=${className}>${content}</td>`;

/** @param {{graph: import("../lib/graph.js").Graph, onPick: (ref: string) => void}} props */
export function GraphTwin({ graph, onPick }) {
  const [open, setOpen] = useState(false);
  const runs = graph.nodes.some((node) => node.state);
  const heads = ["Step", "Type", ...(runs ? ["State"] : []), "Follows"];
  return html`<details class="twin" onToggle=${(event) => setOpen(event.currentTarget.open)}><summary class="small">As a table</summary>${open && html`<div class="scroll-x" role="region" aria-label="Steps of the graph" tabindex="-1"><table class="list as-cards">
    <thead><tr>${heads.map((head) => html`<th key=${head} scope="col">${head}</th>`)}</tr></thead>
    <tbody>${rowsOf(graph).map((row) => html`<tr key=${row.ref}>
      ${cell("Step", html`<button type="button" class=${`link depth-${Math.min(row.depth, 4)}`} onClick=${() => onPick(row.ref)}>${row.title || row.ref}</button>${row.title && row.title !== row.ref && html` <code class="quiet">${row.ref}</code>`}`, "lead")}
      ${cell("Type", html`${typeWord(row.type)}${row.folded ? html`<span class="quiet">, ${row.folded} steps inside</span>` : ""}`)}
      ${runs && cell("State", row.state ? html`<${State} of=${row.state} />${row.branches && html` <span class="quiet">${branchWords(row.branches)}</span>`}` : "")}
      ${cell("Follows", row.after.length === 0 ? html`<span class="quiet">${row.parent ? "the start of its branch" : "the start"}</span>` : row.after.map((each, at) => html`<span key=${each.ref} class=${each.taken === false ? "quiet" : ""}>${at > 0 ? "; " : ""}${each.title} ${each.told}</span>`))}
    </tr>`)}</tbody></table></div>`}</details>`;
}
