// What comes next, what holds slots, which daemons are there.
import { html } from "../lib/dom.js";
import { instant, number, plural } from "../lib/format.js";
import { bySorrow } from "../lib/home.js";
import { to } from "../lib/route.js";
import { whole } from "../lib/time.js";
import { Meter } from "../ui/bars.js";
import { State } from "../ui/state.js";
import { daemonNow, Time } from "../ui/time.js";
import { Counted, useSteady } from "./home_parts.js";

const SLOT_POOLS_MAX = 8;
const NODES_MAX = 6;

/** `in 12 s`; counts down by itself. @param {{at: string}} props */
export function Countdown({ at }) {
  const left = (instant(at) ?? 0) - daemonNow();
  return html`<span class="nowrap">${left < 1000 ? "now" : `in ${left < 600_000 ? whole(left) : whole(Math.floor(left / 60_000) * 60_000)}`}</span>`;
}

/** @param {{fires: any[]}} props */
export function NextFires({ fires: newest }) {
  const [fires, steady] = useSteady(newest);
  return html`<${Counted} id="next" title="Next fires" steady=${steady} more=${html`<a href=${to.jobs()}>Schedules</a>`}>
  ${fires.length === 0 ? html`<p class="none">No job fires by itself: none has a schedule, or all are paused.</p>` : html`<ol>${fires.map((fire) => html`<li class="fire-row" key=${fire.job}>
    <span class="count-down"><${Countdown} at=${fire.at} /></span>
    <a class="main-link clip" href=${to.job(fire.job)}>${fire.job}</a>
    <span class="said tiny quiet clip" title=${fire.description}>${fire.description}</span>
    <span class="when small"><${Time} at=${fire.at} ofJob=${fire.timezone} /></span>
  </li>`)}</ol>`}
  <//>`;
}

function SlotPoolRow({ pool }) {
  const { name, readable, used, slots, queued, paused, draining } = pool;
  if (!readable) return html`<li class="slot-row"><a class="main-link clip" href=${to.slots(name)}>${name}</a><${State} of="unreadable" word="cannot be read" /></li>`;
  return html`<li class="slot-row">
    <span class="row clip"><a class="main-link clip" href=${to.slots(name)}>${name}</a>${paused && html`<${State} of="paused" />`}${draining && html`<${State} of="draining" />`}</span>
    <span class="small numbers"><a class="plain" href=${to.slots(name)}><strong>${number(used)}</strong> of ${number(slots)} used</a>${queued > 0 && html`, <a href=${to.runs(`pool:${name} state:pending`)}>${number(queued)} queued</a>`}</span>
    <${Meter} used=${used} of=${slots} label=${`Slots of ${name} in use`} />
  </li>`;
}

/** @param {{pools: any[]}} props */
export function SlotPools({ pools }) {
  if (pools.length === 0) return null;
  const shown = bySorrow(pools, SLOT_POOLS_MAX);
  return html`<${Counted} id="pools" title="Resource pools" more=${html`<a href=${to.slots()}>All ${pools.length > 1 ? number(pools.length) : ""}</a>`}>
    <ul>${shown.map((pool) => html`<${SlotPoolRow} key=${pool.name} pool=${pool} />`)}</ul>
    ${pools.length > shown.length && html`<div class="list-foot"><a href=${to.slots()}>${plural(pools.length - shown.length, "other slot pool")}</a></div>`}
  <//>`;
}

/** @param {{nodes: any[], own: string}} props */
export function Nodes({ nodes, own }) {
  const live = (node) => (node.state === "gone" ? 1 : 0);
  const shown = [...nodes].sort((one, other) => live(one) - live(other) || (one.last_seen < other.last_seen ? 1 : -1)).slice(0, NODES_MAX);
  return html`<${Counted} id="nodes" title="Nodes" count=${number(nodes.length)} more=${html`<a href=${to.settings("nodes")}>All nodes</a>`}>
    <ul>${shown.map((node) => html`<li class="node-row" key=${node.name}>
      <${State} of=${node.state} /><span class="clip">${node.name}${node.name === own && html` <span class="quiet">this one</span>`}</span>
      <span class="small quiet">seen <${Time} at=${node.last_seen} form="relative" /></span>
    </li>`)}</ul>
  <//>`;
}
