// The week as a calendar: which jobs fire in which hour, on the clock that was chosen. Days in a list on a narrow screen.
import { html, useMemo } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { zone } from "../lib/prefs.js";
import { param, setParams, to } from "../lib/route.js";
import { dayWord, shifted } from "../lib/schedule.js";
import { useQuery } from "../lib/store.js";
import * as time from "../lib/time.js";
import { cells, hasHour, heat, hourKey, steadyJobs, weekDays } from "../lib/week.js";
import { Loaded, Note, Nothing } from "../ui/parts.js";
import { daemonNow } from "../ui/time.js";
import { Hour } from "./jobs-hour.js";

const HOURS = Array.from({ length: 24 }, (_, hour) => String(hour).padStart(2, "0"));
const NAMED_MAX = 2;
const DAY = /^\d{4}-\d\d-\d\d$/;

/** Which day the week begins with: the one in the address, or today. @param {string} shown */
function firstDay(shown) {
  const asked = param("week");
  return DAY.test(asked) && !Number.isNaN(Date.parse(asked)) ? asked : time.day(daemonNow(), shown);
}

const pick = (key) => setParams({ hour: key }, { replace: true });

const Count = ({ of }) => html`<span class="count">${of}<span class="unseen"> fires</span></span>`;

/** What a cell says: names while they fit, else how many. @param {{cell: import("../lib/week.js").Cell}} props */
function Inside({ cell }) {
  if (cell.jobs > NAMED_MAX) return html`<span class="names"><span>${plural(cell.jobs, "job")}</span></span><${Count} of=${cell.count} />`;
  const jobs = [...new Set(cell.fires.map(({ job }) => job))];
  return html`<span class="names">${jobs.map((job) => html`<span key=${job}>${job}</span>`)}${cell.unnamed > 0 && html`<span>${plural(cell.unnamed, "job")}</span>`}</span>${cell.count > cell.jobs && html`<${Count} of=${cell.count} />`}`;
}

/** Arrow keys walk from one filled hour to the next. @param {KeyboardEvent} event */
function walk(event) {
  const from = event.target instanceof HTMLElement ? event.target.closest("td") : null;
  const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
  if (!from || !step) return;
  event.preventDefault();
  const rows = [.../** @type {HTMLTableSectionElement} */ (from.closest("tbody")).rows];
  let [row, column] = [rows.indexOf(/** @type {HTMLTableRowElement} */ (from.parentElement)), from.cellIndex];
  for (;;) {
    row += step[0];
    column += step[1];
    const cell = rows[row]?.cells[column];
    if (!cell || cell.tagName === "TH") return;
    const button = cell.querySelector("button");
    if (button) {
      button.focus();
      return;
    }
  }
}

/** @param {{days: string[], found: Map<string, import("../lib/week.js").Cell>, shown: string, at: string}} props */
function Grid({ days, found, shown, at }) {
  const today = time.day(daemonNow(), shown);
  const current = hourKey(daemonNow(), shown);
  const most = Math.max(0, ...[...found.values()].map(({ count }) => count));
  const first = [...found.keys()].sort()[0];
  return html`<div class="week-grid scroll-x" role="region" aria-label="The week by hours" tabindex="-1"><table onKeyDown=${walk}>
    <thead><tr><th scope="col"><span class="unseen">Hour</span></th>${days.map((day) => html`<th scope="col" key=${day} class=${day === today ? "today" : ""}>${dayWord(day, day === today ? today : "").slice(0, 3) === "tod" ? "Today" : dayWord(day, "").split(" ")[0]} <span class="quiet">${day.slice(5)}</span></th>`)}</tr></thead>
    <tbody>${HOURS.map((hour) => html`<tr key=${hour}><th scope="row">${hour}</th>${days.map((day) => {
      const key = `${day}T${hour}`;
      const cell = found.get(key);
      const past = key < current ? "past" : key === current ? "now" : "";
      if (!cell) return html`<td key=${day} class=${`${past} ${hasHour(key, shown) ? "" : "gap"}`} title=${hasHour(key, shown) ? undefined : "The clock leaves this hour out"}></td>`;
      return html`<td key=${day} class=${past}><button type="button" class=${`heat-${heat(cell.count, most)}`} aria-pressed=${at === key ? "true" : "false"} tabindex=${key === (at && found.has(at) ? at : first) ? 0 : -1}
        onClick=${() => pick(at === key ? "" : key)}><span class="unseen">${dayWord(day, today)} ${hour}:00</span><${Inside} cell=${cell} /></button></td>`;
    })}</tr>`)}</tbody>
  </table></div>`;
}

/** @param {{days: string[], found: Map<string, import("../lib/week.js").Cell>, shown: string, at: string}} props */
function Days({ days, found, shown, at }) {
  const today = time.day(daemonNow(), shown);
  return html`<div class="week-days">${days.map((day) => {
    const filled = HOURS.map((hour) => found.get(`${day}T${hour}`)).filter((cell) => cell !== undefined);
    return html`<section key=${day}><h2 class="small">${dayWord(day, today)} <span class="quiet">${day}</span></h2>
      ${filled.length === 0 ? html`<p class="quiet small">nothing</p>` : html`<ul>${filled.map((cell) => html`<li key=${cell.key}><button type="button" aria-pressed=${at === cell.key ? "true" : "false"} onClick=${() => pick(at === cell.key ? "" : cell.key)}><span class="hour">${cell.key.slice(11)}:00</span><${Inside} cell=${cell} /></button>
        ${at === cell.key && html`<${Hour} cell=${cell} shown=${shown} />`}</li>`)}</ul>`}</section>`;
  })}</div>`;
}

/** Jobs that fire all the time, and whether the grid has them. @param {{steady: string[], all: boolean}} props */
const Steady = ({ steady, all }) => html`<div class="row wrap small steady"><span class="soft">${plural(steady.length, "job fires", "jobs fire")} nearly every hour${all ? "" : " and would hide the others"}:</span>
  ${steady.slice(0, 8).map((job) => html`<a class="tag" key=${job} href=${to.job(job)}>${job}</a>`)}${steady.length > 8 && html`<span class="quiet">and ${steady.length - 8} more</span>`}
  <label class="row"><input type="checkbox" checked=${all} onChange=${(event) => setParams({ all: event.currentTarget.checked ? "1" : "", hour: "" }, { replace: true })} />Show them too</label></div>`;

/** @param {{answer: any, first: string, shown: string}} props */
function Shown({ answer, first, shown }) {
  const all = param("all") === "1";
  const at = param("hour");
  const days = weekDays(first);
  const steady = useMemo(() => steadyJobs(answer.hours), [answer]);
  const found = useMemo(() => cells(answer.hours, all ? [] : steady), [answer, all, steady]);
  const cell = found.get(at);
  return html`${answer.left_out > 0 && html`<${Note} of="wait" icon="late">${plural(answer.left_out, "job")} ${answer.left_out === 1 ? "is" : "are"} not in this week: there is too much to count.<//>`}
    ${steady.length > 0 && html`<${Steady} steady=${steady} all=${all} />`}
    ${found.size === 0 ? html`<${Nothing} title=${steady.length > 0 ? "No other job fires in this week." : "No job fires in this week."} />`
      : html`<div class=${`week ${cell ? "with-hour" : ""}`}><${Grid} days=${days} found=${found} shown=${shown} at=${at} />
        ${cell && html`<aside class="card flush week-aside" aria-label="The fires of this hour" aria-live="polite"><${Hour} cell=${cell} shown=${shown} close=${() => pick("")} /></aside>`}
        <${Days} days=${days} found=${found} shown=${shown} at=${at} /></div>`}`;
}

export function Week() {
  const shown = time.zoneFor(zone.value);
  const first = firstDay(shown);
  const query = useQuery(withQuery("/api/calendar", { from: `${first} 00:00`, days: 7, timezone: shown }), { topics: ["jobs", "config"] });
  const move = (by) => setParams({ week: by === 0 ? "" : shifted(first, by), hour: "" });
  return html`<section class="card week-card" aria-label="Week">
    <header><h2>${first} to ${shifted(first, 6)}</h2><span class="soft small">${shown}</span>
      <div class="more row"><button type="button" class="button" onClick=${() => move(-7)}>Earlier</button><button type="button" class="button" onClick=${() => move(0)} disabled=${param("week") === ""}>Today</button><button type="button" class="button" onClick=${() => move(7)}>Later</button></div></header>
    <div class="body stack"><${Loaded} query=${query} lines=${10}>${(answer) => html`<${Shown} answer=${answer} first=${first} shown=${shown} />`}<//></div>
  </section>`;
}
