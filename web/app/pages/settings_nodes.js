// Daemons that have used this state directory.
import { html } from "../lib/dom.js";
import { usePages } from "../lib/pages.js";
import { Card, Fault, Note, Skeleton } from "../ui/parts.js";
import { List, ListFoot } from "../ui/list.js";
import { State } from "../ui/state.js";
import { Span, Time } from "../ui/time.js";

const COLUMNS = [
  { key: "name", title: "Node", lead: true, cell: (node) => html`<span class="row wrap"><strong>${node.name}</strong>${node.own && html`<span class="tag">this one</span>`}${node.generated && html`<span class="tag" title="Made at the first start; \`node.name\` of the configuration gives it another">generated name</span>`}</span>` },
  { key: "state", title: "State", cell: (node) => html`<${State} of=${node.state} title=${node.state === "live" ? "It holds its lock" : "Nobody holds its lock: its process has ended"} />` },
  { key: "pid", title: "Process", number: true, cell: (node) => html`<span class="mono">${node.pid}</span>` },
  { key: "started", title: "Started", cell: (node) => html`<${Time} at=${node.started_at} />` },
  { key: "up", title: "Up for", cell: (node) => (node.state === "live" ? html`<${Span} from=${node.started_at} />` : html`<span class="quiet">—</span>`) },
  { key: "seen", title: "Last seen", cell: (node) => html`<${Time} at=${node.last_seen} form="relative" />` },
];

export function Nodes() {
  const nodes = usePages("/api/nodes", { topics: ["nodes"], keyOf: (node) => node.name });
  const gone = nodes.rows.filter((node) => node.state !== "live").length;
  return html`
    ${nodes.error && html`<${Fault} error=${nodes.error} again=${nodes.reload} />`}
    <${Card} title="Daemons of this state directory" flush>
      ${nodes.data === undefined ? !nodes.error && html`<${Skeleton} lines=${3} />` : html`<${List} label="Nodes" rows=${nodes.rows} columns=${COLUMNS} keyOf=${(node) => node.name} />
      <${ListFoot} count=${nodes.rows.length} what=${nodes.rows.length === 1 ? "node" : "nodes"} more=${nodes.more} loading=${nodes.loadingMore} />`}
    <//>
    ${gone > 0 && html`<${Note}>A node that is gone holds nothing: when its lease ends, what it ran is put back or counted as lost. Its row stays, so that older runs can name it.<//>`}`;
}
