// The last day as stacked bars by hour. One tab stop; arrows go by hour; a table says the same to screen readers.
import { html, useRef, useState } from "../lib/dom.js";
import { instant, number, plural } from "../lib/format.js";
import { day, endedIn, failedIn, hourFilter, hourWords, LAYERS, niceTop } from "../lib/home.js";
import { zone } from "../lib/prefs.js";
import { to } from "../lib/route.js";
import { clock, weekday, zoneFor, zoneName } from "../lib/time.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { Counted } from "./home_parts.js";

const HOUR_MS = 3_600_000;
const LABEL_EVERY = 6;

/** `Mon 14:00–15:00`. */
function hourName(hour, shown) {
  const from = instant(hour.from) ?? 0;
  return `${weekday(from, shown)} ${clock(from, shown, false)}–${clock(from + HOUR_MS, shown, false)}`;
}

function Bar({ hour, top, name, reached, at, point }) {
  const all = endedIn(hour);
  return html`<a class="bar-slot" href=${to.runs(hourFilter(hour))} tabindex=${reached ? 0 : -1} data-at=${at}
    aria-label=${`${name}: ${hourWords(hour)}`} onMouseEnter=${() => point(at)} onFocus=${() => point(at)}>
    <span class="stack-of" style=${{ height: `${(all / top) * 100}%` }}>${[...LAYERS].reverse().filter(({ key }) => hour[key] > 0).map(({ key }) => html`<i class=${`is-${key}`} style=${{ flexGrow: hour[key] }}></i>`)}</span>
    ${failedIn(hour) > 0 && html`<b class="mark-bad" aria-hidden="true"></b>`}
  </a>`;
}

function Tip({ hour, name, index, count }) {
  const part = (index + 0.5) / count;
  const side = part > 0.66 ? "to-left" : part < 0.33 ? "to-right" : "centred";
  return html`<div class=${`tip ${side}`} style=${{ left: `${part * 100}%` }} aria-hidden="true">
    <strong>${name}</strong>
    ${endedIn(hour) === 0 ? html`<span class="quiet">no run ended</span>` : [...LAYERS].filter(({ key }) => hour[key] > 0).map(({ key, of }) => html`<span class="row apart"><${State} of=${of} /><span>${number(hour[key])}</span></span>`)}
  </div>`;
}

const Twin = ({ hours, nameOf }) => html`<div class="unseen"><table><caption>Runs that ended in the last 24 hours, by hour</caption>
  <thead><tr><th scope="col">Hour</th>${LAYERS.map(({ key }) => html`<th scope="col">${key.replace("_", " ")}</th>`)}</tr></thead>
  <tbody>${hours.map((hour) => html`<tr key=${hour.from}><th scope="row">${nameOf(hour)}</th>${LAYERS.map(({ key }) => html`<td>${hour[key]}</td>`)}</tr>`)}</tbody></table></div>`;

/** @param {{hours: any[], from: string | null}} props */
export function Hours({ hours, from }) {
  const [at, setAt] = useState(/** @type {number | undefined} */ (undefined));
  const [stop, setStop] = useState(hours.length - 1);
  const chart = useRef(null);
  const shown = zoneFor(zone.value);
  const nameOf = (hour) => hourName(hour, shown);
  const most = Math.max(...hours.map(endedIn), 0);
  const top = niceTop(most);
  const { ended, failed } = day(hours);
  const point = (index) => setAt(index);
  const onKeyDown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -hours.length, End: hours.length }[event.key];
    if (event.key === "Escape") setAt(undefined);
    if (!step) return;
    event.preventDefault();
    const next = Math.min(Math.max(stop + step, 0), hours.length - 1);
    setStop(next);
    chart.current?.querySelector(`[data-at="${next}"]`)?.focus();
  };
  const first = instant(hours[0]?.from) ?? 0;
  return html`<${Counted} id="hours" title="24 hours" className="hours-card"
    more=${html`<span class="small"><a href=${to.runs("since:24h")}>${plural(ended, "run")}</a>${failed > 0 && html`, <a class="bad" href=${to.runs("state:failed since:24h")}>${number(failed)} failed</a>`}</span>`}>
    <div class="hours">
      <span class="top-mark tiny quiet" aria-hidden="true">${number(top)}</span>
      <div class="chart" role="group" aria-label="Runs by hour; the arrow keys go by hour, Enter shows the runs" ref=${chart} onKeyDown=${onKeyDown} onMouseLeave=${() => setAt(undefined)}
        onFocusOut=${() => setAt(undefined)} onFocusIn=${(event) => setStop(Number(event.target.dataset.at ?? stop))}>
        ${hours.map((hour, index) => html`<${Bar} key=${hour.from} hour=${hour} top=${top} name=${nameOf(hour)} at=${index} reached=${index === stop} point=${point} />`)}
        ${at !== undefined && hours[at] && html`<${Tip} hour=${hours[at]} name=${nameOf(hours[at])} index=${at} count=${hours.length} />`}
      </div>
      <div class="axis tiny quiet" aria-hidden="true">${hours.map((hour, index) => index % LABEL_EVERY === 0 && html`<span key=${hour.from} style=${{ left: `${(index / hours.length) * 100}%` }}>${clock(instant(hour.from) ?? 0, shown, false)}</span>`)}<span class="zone">${zoneName(first, shown)}</span></div>
    </div>
    ${from && html`<p class="tiny quiet counted-from">Counted are runs that began since <${Time} at=${from} />.</p>`}
    <${Twin} hours=${hours} nameOf=${nameOf} />
  <//>`;
}
