// One slot pool at a glance: who holds what and until when, who is next and why it waits.
import { html, signal, useMemo } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { parts, slotsWord } from "../lib/slots.js";
import { forecast } from "../lib/slotforecast.js";
import { Span } from "../ui/time.js";
import { Backlog, Bound, Condition, Deadline, Lately, Lease, PauseButton, Reasons, Swatch } from "./slots_parts.js";
import { huesOf, Track } from "./slots_track.js";

const HOLDERS = 4;
const NEXT = 3;

/** @param {{pool: import("../lib/slots.js").Pool}} props */
export function PoolCard({ pool }) {
  const lit = useMemo(() => signal(/** @type {string | undefined} */ (undefined)), []);
  const { running, waiting } = parts(pool);
  // The guess moves with the answers, not with the clock: a card does not draw itself each second.
  const { starts } = useMemo(() => forecast(pool, Date.now()), [pool]);
  const colours = huesOf(pool);
  return html`<article class="card pool-card" aria-labelledby=${`pool-${pool.name}`}>
    <header>
      <h2 id=${`pool-${pool.name}`} class="clip"><a class="plain" href=${to.slots(pool.name)}>${pool.name}</a></h2><${Condition} pool=${pool} />
      <div class="more"><${PauseButton} pool=${pool} ghost /></div>
    </header>
    <div class="body stack">
      <p class="capacity"><strong>${number(pool.used)}</strong> of ${slotsWord(pool.slots)} held${pool.draining ? html` <span class="wait">(${number(pool.configuredSlots)} configured)</span>` : ""}</p>
      <${Track} pool=${pool} lit=${lit} />
      ${running.length > 0 && html`<div class="mini"><div class="mini-head" aria-hidden="true"><span></span><span>Held by</span><span>Slots</span><span>Node</span><span>For</span><span>Lease until</span></div>
        <ul aria-label="Who holds slots">${running.slice(0, HOLDERS).map((entry) => html`<li key=${entry.id} class=${lit.value === entry.id ? "lit" : ""}>
          <${Swatch} hue=${colours.get(entry.job)} /><a class="name clip" href=${to.run(entry.runId)}>${entry.job}</a>
          <span class="count">${number(entry.slots)}<span class="label"> ${entry.slots === 1 ? "slot" : "slots"}</span></span>
          <span class="clip"><span class="label">on </span>${entry.claim?.node}</span>
          <span class="nowrap"><span class="label">for </span><${Span} from=${entry.claim?.claimedAt} /></span>
          <span class="nowrap"><span class="label">lease until </span><${Lease} entry=${entry} brief /></span>
        </li>`)}</ul></div>`}
      ${running.length > HOLDERS && html`<a class="small" href=${to.slots(pool.name)}>and ${plural(running.length - HOLDERS, "more claim")}</a>`}
      <${Reasons} pool=${pool} start=${waiting[0] && starts.get(waiting[0].id)} />
      ${waiting.length > 0 && html`<div class="mini"><div class="mini-head" aria-hidden="true"><span></span><span>Next</span><span>Slots</span><span>Priority</span><span>Waits</span><span>Gives up in</span></div>
        <ol aria-label="Who is next">${waiting.slice(0, NEXT).map((entry) => html`<li key=${entry.id}>
          <span class="place">${entry.position}</span><span class="row name-cell"><a class="name clip" href=${to.run(entry.runId)}>${entry.job}</a><${Bound} entry=${entry} /></span>
          <span class="count">${number(entry.slots)}<span class="label"> ${entry.slots === 1 ? "slot" : "slots"}</span></span>
          <span><span class="label">priority </span>${number(entry.priority)}</span>
          <span class="nowrap"><span class="label">waits </span><${Span} from=${entry.queuedAt} /></span>
          <span class="nowrap"><span class="label">gives up in </span><${Deadline} entry=${entry} /></span>
        </li>`)}</ol></div>`}
      ${pool.queued > NEXT && html`<a class="small" href=${to.slots(pool.name)}>and ${number(pool.queued - NEXT)} more in the queue</a>`}
    </div>
    <footer><${Backlog} pool=${pool} /><div class="lately"><${Lately} pool=${pool} /></div></footer>
  </article>`;
}
