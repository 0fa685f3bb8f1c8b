// The fires of one hour of the week, by time.
import { html } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { dated } from "../lib/schedule.js";
import * as time from "../lib/time.js";
import { Icon } from "../ui/icons.js";

/** @param {{cell: import("../lib/week.js").Cell, shown: string, close?: () => void}} props */
export function Hour({ cell, shown, close }) {
  const head = () => html`<header><h2>${dated(Date.parse(cell.fires[0].at), shown).slice(0, 14)}, ${cell.key.slice(11)}:00</h2>
    <div class="more"><button type="button" class="button ghost tiny icon" aria-label="Close" onClick=${close}><${Icon} of="close" /></button></div></header>`;
  return html`${close && head()}
    <ul class="hour-fires">${cell.fires.map(({ job, at, count }) => html`<li key=${`${job} ${at}`}><span class="when">${time.clock(Date.parse(at), shown, Date.parse(at) % 60_000 !== 0)}</span><a href=${to.job(job)}>${job}</a>${count > 1 && html`<span class="quiet tiny nowrap">${number(count)} times in the hour</span>`}</li>`)}
      ${cell.unnamed > 0 && html`<li class="quiet">and ${plural(cell.unnamed, "more job")}</li>`}</ul>`;
}
