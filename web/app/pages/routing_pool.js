// One recipient pool: whether it routes, its recipients, its rules, what waits, what was decided last.
import { html } from "../lib/dom.js";
import { to } from "../lib/route.js";
import { condition, fallbackOf, offers, reasonsOf, strategyOf, whyWaits } from "../lib/routing.js";
import { usePages } from "../lib/pages.js";
import { useQuery } from "../lib/store.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Facts, Fault, Loaded, PageHead } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { resetWish } from "./routing_actions.js";
import { usePools } from "./routing.js";
import { DecisionList } from "./routing_decisions.js";
import { Engaged, SwitchButton, Usage } from "./routing_pools.js";
import { Recipients } from "./routing_recipients.js";
import { RuleList } from "./routing_rules.js";

/** What waits, with why. @param {{pool: import("../lib/routing.js").RecipientPool}} props */
function Waiting({ pool }) {
  const { id } = pool;
  const list = usePages(`/api/queues/${encodeURIComponent(id)}/items`, { topics: ["routing"], rest: 1000, keyOf: (row) => row.id });
  const columns = [
    { key: "work", title: "Work", lead: true, cell: (row) => html`<a href=${to.decision(row.decision_id)} title="The decision that left it here"><code>${row.work_id}</code></a>${row.kind === "catchall" ? html` <span class="tag" title="Then it goes to the catchall pool, unless somebody here can take it before">hops ${html`<${Time} at=${row.hops_at} form="relative" />`}</span>` : ""}` },
    { key: "priority", title: "Priority", number: true, cell: (row) => row.priority },
    { key: "since", title: "Waits since", cell: (row) => html`<${Time} at=${row.enqueued_at} />` },
    { key: "why", title: "Why", className: "why", cell: (row) => html`<span class="soft" title=${reasonsOf(row.histogram).join(", ")}>${whyWaits(row, pool)}${row.wakes_at ? html`; tried again <${Time} at=${row.wakes_at} form="relative" /> at the latest` : ""}</span>` },
    { key: "until", title: "Gives up", cell: (row) => (row.expires_at ? html`<${Time} at=${row.expires_at} form="relative" />` : html`<span class="quiet">—</span>`) },
  ];
  return html`<${Card} title="Waiting" flush><${Loaded} query=${list} lines=${3}>${() => (list.rows.length === 0 ? html`<p class="pad small quiet">Nothing waits here.</p>` : html`
    <${List} rows=${list.rows} columns=${columns} keyOf=${(row) => row.id} label="What waits" />
    ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
    <${ListFoot} count=${list.rows.length} what="waiting" more=${list.more} loading=${list.loadingMore} />`)}<//><//>`;
}

/** What its recipients may claim now; hidden fields are not shown here either. @param {{pool: import("../lib/routing.js").RecipientPool}} props */
function Offered({ pool }) {
  const query = useQuery(`/api/claim-queues/${encodeURIComponent(pool.config?.claim_queue_id ?? pool.id)}/items`, { topics: ["routing"], rest: 1000 });
  const columns = [
    { key: "work", title: "Work", lead: true, cell: (row) => html`<a href=${to.decision(row.decision_id)} title="The decision that offers it">${row.work.kind ?? "hidden"}</a> <code class="tiny quiet">${row.work.id ?? ""}</code>` },
    { key: "priority", title: "Priority", number: true, cell: (row) => row.priority },
    { key: "since", title: "Offered since", cell: (row) => html`<${Time} at=${row.offered_at} />` },
    { key: "neglected", title: "Neglected", number: true, cell: (row) => row.neglect_count || html`<span class="quiet">—</span>` },
    { key: "ends", title: "Offer ends", cell: (row) => html`<${Time} at=${row.ends_at} form="relative" />` },
  ];
  return html`<${Card} title="Offered" flush><${Loaded} query=${query} lines=${3}>${(offers) => {
    const rows = offers.filter((row) => row.pool_id === pool.id);
    return rows.length === 0 ? html`<p class="pad small quiet">Nothing is offered now.</p>` : html`<${List} rows=${rows} columns=${columns} keyOf=${(row) => row.id} label="What is offered" />
      <${ListFoot} count=${rows.length} what=${rows.length === 1 ? "offer" : "offers"} />`;
  }}<//><//>`;
}

/** @param {{pool: any, nameOf: (id: string) => string}} props */
function Policy({ pool, nameOf }) {
  const { config = {} } = pool;
  const sla = config.sla?.enabled ? [config.sla.max_queue_time && `${config.sla.max_queue_time} to be taken`, config.sla.max_response_time && `${config.sla.max_response_time} to the first response`].filter(Boolean).join(", ") : undefined;
  return html`<${Facts} of=${[
    ["Picks by", html`<code>${strategyOf(pool)}</code>`],
    ["Nobody eligible", html`the work ${fallbackOf(pool, nameOf)}`],
    ["Deadline", config.default_timeout],
    ["Busy recipients", config.busy_policy],
    ["Over capacity", config.allow_over_capacity ? `up to ${config.over_capacity_budget ?? 0} %` : undefined],
    ["SLA", sla],
    ["Claims", config.claim_budget && `${config.claim_budget.limit} in ${config.claim_budget.per}`],
    ["Version", pool.record_version],
  ]} />`;
}

/** @param {{id: string}} props */
export function RoutingPool({ id }) {
  const query = useQuery(`/api/pools/${encodeURIComponent(id)}`, { topics: ["routing"], rest: 500 });
  const stats = useQuery(`/api/pools/${encodeURIComponent(id)}/stats`, { topics: ["routing"], every: 15_000, rest: 1000 });
  const { nameOf } = usePools();
  const known = query.data;
  const now = known && condition(known);
  return html`<${PageHead} title=${html`<a class="plain trail" href=${to.routing()}>Routing</a> <span class="trail">/</span> ${known?.name ?? "Pool"}`} beside=${now && html`<${State} of=${now.state} word=${now.word} chip />`}>
      ${known && html`<${AskButton} wish=${() => resetWish(known)} className="ghost"><${Icon} of="again" />Reset capacity<//><${SwitchButton} pool=${known} tone="danger" />`}<//>
    <${Loaded} query=${query} lines=${8}>${(pool) => html`<div class="stack wide">
        <${Engaged} pool=${pool} />
        <div class="grid">
          <${Card} title="Now"><div class="stack">${pool.description && html`<p class="soft">${pool.description}</p>`}<${Usage} stats=${stats.data} name=${pool.name} /></div><//>
          <${Card} title="How it routes"><${Policy} pool=${pool} nameOf=${nameOf} /><//>
        </div>
        <${Recipients} pool=${pool} />
        <${Card} title="Rules of this pool" flush><${RuleList} path=${`/api/rules?pool_id=${encodeURIComponent(id)}&order=asc`} nameOf=${nameOf} none="No rule looks at its recipients." /><//>
        ${offers(pool) && html`<${Offered} pool=${pool} />`}
        <${Waiting} pool=${pool} />
        <${Card} title="Last decisions" flush><${DecisionList} path=${`/api/decisions?pool_id=${encodeURIComponent(id)}&pagination.page_size=20`} none="Nothing was routed here yet." /><//>
      </div>`}<//>`;
}
