// The claims of a slot pool: which run, on which node, since when, how long it usually takes, until when the lease holds.
import { html, useState } from "../lib/dom.js";
import { shortId } from "../lib/format.js";
import { to } from "../lib/route.js";
import { at, kindWord, parts } from "../lib/slots.js";
import { span } from "../lib/time.js";
import { daemonNow, Span, Time, zoneWord } from "../ui/time.js";
import { Lease, Swatch } from "./slots_parts.js";
import { huesOf } from "./slots_track.js";

const ROWS = 8;
const STEP = 100;

/** How far a claim is, measured by the last ones of its job. @param {{entry: import("../lib/slots.js").Entry, length?: {usual: number, longest: number, count: number}}} props */
function Progress({ entry, length }) {
  if (!length) return html`<span class="quiet">not known yet</span>`;
  const held = daemonNow() - at(entry.claim?.claimedAt);
  const over = held > length.longest && held > length.usual * 1.2;
  const part = Math.min(held / Math.max(length.usual, 1), 1);
  return html`<div class=${`progress ${over ? "over" : ""}`} title=${`The median of the last ${length.count}; the longest took ${span(length.longest)}.`}>
    <span class="meter" aria-hidden="true"><span class=${`part ${over ? "over" : ""}`} style=${{ width: `${part * 100}%` }}></span></span>
    <span class="nowrap">${span(length.usual)}${over ? html` <span class="wait">longer than ever</span>` : ""}</span>
  </div>`;
}

/** @param {{pool: import("../lib/slots.js").Pool, known: Map<string, any>, lit: {value: string | undefined}}} props */
export function Holders({ pool, known, lit }) {
  const { running } = parts(pool);
  const colours = huesOf(pool);
  const [shown, setShown] = useState(ROWS);
  if (running.length === 0) return html`<p class="pad small quiet">Nobody holds a slot now.</p>`;
  return html`<div class="scroll-x pool-list"><table class="list as-cards">
    <thead><tr><th scope="col">Job</th><th scope="col">Run</th><th scope="col" class="number">Slots</th><th scope="col">Node</th><th scope="col">Since (${zoneWord()})</th><th scope="col" class="number">Held</th><th scope="col">Usually</th><th scope="col">Lease until</th></tr></thead>
    <tbody>${running.slice(0, shown).map((entry) => html`<tr key=${entry.id} class=${lit.value === entry.id ? "lit" : ""} onMouseEnter=${() => { lit.value = entry.id; }} onMouseLeave=${() => { lit.value = undefined; }}>
      <td class="lead"><span class="row"><${Swatch} hue=${colours.get(entry.job)} /><a class="main-link" href=${to.job(entry.job)}>${entry.job}</a></span></td>
      <td data-label="Run"><span><a href=${to.run(entry.runId)} title=${entry.runId}><code>${shortId(entry.runId)}</code></a>${entry.attempt > 1 && html` <span class="tag">attempt ${entry.attempt}</span>`}${entry.readmitted > 0 && html` <span class="tag" title="How often its claim ended with a dead daemon">admitted again ${entry.readmitted}×</span>`} <span class="quiet tiny nowrap">${kindWord(entry.kind)}</span></span></td>
      <td class="number" data-label="Slots">${entry.slots}</td>
      <td data-label="Node"><span title=${`fence ${entry.claim?.fence}`}>${entry.claim?.node}${entry.claim?.pid ? html` <span class="quiet tiny nowrap">process ${entry.claim.pid}</span>` : ""}</span></td>
      <td data-label="Since"><${Time} at=${entry.claim?.claimedAt} bare /></td>
      <td class="number" data-label="Held"><${Span} from=${entry.claim?.claimedAt} /></td>
      <td data-label="Usually"><${Progress} entry=${entry} length=${known.get(entry.job)} /></td>
      <td data-label="Lease until"><${Lease} entry=${entry} /></td>
    </tr>`)}</tbody></table></div>
    ${running.length > shown && html`<div class="list-foot"><span>${shown} of ${running.length} claims shown</span><button type="button" class="button" onClick=${() => setShown(shown + STEP)}>Show ${Math.min(STEP, running.length - shown)} more</button></div>`}`;
}
