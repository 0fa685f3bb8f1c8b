// The next fires on two clocks, with what a change of the clock does to them. For a job, and for an expression that is tried.
import { computed, html, useMemo } from "../lib/dom.js";
import { clockRemarks, moment } from "../lib/schedule.js";
import { daemonNow } from "../ui/time.js";
import { Countdown, Lints } from "./job-parts.js";

/** Fires that are shown; more are asked for, so that some are left when the first are over. */
export const SHOWN_MAX = 10;

/** One clock. @param {{at: string | undefined}} props */
function OnClock({ at }) {
  const parts = moment(at);
  if (!parts) return html`<span class="quiet">—</span>`;
  return html`<span class="nowrap">${parts.weekday} ${parts.date} <strong>${parts.clock}</strong> <span class="quiet tiny">${parts.offset}</span></span>`;
}

/**
 * @param {{preview: {timezone: string, second_timezone: string, next: import("../lib/schedule.js").Fire[], lints: any[]}}} props
 */
export function NextFires({ preview }) {
  const { timezone, second_timezone: second, lints } = preview;
  const over = useMemo(() => computed(() => preview.next.filter(({ instant }) => Date.parse(instant) <= daemonNow()).length), [preview]).value;
  const next = preview.next.slice(over, over + SHOWN_MAX);
  const remarks = clockRemarks(next, lints);
  const two = second !== timezone;
  const has = remarks.some(Boolean);
  if (preview.next.length === 0) return html`<div class="lints-after stack"><p class="soft">It never fires.</p><${Lints} lints=${lints} /></div>`;
  return html`<table class="list as-cards next-fires">
      <thead><tr><th scope="col">In</th><th scope="col">${timezone}</th>${two && html`<th scope="col">${second}</th>`}${has && html`<th scope="col">Remark</th>`}</tr></thead>
      <tbody>${next.map((fire, at) => html`<tr key=${fire.instant}>
        <td data-label="In" class="soft"><${Countdown} at=${fire.instant} /></td>
        <td data-label=${timezone}><${OnClock} at=${fire.local} /></td>
        ${two && html`<td data-label=${second} class="soft"><${OnClock} at=${fire.second} /></td>`}
        ${has && html`<td data-label="Remark" class="small wait">${remarks[at] ?? ""}</td>`}
      </tr>`)}</tbody>
    </table>
    ${lints.length > 0 && html`<div class="lints-after"><${Lints} lints=${lints} /></div>`}`;
}
