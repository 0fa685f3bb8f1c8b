// Times and spans on the page. The zone stands beside each time, the others are in the tooltip.
import { computed, html } from "../lib/dom.js";
import { now, skew } from "../lib/live.js";
import { zone } from "../lib/prefs.js";
import { instant } from "../lib/format.js";
import * as time from "../lib/time.js";

/** The daemon's time, as far as it is known; ticks once a second. */
export const daemonNow = () => now.value + skew.value;

/** The same by half minutes: many times on a page need no more than the day. */
const calmNow = computed(() => Math.floor((now.value + skew.value) / 30_000) * 30_000);

/** @type {Map<string, string>} */
const told = new Map();
const TOLD_MAX = 2000;

/** A moment in all zones that matter; formatting is dear, and the same moments are shown again and again. @param {number} at @param {string} [ofJob] */
function inZones(at, ofJob) {
  const key = `${at} ${ofJob ?? ""}`;
  let text = told.get(key);
  if (text === undefined) {
    const zones = [...new Set(["UTC", time.browserZone(), ...(ofJob && time.isZone(ofJob) ? [ofJob] : [])])];
    text = zones.map((name) => `${time.long(at, name)} (${name})`).join("\n");
    if (told.size >= TOLD_MAX) told.clear();
    told.set(key, text);
  }
  return text;
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
  const about = form === "relative" ? daemonNow() : calmNow.value;
  if (form === "relative") text = time.relative(ms, about);
  else if (form === "clock") text = time.clock(ms, shown);
  else if (form === "long") text = `${time.day(ms, shown)} ${time.clock(ms, shown)}`;
  else text = time.short(ms, shown, about);
  const named = form === "relative" || bare ? "" : html` <span class="quiet tiny">${time.zoneName(ms, shown)}</span>`;
  const title = () => `${time.relative(ms, now.peek() + skew.peek())}\n${inZones(ms, ofJob)}`;
  return html`<time class="nowrap" datetime=${new Date(ms).toISOString()} title=${title()} onMouseEnter=${(event) => { event.currentTarget.title = title(); }}>${text}${named}</time>`;
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
