// Times and spans on the page. The zone stands beside each time, the others are in the tooltip.
import { computed, html, untracked } from "../lib/dom.js";
import { now, skew } from "../lib/live.js";
import { zone } from "../lib/prefs.js";
import { instant } from "../lib/format.js";
import * as time from "../lib/time.js";

/** The daemon's time, as far as it is known; ticks once a second. */
export const daemonNow = () => now.value + skew.value;

const MINUTE_MS = 60_000;
/** Enough for what only asks which day it is: a list of times is not drawn anew each second. */
const thisMinute = computed(() => Math.floor(daemonNow() / MINUTE_MS) * MINUTE_MS);

/** @param {number} at @param {string} [ofJob] */
function inZones(at, ofJob) {
  const zones = [...new Set(["UTC", time.browserZone(), ...(ofJob && time.isZone(ofJob) ? [ofJob] : [])])];
  return [time.relative(at, untracked(daemonNow)), ...zones.map((name) => `${time.long(at, name)} (${name})`)].join("\n");
}

/**
 * @param {{at: string | number | null | undefined, ofJob?: string, form?: "short" | "long" | "clock" | "relative", bare?: boolean}} props
 *   `bare`: the zone stands elsewhere, as in the head of a table
 */
export function Time({ at, ofJob, form = "short", bare = false }) {
  const ms = typeof at === "number" ? at : instant(at);
  if (ms === undefined) return html`<span class="quiet">—</span>`;
  const shown = time.zoneFor(zone.value, ofJob);
  let text;
  if (form === "relative") text = time.relative(ms, daemonNow());
  else if (form === "clock") text = time.clock(ms, shown);
  else if (form === "long") text = `${time.day(ms, shown)} ${time.clock(ms, shown)}`;
  else text = time.short(ms, shown, thisMinute.value);
  const named = form === "relative" || bare ? "" : html` <span class="quiet tiny">${time.zoneName(ms, shown)}</span>`;
  return html`<time class="nowrap" datetime=${new Date(ms).toISOString()} title=${inZones(ms, ofJob)} onMouseEnter=${(event) => { event.currentTarget.title = inZones(ms, ofJob); }}>${text}${named}</time>`;
}

/** A span between two instants; the second one may be still to come. @param {{from: string | number | null | undefined, to?: string | number | null}} props */
export function Span({ from, to }) {
  const begun = typeof from === "number" ? from : instant(from);
  if (begun === undefined) return html`<span class="quiet">—</span>`;
  const ended = typeof to === "number" ? to : instant(to);
  return html`<span class="nowrap">${ended === undefined ? time.whole(daemonNow() - begun) : time.span(ended - begun)}</span>`;
}

/** What the zone toggle says. */
export const zoneWord = () =>
  zone.value === "utc" ? "UTC" : zone.value === "job" ? "Job’s zone" : time.zoneName(Date.now(), time.browserZone());
