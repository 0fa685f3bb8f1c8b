// Recipient pools as cards: whether they route, what picks, how full they are.
import { html } from "../lib/dom.js";
import { asCli } from "../lib/clip.js";
import { number, percent, plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { condition, fallbackOf, membersOf, strategyOf } from "../lib/routing.js";
import { useQuery } from "../lib/store.js";
import { whole } from "../lib/time.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { ListFoot } from "../ui/list.js";
import { Command, Fault, Loaded, Note } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { switchWish } from "./routing_actions.js";

/** @param {{pool: import("../lib/routing.js").RecipientPool, tone?: string}} props */
export const SwitchButton = ({ pool, tone = "ghost" }) => (pool.config?.kill_switch
  ? html`<${AskButton} wish=${() => switchWish(pool)}><${Icon} of="play" />Let it route<span class="unseen"> ${pool.name}</span><//>`
  : html`<${AskButton} wish=${() => switchWish(pool)} className=${tone}><${Icon} of="stop" />Stop<span class="unseen"> ${pool.name}</span><//>`);

/** @param {{pool: import("../lib/routing.js").RecipientPool}} props */
export const Engaged = ({ pool }) => pool.config?.kill_switch && html`<${Note} of="bad" icon="stop"><strong>Nothing is routed here</strong>${pool.config?.kill_switch_reason ? html`: ‘${pool.config?.kill_switch_reason}’` : ""}
  <span class="nowrap"> (${pool.config?.kill_switch_by ?? "somebody"}, <${Time} at=${pool.config?.kill_switch_at} form="relative" />)</span><//>`;

/** How full all of its members are together. @param {{stats: any, name: string}} props */
export function Usage({ stats, name }) {
  if (!stats) return html`<p class="small quiet">…</p>`;
  const part = Math.min(stats.utilization ?? 0, 1);
  return html`<p class="capacity"><strong>${number(stats.used_capacity)}</strong> of ${number(stats.total_capacity)} in use by ${number(stats.active_recipients)} of ${plural(stats.total_recipients, "recipient")}</p>
    <div class="meter" role="img" aria-label=${`${name}: ${percent(part)} in use`}>${part > 0 && html`<span class=${`part ${part >= 1 ? "over" : ""}`} style=${{ width: `${part * 100}%` }}></span>`}</div>
    <p class="small">${stats.queue_depth > 0 ? html`<span class="wait">${number(stats.queue_depth)} waiting${stats.oldest_queued_seconds ? html`, the oldest for ${whole(stats.oldest_queued_seconds * 1000)}` : ""}</span>` : html`<span class="quiet">nothing waits</span>`}${stats.stale_assignments > 0 ? html` <span class="bad">· ${plural(stats.stale_assignments, "assignment")} open for over a day without a deadline</span>` : ""}</p>`;
}

/** @param {{pool: import("../lib/routing.js").RecipientPool, nameOf: (id: string) => string}} props */
function PoolCard({ pool, nameOf }) {
  const stats = useQuery(`/api/pools/${encodeURIComponent(pool.id)}/stats`, { topics: ["routing"], every: 15_000, rest: 1000 });
  const { state, word } = condition(pool);
  return html`<article class="card" aria-labelledby=${`pool-${pool.id}`}>
    <header><h2 id=${`pool-${pool.id}`} class="clip"><a class="plain" href=${to.routing(pool.id)}>${pool.name}</a></h2><${State} of=${state} word=${word} chip /><div class="more"><${SwitchButton} pool=${pool} /></div></header>
    <div class="body stack">
      <${Engaged} pool=${pool} />
      ${pool.description && html`<p class="small soft">${pool.description}</p>`}
      ${stats.error && !stats.data ? html`<${Fault} error=${stats.error} again=${stats.reload} />` : html`<${Usage} stats=${stats.data} name=${pool.name} />`}
      <p class="small quiet"><code>${strategyOf(pool)}</code> · ${membersOf(pool)} · what nobody takes ${fallbackOf(pool, nameOf)}</p>
    </div>
  </article>`;
}

const First = () => html`<div class="nothing">
  <p>There are no recipient pools yet. A pool holds who or what may get work: people, teams, models, queues. Rules lead work to it, its strategy picks one, and each decision says why.</p>
  <p class="small quiet">A pool needs a name alone; the page API has the rest of what it can be told. All of it in one file is a bundle, which the configuration can keep in force.</p>
  <${Command} text=${`echo '{"name": "desk"}' | ${asCli(["pool", "create", "-"], location.origin)}`} />
  <${Command} text=${asCli(["bundle", "apply", "--file", "desk.yaml"], location.origin)} />
</div>`;

/** @param {{list: any, nameOf: (id: string) => string}} props */
export const RoutingPools = ({ list, nameOf }) => html`<${Loaded} query=${list} lines=${6}>${() => (list.rows.length === 0 ? html`<div class="card"><${First} /></div>` : html`
  <div class="grid">${list.rows.map((pool) => html`<${PoolCard} key=${pool.id} pool=${pool} nameOf=${nameOf} />`)}</div>
  ${list.more && html`<${ListFoot} count=${list.rows.length} what="pools" more=${list.more} loading=${list.loadingMore} />`}`)}<//>`;
