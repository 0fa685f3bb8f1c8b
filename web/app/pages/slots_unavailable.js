// `pool state is unavailable`: what that means, which pools it is, and what to do.
import { html } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { Command } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Icon } from "../ui/icons.js";

/** @param {{error: any, again: () => void, name?: string}} props */
export function Unavailable({ error, again, name }) {
  const status = useQuery("/api/status", { topics: ["slots", "config"], every: 5000 });
  const pools = status.data?.pools ?? [];
  return html`<section class="card pool-down" aria-labelledby="pool-down">
    <header><${State} of="unreadable" iconOnly /><h2 id="pool-down">Pool state is unavailable</h2><div class="more"><button type="button" class="button" onClick=${again}>Try again</button></div></header>
    <div class="body stack wide">
      <p>${name ? html`The daemon cannot read or write the state of <strong>${name}</strong>.` : "The daemon cannot read or write the state of at least one pool."} Who holds slots and who waits is not known until it can, so nothing is shown rather than something old.</p>
      <div class="grid">
        <div class="stack"><h3>What happens meanwhile</h3><ul class="points small">
          <li>Nothing is admitted to an unreadable pool. A fire that comes due is dropped with a warning and stays in the history as skipped.</li>
          <li>A start by hand and a cancel are refused with 503; nothing of them is done later.</li>
          <li>Running commands go on as long as their lease can be renewed, up to 25 seconds without the store. Then they are ended and run again.</li>
          <li>Waiting entries keep their place. Jobs of readable pools and jobs without a pool go on.</li>
        </ul></div>
        <div class="stack"><h3>What to do</h3><ul class="points small">
          <li>Look at the daemon’s log: it has the cause with path and error.</li>
          <li>See whether the disk is full or read-only, and whether another process holds the store for long.</li>
          <li>Check the store. This changes nothing and says which row is damaged:</li>
        </ul><${Command} text="ductor doctor --store" /></div>
      </div>
      ${pools.length > 0 && !name && html`<div class="stack"><h3>The pools one by one</h3><ul class="pool-lines">${pools.map((pool) => html`<li key=${pool.name}>
        <${State} of=${pool.readable ? "good" : "unreadable"} word=${pool.readable ? "readable" : "unreadable"} />
        <a href=${to.slots(pool.name)}>${pool.name}</a>
        ${pool.readable && html`<span class="small quiet">${pool.used} of ${plural(pool.slots, "slot")} held, ${pool.queued} waiting</span>`}
      </li>`)}</ul></div>`}
      <p class="small quiet row"><${Icon} of="info" /><span><code>${error.method} ${error.path}</code> answered ${error.status} ${error.code}${error.requestId ? html`, request <code>${error.requestId}</code>` : ""}</span></p>
    </div>
  </section>`;
}
