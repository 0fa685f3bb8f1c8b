// Decisions, newest first; each opens into who was considered and why each did or did not get the work.
import { html } from "../lib/dom.js";
import { usePages } from "../lib/pages.js";
import { to } from "../lib/route.js";
import { outcomeState } from "../lib/routing.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Fault, Loaded } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";

/** @param {{path: string, none: string, nameOf?: (id: string) => string}} props `nameOf`: where pools are named */
export function DecisionList({ path, none, nameOf }) {
  const list = usePages(path, { topics: ["routing"], rest: 1000, keyOf: (row) => row.id });
  const columns = [
    { key: "at", title: "When", lead: true, cell: (row) => html`<a class="main-link" href=${to.decision(row.id)}><${Time} at=${row.at} /></a>` },
    { key: "outcome", title: "Outcome", cell: (row) => html`<${State} of=${outcomeState(row.outcome)} word=${row.outcome.replaceAll("_", " ")} />` },
    ...(nameOf ? [{ key: "pool", title: "Pool", cell: (row) => (row.pool_id ? html`<a href=${to.routing(row.pool_id)}>${nameOf(row.pool_id)}</a>` : html`<span class="quiet">—</span>`) }] : []),
    { key: "summary", title: "Why", className: "why", cell: (row) => html`<span class="soft">${row.summary}</span>` },
  ];
  return html`<${Loaded} query=${list} lines=${4}>${() => (list.rows.length === 0 ? html`<p class="pad small quiet">${none}</p>` : html`
    <${List} rows=${list.rows} columns=${columns} keyOf=${(row) => row.id} hrefOf=${(row) => to.decision(row.id)} label="Decisions" />
    ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
    <${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "decision" : "decisions"} more=${list.more} loading=${list.loadingMore} />`)}<//>`;
}

/** @param {{nameOf: (id: string) => string}} props */
export const Decisions = ({ nameOf }) => html`<${Card} title="Decisions" flush><${DecisionList} path="/api/decisions" nameOf=${nameOf} none="Nothing was routed yet. The tab Try shows what would happen to a piece of work." /><//>`;
