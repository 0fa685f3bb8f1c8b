// Daemons that have used this state directory.
import { html } from "../lib/dom.js";
import { usePages } from "../lib/pages.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Card, Fault, Note, Skeleton } from "../ui/parts.js";
import { List, ListFoot } from "../ui/list.js";
import { State } from "../ui/state.js";
import { Span, Time } from "../ui/time.js";
import { number } from "../lib/format.js";

/** What a state of a node means. */
const MEANING = {
  live: "It holds its lock",
  draining: "It begins nothing more, and ends what it runs",
  drained: "It begins nothing more, and runs nothing",
  gone: "Nobody holds its lock: its process has ended",
};
/** Who drained it, and why. */
const drainTitle = ({ by, note, since }) => `Drained by ${by} since ${since}${note ? `: ${note}` : ""}`;

const path = (node, verb) => `/api/nodes/${encodeURIComponent(node.name)}:${verb}`;

/** @returns {import("../ui/dialog.js").Wish} */
const drainWish = (node) => ({
  title: `Drain ${node.name}`,
  will: html`<p><strong>${node.name}</strong> begins nothing more, over restarts too, until somebody undrains it. What it runs goes on (${number(node.running)} now); other nodes take over what is not bound to it.</p>`,
  verb: "Drain",
  fields: [{ name: "note", label: "Reason", value: "", hint: "For whoever finds it drained." }],
  request: ({ note }) => ({ method: "POST", path: path(node, "drain"), body: note ? { note } : {} }),
  cli: ({ note }) => ["node", "drain", node.name, "--no-wait", ...(note ? ["--reason", note] : [])],
  done: () => `${node.name} begins nothing more`,
});

/** @returns {import("../ui/dialog.js").Wish} */
const undrainWish = (node) => ({
  title: `Undrain ${node.name}`,
  will: html`<p><strong>${node.name}</strong> may begin work again, at once if it lives.</p>`,
  verb: "Undrain",
  request: () => ({ method: "POST", path: path(node, "undrain") }),
  cli: () => ["node", "undrain", node.name],
  done: () => `${node.name} may begin work again`,
});

const DrainButton = ({ node }) => node.drain
  ? html`<${AskButton} wish=${() => undrainWish(node)} className="ghost"><${Icon} of="play" />Undrain<span class="unseen"> ${node.name}</span><//>`
  : html`<${AskButton} wish=${() => drainWish(node)} className="ghost"><${Icon} of="pause" />Drain<span class="unseen"> ${node.name}</span><//>`;

const COLUMNS = [
  { key: "name", title: "Node", lead: true, cell: (node) => html`<span class="row wrap"><strong>${node.name}</strong>${node.own && html`<span class="tag">this one</span>`}${node.generated && html`<span class="tag" title="Made at the first start; \`node.name\` of the configuration gives it another">generated name</span>`}</span>` },
  { key: "state", title: "State", cell: (node) => html`<${State} of=${node.state} title=${node.drain && node.state !== "gone" ? drainTitle(node.drain) : MEANING[node.state]} />` },
  { key: "runs", title: "Runs", number: true, cell: (node) => number(node.running) },
  { key: "waits", title: "Waits for it", number: true, cell: (node) => html`<span title="Starts by hand and fires of EveryNode: no other node may run them">${number(node.waiting)}</span>` },
  { key: "pid", title: "Process", number: true, cell: (node) => html`<span class="mono">${node.pid}</span>` },
  { key: "started", title: "Started", cell: (node) => html`<${Time} at=${node.started_at} />` },
  { key: "up", title: "Up for", cell: (node) => (node.state !== "gone" ? html`<${Span} from=${node.started_at} />` : html`<span class="quiet">—</span>`) },
  { key: "seen", title: "Last seen", cell: (node) => html`<${Time} at=${node.last_seen} form="relative" />` },
  { key: "act", title: "", cell: (node) => html`<${DrainButton} node=${node} />` },
];

export function Nodes() {
  const nodes = usePages("/api/nodes", { topics: ["nodes"], keyOf: (node) => node.name });
  const gone = nodes.rows.filter((node) => node.state === "gone");
  const bound = gone.filter((node) => node.waiting > 0);
  return html`
    ${nodes.error && html`<${Fault} error=${nodes.error} again=${nodes.reload} />`}
    <${Card} title="Daemons of this state directory" flush>
      ${nodes.data === undefined ? !nodes.error && html`<${Skeleton} lines=${3} />` : html`<${List} label="Nodes" rows=${nodes.rows} columns=${COLUMNS} keyOf=${(node) => node.name} />
      <${ListFoot} count=${nodes.rows.length} what=${nodes.rows.length === 1 ? "node" : "nodes"} more=${nodes.more} loading=${nodes.loadingMore} />`}
    <//>
    ${bound.length > 0 && html`<${Note}>${bound.map(({ name, waiting }) => `${number(waiting)} ${waiting === 1 ? "start waits" : "starts wait"} for ${name}`).join(", ")}: no other node may run them. They begin when it is back, or end at their deadline.<//>`}
    ${gone.length > 0 && html`<${Note}>A node that is gone holds nothing: what it ran on this machine is put back at once, elsewhere when its lease ends. Its row stays, so that older runs can name it.<//>`}`;
}
