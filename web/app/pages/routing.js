// Routing: recipient pools, the rules that lead to them, what was decided and why, what others would have; and a trial that commits nothing.
import { html, useMemo } from "../lib/dom.js";
import { usePages } from "../lib/pages.js";
import { param, setParams } from "../lib/route.js";
import { PageHead, Panel, Tabs } from "../ui/parts.js";
import { Bundles } from "./routing_bundles.js";
import { Decision } from "./routing_decision.js";
import { Decisions } from "./routing_decisions.js";
import { RoutingPool } from "./routing_pool.js";
import { RoutingPools } from "./routing_pools.js";
import { Rules } from "./routing_rules.js";
import { Shadow } from "./routing_shadow.js";
import { Try } from "./routing_try.js";

const TABS = [
  { key: "pools", title: "Recipient pools", show: RoutingPools },
  { key: "rules", title: "Rules", show: Rules },
  { key: "decisions", title: "Decisions", show: Decisions },
  { key: "shadow", title: "Shadow", show: Shadow },
  { key: "try", title: "Try", show: Try },
];

/** All recipient pools, and their names by id. */
export function usePools() {
  const list = usePages("/api/pools?order=asc&pagination.page_size=200", { topics: ["routing"], rest: 700, keyOf: (row) => row.id });
  const nameOf = useMemo(() => {
    const names = new Map(list.rows.map((pool) => [pool.id, pool.name]));
    return (id) => names.get(id) ?? id ?? "nothing";
  }, [list.rows]);
  return { list, nameOf };
}

function Overview() {
  const pools = usePools();
  const tab = TABS.find(({ key }) => key === param("tab")) ?? TABS[0];
  return html`<${PageHead} title="Routing" />
    <${Tabs} label="Routing" tabs=${TABS} at=${tab.key} onPick=${(key) => setParams({ tab: key === TABS[0].key ? "" : key })} />
    <${Panel} of=${tab.key}><div class="stack wide"><${tab.show} list=${pools.list} nameOf=${pools.nameOf} />${tab === TABS[0] && html`<${Bundles} />`}</div><//>`;
}

/** @param {{id?: string}} props */
export function Routing({ id }) {
  const decision = param("decision");
  if (decision) return html`<${Decision} key=${decision} id=${decision} />`;
  return id ? html`<${RoutingPool} key=${id} id=${id} />` : html`<${Overview} />`;
}
