// Runs: which there were, are and will be, how each stands and why; filter them; cancel or retry all that match.
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { withTerm } from "../lib/filter.js";
import { zone } from "../lib/prefs.js";
import { leaveFor, left } from "../lib/leaving.js";
import { usePages } from "../lib/pages.js";
import { here, param, setParams } from "../lib/route.js";
import { filterKeys, QUICK, quickOf, readRunFilter } from "../lib/runs.js";
import { midnight, zoneFor } from "../lib/time.js";
import { FilterBox } from "../ui/filterbox.js";
import { Icon } from "../ui/icons.js";
import { PageHead } from "../ui/parts.js";
import { names, useNames } from "./runs-names.js";
import { RunList } from "./runs-list.js";
import { Scatter } from "./runs-scatter.js";

const PAGE_SIZE = 50;
const KEYS = filterKeys({ jobs: () => names.value.jobs, pools: () => names.value.pools });
const keyOf = (run) => run.id;

/** @param {{text: string, states: string[]}} props */
function Quick({ text, states }) {
  const at = text.trim() === "" ? "all" : quickOf(states) === "all" ? "" : quickOf(states);
  const isToday = /(^|\s)since:today(\s|$)/.test(text);
  const pick = (next) => setParams({ filter: next });
  return html`<div class="quick" role="group" aria-label="Quick filters">
    ${QUICK.map(({ key, title, icon }) => html`<button type="button" key=${key} class="button" aria-pressed=${at === key ? "true" : "false"}
      onClick=${() => pick(key === "all" ? "" : withTerm(text, "state", at === key ? "" : key))}>${icon && html`<${Icon} of=${icon} />`}${title}</button>`)}
    <span class="divider" aria-hidden="true"></span>
    <button type="button" class="button" aria-pressed=${isToday ? "true" : "false"} onClick=${() => pick(withTerm(text, "since", isToday ? "" : "today"))}><${Icon} of="calendar" />Today</button>
  </div>`;
}

/** Remembers where the list was, and comes back there once it has its rows. @param {boolean} ready */
function useReturn(ready) {
  const done = useRef(false);
  useLayoutEffect(() => {
    if (!ready || done.current) return;
    done.current = true;
    if (left.address !== here.peek().path + location.search || !left.run) return;
    scrollTo(0, left.scroll);
    const link = document.querySelector(`main a[href="/ui/runs/${left.run}"]`);
    if (link instanceof HTMLElement) link.focus({ preventScroll: true });
    left.run = "";
  }, [ready]);
  useEffect(() => {
    const leave = (event) => {
      const link = event.target.closest?.("a[href^='/ui/runs/']");
      if (link) leaveFor(link.getAttribute("href"));
    };
    document.addEventListener("click", leave, true);
    return () => document.removeEventListener("click", leave, true);
  }, []);
  const address = here.value.path + location.search;
  useEffect(() => {
    if (address.startsWith("/ui/runs") && !address.startsWith("/ui/runs/")) left.address = address;
  }, [address]);
}

export function Runs() {
  useNames();
  const text = param("filter");
  const shown = zoneFor(zone.value);
  const asked = useMemo(() => readRunFilter(text, (day) => midnight(day, shown, Date.now())), [text, shown]);
  const path = withQuery("/api/runs", { ...asked.query, "pagination.page_size": PAGE_SIZE });
  // A text that cannot be read asks nothing new: the last good answer stays.
  const good = useRef(path);
  if (asked.faults.length === 0) good.current = path;
  const pages = usePages(good.current, { topics: ["runs", "slots"], keyOf });
  const rows = useMemo(() => (asked.keep ? pages.rows.filter(asked.keep) : pages.rows), [pages.rows, asked]);
  // While another filter is asked the rows of the one before stay, dimmed: typing does not flicker.
  const before = useRef(undefined);
  const isOld = pages.data === undefined && !pages.error && before.current !== undefined;
  const query = isOld ? { ...before.current, isOld } : { ...pages, rows, isOld };
  if (pages.data !== undefined) before.current = query;
  const pointed = useRef(signal(/** @type {string | undefined} */ (undefined))).current;
  useReturn(query.data !== undefined);
  return html`<${PageHead} title="Runs" />
    <div class="runs-filter">
      <${FilterBox} keys=${KEYS} label="Filter runs" placeholder="state:failed job:export since:1h" faults=${asked.faults} />
      <${Quick} text=${text} states=${asked.states} />
    </div>
    <${Scatter} rows=${query.rows} loading=${query.data === undefined || isOld} asked=${asked} pointed=${pointed} />
    <${RunList} query=${query} asked=${asked} pointed=${pointed} text=${text} />`;
}
