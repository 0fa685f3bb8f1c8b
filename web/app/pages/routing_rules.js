// Rules in the order in which they are asked: lower priority first, then by name.
import { html, useMemo } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { usePages } from "../lib/pages.js";
import { to } from "../lib/route.js";
import { deedOf } from "../lib/routing.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Fault, Loaded } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";

const inTurn = (one, other) => (one.priority ?? 100) - (other.priority ?? 100) || (one.name < other.name ? -1 : 1);

/** What went wrong with it in decisions since it was changed last. @param {{errors?: any}} props */
const Failing = ({ errors }) => errors && html`<p class="small"><${State} of="failing" word=${`failed in ${plural(errors.count, "decision")}`} /> <span class="soft">and counted as not matched, last <${Time} at=${errors.last_at} form="relative" />: <span class="breaks">${errors.last_error}</span></span> <a href=${to.decision(errors.last_decision_id)}>that decision</a></p>`;

/** @param {{path: string, nameOf: (id: string) => string, none: string, where?: boolean}} props */
export function RuleList({ path, nameOf, none, where }) {
  const list = usePages(`${path}${path.includes("?") ? "&" : "?"}pagination.page_size=200`, { topics: ["routing"], rest: 1000, keyOf: (row) => row.id });
  const rows = useMemo(() => [...list.rows].sort(inTurn), [list.rows]);
  const columns = [
    { key: "priority", title: "Priority", number: true, cell: (row) => row.priority ?? 100 },
    { key: "name", title: "Rule", lead: true, cell: (row) => html`<strong>${row.name}</strong>${row.enabled === false ? html` <${State} of="disabled" word="off" />` : ""}` },
    ...(where ? [{ key: "of", title: "Of", cell: (row) => (row.pool_id ? html`<a href=${to.routing(row.pool_id)}>${nameOf(row.pool_id)}</a>` : html`<span class="quiet">all work</span>`) }] : []),
    { key: "when", title: "When", className: "why", cell: (row) => html`<code class="breaks">${row.expression}</code><${Failing} errors=${row.evaluation_errors} />` },
    { key: "does", title: "Does", cell: (row) => deedOf(row, nameOf) },
  ];
  return html`<${Loaded} query=${list} lines=${3}>${() => (rows.length === 0 ? html`<p class="pad small quiet">${none}</p>` : html`
    <${List} rows=${rows} columns=${columns} keyOf=${(row) => row.id} label="Rules" />
    ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
    ${list.more && html`<${ListFoot} count=${rows.length} what="rules" more=${list.more} loading=${list.loadingMore} />`}`)}<//>`;
}

/** @param {{nameOf: (id: string) => string}} props */
export const Rules = ({ nameOf }) => html`<${Card} title="Rules, first match wins" flush><${RuleList} path="/api/rules?order=asc" nameOf=${nameOf} where none="There are no rules: work is routed only where its request names a pool." /><//>`;
