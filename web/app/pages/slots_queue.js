// The queue of a slot pool: in order, with what each entry waits for, and a way to cancel one or many.
import { html, signal, useEffect, useMemo, useRef, useState } from "../lib/dom.js";
import { readFilter } from "../lib/filter.js";
import { number, plural, shortId } from "../lib/format.js";
import { param, setParams, to } from "../lib/route.js";
import { ahead, kindWord, parts, slotsWord, why } from "../lib/slots.js";
import { steady } from "../lib/steady.js";
import { AskButton } from "../ui/dialog.js";
import { FilterBox } from "../ui/filterbox.js";
import { Icon } from "../ui/icons.js";
import { List } from "../ui/list.js";
import { Card, Nothing } from "../ui/parts.js";
import { Span } from "../ui/time.js";
import { cancelManyWish, cancelWish } from "./slots_actions.js";
import { Bound, Deadline, Guess } from "./slots_parts.js";

/** The most entries the API gives. */
export const QUEUED_MAX = 10_000;
const STEP = 50;
const FILTER_FROM = 8;

const keyOf = ({ row }) => row.id;

/** Rows that stand still while the pointer or the focus is in the list. @param {import("../lib/slots.js").Entry[]} fresh @param {boolean} hold */
function useSteady(fresh, hold) {
  const shown = useRef(/** @type {{row: import("../lib/slots.js").Entry, gone: boolean}[]} */ ([]));
  shown.current = hold ? steady(shown.current, fresh, (row) => row.id) : fresh.map((row) => ({ row, gone: false }));
  return shown.current;
}

/** @param {import("../lib/slots.js").Pool} pool @param {Map<string, number>} starts @param {Map<string, {entries: number, slots: number}>} before */
function columns(pool, starts, before) {
  const reason = why(pool);
  const { waiting } = parts(pool);
  // A line above the first of each lower priority.
  const firsts = new Set(waiting.filter((entry, index) => index > 0 && entry.priority !== waiting[index - 1].priority).map(({ id }) => id));
  const reasonOf = (entry) => {
    if (reason && reason.head.id === entry.id) return html`<strong class="busy">head</strong> ${reason.text}`;
    const found = before.get(entry.id);
    return found ? html`behind ${number(found.entries)} <span class="quiet">(${slotsWord(found.slots)})</span>` : entry.waitingReason;
  };
  return [
    { key: "place", title: "Place", number: true, cell: ({ row, gone }) => (gone ? html`<span class="quiet left">left</span>` : number(row.position ?? 0)) },
    { key: "job", title: "Job", lead: true, cell: ({ row }) => html`<span class="row name-cell"><a class="main-link" href=${to.run(row.runId)} title=${row.runId}>${row.job}</a>${row.attempt > 1 && html`<span class="tag">attempt ${row.attempt}</span>`}<${Bound} entry=${row} />${row.readmitted > 0 && html`<span class="tag">admitted again ${row.readmitted}×</span>`}</span>` },
    { key: "priority", title: "Priority", number: true, cell: ({ row }) => html`<span class=${firsts.has(row.id) ? "band" : ""}>${number(row.priority)}</span>` },
    { key: "slots", title: "Slots", number: true, cell: ({ row }) => number(row.slots) },
    { key: "waits", title: "Waits", number: true, cell: ({ row, gone }) => (gone ? "" : html`<${Span} from=${row.queuedAt} />`) },
    { key: "why", title: "Why", className: "why", cell: ({ row, gone }) => html`<span>${gone ? html`<span class="quiet">admitted, ended or cancelled</span>` : reasonOf(row)}${!gone && row.reason && html` <span class="tag" title="Why it is in the queue again">${row.reason}</span>`}</span>` },
    { key: "begins", title: "Begins (a guess)", cell: ({ row, gone }) => (gone ? "" : html`<${Guess} start=${starts.get(row.id)} entry=${row} />`) },
    { key: "deadline", title: "Gives up in", cell: ({ row, gone }) => (gone ? "" : html`<${Deadline} entry=${row} />`) },
    { key: "kind", title: "Kind", cell: ({ row }) => html`<span class="soft nowrap" title=${`entry ${row.id}`}>${kindWord(row.kind)}</span>` },
    { key: "act", className: "act", title: html`<span class="unseen">Cancel</span>`, cell: ({ row, gone }) => (gone ? "" : html`<${AskButton} className="ghost tiny" wish=${() => cancelWish(pool, row)} title="Cancel this entry"><${Icon} of="close" />Cancel<span class="unseen"> ${row.job} ${shortId(row.id)}</span><//>`) },
  ];
}

/** @param {{pool: import("../lib/slots.js").Pool, starts: Map<string, number>, loading: boolean}} props */
export function Queue({ pool, starts, loading }) {
  const picked = useMemo(() => signal(/** @type {Set<string>} */ (new Set())), []);
  const [hold, setHold] = useState(false);
  const [shown, setShown] = useState(STEP);
  const timer = useRef(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const { waiting } = parts(pool);
  const before = useMemo(() => ahead(waiting), [pool]);
  const keys = [
    { key: "job", about: "the job that waits", values: () => [...new Set(waiting.map(({ job }) => job))] },
    { key: "node", about: "bound to this node", values: () => [...new Set(waiting.map(({ node }) => node ?? "any"))] },
    { key: "kind", about: "how it came", values: () => [...new Set(waiting.map(({ kind }) => kind))] },
  ];
  const filter = readFilter(param("filter"), keys);
  const { job, node, kind } = filter.query;
  const found = waiting.filter((entry) =>
    (!job || job.includes(entry.job)) && (!node || node.includes(entry.node ?? "any")) && (!kind || kind.includes(entry.kind))
    && filter.words.every((word) => entry.job.includes(word) || entry.id.startsWith(word) || entry.runId.endsWith(word)));
  const rows = useSteady(found.slice(0, shown), hold);
  // What has left the queue meanwhile is not chosen any more.
  const chosen = found.filter(({ id }) => picked.value.has(id));
  const pick = (id, on) => {
    const next = new Set(picked.peek());
    if (on) next.add(id);
    else next.delete(id);
    picked.value = next;
  };
  const all = () => {
    picked.value = chosen.length === found.length ? new Set() : new Set(found.map(({ id }) => id));
  };
  const enter = () => {
    clearTimeout(timer.current);
    setHold(true);
  };
  const leave = (event) => {
    const box = event.currentTarget;
    clearTimeout(timer.current);
    // A pointer that crosses the edge, or a focus that moves between rows, is still reading.
    timer.current = setTimeout(() => setHold(box.matches(":hover") || (box.contains(document.activeElement) && box.querySelector(":focus-visible") !== null)), 400);
  };
  const isFiltered = param("filter") !== "";
  const head = html`<span class="small quiet">${pool.queued > 0 ? `${plural(pool.queued, "entry waits", "entries wait")}; highest priority first, then the oldest` : ""}</span>`;
  if (pool.queued === 0) return html`<${Card} title="Queue" flush><p class="pad small quiet">Nothing waits${pool.draining ? ", and new work is refused until the drain ends" : pool.used < pool.slots && !pool.paused ? ": what comes now begins at once" : ""}.</p><//>`;
  return html`<${Card} title="Queue" flush more=${head} className="queue">
    ${(pool.queued >= FILTER_FROM || isFiltered) && html`<div class="row wrap pad">
      <${FilterBox} keys=${keys} label="Filter the queue" placeholder="job:export node:berlin-1 kind:manual" faults=${filter.faults} />
      <button type="button" class="button" disabled=${found.length === 0} onClick=${all}>${chosen.length === found.length && found.length > 0 ? "Select none" : `Select ${isFiltered ? "the" : "all"} ${number(found.length)}`}</button>
      <${AskButton} className="danger" disabled=${chosen.length === 0} wish=${() => cancelManyWish(pool, chosen)}>Cancel ${chosen.length > 0 ? number(chosen.length) : "selected"}<//>
    </div>`}
    ${found.length === 0 && rows.length === 0
      ? html`<${Nothing} title="No waiting entry matches the filter."><button type="button" class="button" onClick=${() => setParams({ filter: "" })}>Show all</button><//>`
      : html`<div class="pool-list" onMouseEnter=${enter} onMouseLeave=${leave} onFocusIn=${enter} onFocusOut=${leave}>
        <${List} rows=${rows} columns=${columns(pool, starts, before)} keyOf=${keyOf} hrefOf=${({ row }) => to.run(row.runId)} label="Queue" picked=${picked} onPick=${pick}
          nameOf=${({ row }) => `${row.job}, place ${row.position}`} />
      </div>`}
    <div class="list-foot"><span>${number(Math.min(shown, found.length))} of ${number(isFiltered ? found.length : pool.queued)} shown${pool.truncated ? `; ${number(waiting.length)} are loaded` : ""}${hold ? "; rows stand still while you are in the list" : ""}</span>
      ${found.length > shown ? html`<button type="button" class="button" onClick=${() => setShown(shown + STEP)}>Show ${Math.min(STEP, found.length - shown)} more</button>`
        : pool.truncated && html`<button type="button" class="button" disabled=${loading} onClick=${() => { setParams({ limit: Math.min(waiting.length + 800, QUEUED_MAX) }, { replace: true }); setShown(shown + STEP); }}>${loading ? "Loading…" : "Load more of the queue"}</button>`}</div>
  <//>`;
}
