// The slots of a pool drawn one by one: each holder is a block as wide as its slots, in a colour of its own.
import { html, useRef, useState } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { to } from "../lib/route.js";
import { freeOf, hues, kindWord, parts, slotsWord } from "../lib/slots.js";
import { Span, Time } from "../ui/time.js";

/** Up to so many slots are drawn one by one; more are a bar. */
export const ONE_BY_ONE = 40;
/** Blocks of a bar; the rest is one block. */
const BLOCKS = 60;

const KEPT = "free, and kept for the head of the queue";

/** @type {Map<string, Map<string, number>>} */
const known = new Map();

/** The colour of each job that holds slots of a pool; it stays while the job holds any. @param {import("../lib/slots.js").Pool} pool */
export function huesOf(pool) {
  const found = hues(known.get(pool.name) ?? new Map(), parts(pool).running.map(({ job }) => job));
  known.set(pool.name, found);
  return found;
}

/** @param {{entry: import("../lib/slots.js").Entry, left: number, id: string}} props */
function Tip({ entry, left, id }) {
  return html`<div class="slot-tip" role="tooltip" id=${id} style=${{ left: `${left}px` }}>
    <strong>${entry.job}</strong>
    <dl>
      <dt>Holds</dt><dd>${slotsWord(entry.slots)}, ${kindWord(entry.kind)}</dd>
      <dt>Run</dt><dd><code>${entry.runId}</code>${entry.attempt > 1 ? html`, attempt ${entry.attempt}` : ""}</dd>
      <dt>Node</dt><dd>${entry.claim?.node ?? "—"}${entry.claim?.pid ? html`, process ${entry.claim.pid}` : ""}</dd>
      <dt>Since</dt><dd><${Time} at=${entry.claim?.claimedAt} />, <${Span} from=${entry.claim?.claimedAt} /></dd>
      <dt>Lease until</dt><dd><${Time} at=${entry.claim?.leaseUntil} />, renewed while it runs</dd>
    </dl>
  </div>`;
}

/**
 * @param {{pool: import("../lib/slots.js").Pool, big?: boolean, lit?: {value: string | undefined}}} props
 *   `lit`: the entry that is pointed at, shared with a list beside
 */
export function Track({ pool, big = false, lit }) {
  const { running, head } = parts(pool);
  const colours = huesOf(pool);
  const free = freeOf(pool);
  const single = pool.slots <= ONE_BY_ONE;
  const box = useRef(null);
  const [tip, setTip] = useState(/** @type {{id: string, left: number} | undefined} */ (undefined));
  const [stop, setStop] = useState(/** @type {string | undefined} */ (undefined));
  const shown = running.slice(0, single ? ONE_BY_ONE : BLOCKS);
  const rest = running.slice(shown.length);
  const stopId = shown.some(({ id }) => id === stop) ? stop : shown[0]?.id;
  const tipped = tip && shown.find(({ id }) => id === tip.id);
  // What the head has in sight but cannot take yet: nobody else may take it either.
  const kept = head && !pool.paused ? Math.min(free, head.slots) : 0;
  const show = (entry) => (event) => {
    const block = event.currentTarget;
    const width = box.current?.clientWidth ?? 0;
    setTip({ id: entry.id, left: Math.max(0, Math.min(block.offsetLeft, width - 300)) });
    if (lit) lit.value = entry.id;
  };
  const hide = () => {
    setTip(undefined);
    if (lit) lit.value = undefined;
  };
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") setTip(undefined);
    if (!step) return;
    event.preventDefault();
    const index = shown.findIndex(({ id }) => id === stopId);
    const next = shown[Math.min(Math.max(index + step, 0), shown.length - 1)];
    setStop(next.id);
    box.current?.querySelector(`[data-entry="${next.id}"]`)?.focus();
  };
  const size = (slots) => (single ? { gridColumn: `span ${slots}` } : { flexGrow: slots });
  const block = (entry) => html`<a key=${entry.id} data-entry=${entry.id} href=${to.run(entry.runId)} tabindex=${entry.id === stopId ? 0 : -1}
    class=${`slot-block hue-${colours.get(entry.job)} ${lit?.value === entry.id ? "lit" : ""}`} style=${size(entry.slots)}
    aria-label=${`${entry.job} holds ${slotsWord(entry.slots)}`} aria-describedby=${tip?.id === entry.id ? `tip-${entry.id}` : undefined}
    onMouseEnter=${show(entry)} onMouseLeave=${hide} onFocus=${show(entry)} onBlur=${hide}>
    ${single && entry.slots > 1 && Array.from({ length: entry.slots - 1 }, (_, index) => html`<i style=${{ left: `${((index + 1) / entry.slots) * 100}%` }}></i>`)}
    <span>${entry.job}</span></a>`;
  const empty = single
    ? Array.from({ length: free }, (_, index) => html`<b key=${`free-${index}`} class=${`slot-free ${index < kept ? "kept" : ""}`} title=${index < kept ? KEPT : "free"}></b>`)
    : free > 0 && html`<b key="free" class=${`slot-free ${kept > 0 ? "kept" : ""}`} style=${size(free)} title=${kept > 0 ? KEPT : `${number(free)} free`}></b>`;
  return html`<div class=${`track ${big ? "big" : ""}`} ref=${box}>
    <div class=${single ? "slots" : "slots bar"} role="group" aria-label=${`Slots of ${pool.name}: ${number(pool.used)} of ${number(pool.slots)} held, ${number(free)} free`}
      style=${single ? { gridTemplateColumns: `repeat(${pool.slots}, minmax(0, 1fr))` } : undefined} onKeyDown=${onKeyDown}>
      ${shown.map(block)}
      ${rest.length > 0 && html`<b key="rest" class="slot-block rest" style=${size(rest.reduce((sum, entry) => sum + entry.slots, 0))} title=${`${rest.length} more claims`}></b>`}
      ${empty}
    </div>
    ${pool.draining && single && pool.configuredSlots < pool.slots && html`<div class="drain-rule" style=${{ gridTemplateColumns: `repeat(${pool.slots}, minmax(0, 1fr))` }}><span style=${{ gridColumn: `span ${pool.configuredSlots}` }}>${number(pool.configuredSlots)} after the drain</span></div>`}
    ${tipped && html`<${Tip} entry=${tipped} left=${tip.left} id=${`tip-${tipped.id}`} />`}
  </div>`;
}
