// Approvals: what waits for a person or an answer from outside, with its context; approved or rejected here.
import { html } from "../lib/dom.js";
import { usePages } from "../lib/pages.js";
import { ListFoot } from "../ui/list.js";
import { Fault, Loaded, Nothing, PageHead } from "../ui/parts.js";
import { Checkpoint } from "./checkpoint.js";

export function Approvals() {
  const list = usePages("/api/checkpoints", { topics: ["runs"], rest: 1000, keyOf: (each) => each.id });
  return html`<${PageHead} title="Approvals" />
    <${Loaded} query=${list} lines=${6}>${() => (list.rows.length === 0
      ? html`<div class="card"><${Nothing} title="Nothing waits for you."><p class="small soft">A step of the type approval or checkpoint appears here when a run reaches it.</p><//></div>`
      : html`<ul class="checkpoints">${list.rows.map((each) => html`<li key=${each.id}><${Checkpoint} of=${each} /></li>`)}</ul>
        ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
        <${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "decision" : "decisions"} more=${list.more} loading=${list.loadingMore} />`)}<//>`;
}
