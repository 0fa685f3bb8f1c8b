// The fires of one hour of the week, by time.
import { html } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { dated } from "../lib/schedule.js";
import * as time from "../lib/time.js";
import { Icon } from "../ui/icons.js";

const SHOWN_MAX = 100;

/** @param {{cell: import("../lib/week.js").Cell, shown: string, close?: () => void}} props */
export function Hour({ cell, shown, close }) {
  const { batches } = cell;
  return html`${close && html`<header><h2>${dated(batches[0].at, shown).slice(0, 14)}, ${cell.key.slice(11)}:00</h2><div class="more"><button type="button" class="button ghost tiny icon" aria-label="Close" onClick=${close}><${Icon} of="close" /></button></div></header>`}
    <ul class="hour-fires">${batches.slice(0, SHOWN_MAX).map(({ job, at, count }) => html`<li key=${`${job} ${at}`}><span class="when">${time.clock(at, shown, at % 60_000 !== 0)}</span><a href=${to.job(job)}>${job}</a>${count > 1 && html`<span class="quiet tiny nowrap">${count} times in the hour</span>`}</li>`)}
      ${batches.length > SHOWN_MAX && html`<li class="quiet">and ${plural(batches.length - SHOWN_MAX, "more job")}</li>`}</ul>`;
}
