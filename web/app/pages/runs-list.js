// The list of runs: rows that hold still while they are read, and what can be done with those that are selected.
import { html, signal, useRef } from "../lib/dom.js";
import { number, plural, shortId } from "../lib/format.js";
import { to } from "../lib/route.js";
import { meaning } from "../lib/run.js";
import { beganAt, dueAt, shownState, tookMs, triggerOf } from "../lib/runs.js";
import { spanScale } from "../lib/scale.js";
import { holdStill } from "../lib/still.js";
import { span, whole } from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Fault, Loaded, Nothing } from "../ui/parts.js";
import { familyOf, State } from "../ui/state.js";
import { daemonNow, Time } from "../ui/time.js";
import { Told } from "../ui/told.js";
import { names, zoneOf } from "./runs-names.js";
import { Bulk } from "./runs-bulk.js";

const ROWS_MAX = 1000;
/** Begun that soon, the due moment says nothing that the start does not. */
const PUNCTUAL_MS = 1500;
const keyOf = (run) => run.id;

/** @param {{run: import("../lib/runs.js").Row}} props */
const Why = ({ run }) => {
  const waits = run.waiting_reason;
  if (waits) return html`<span class="why" title=${waits.text}>${waits.pool && html`<a class="tag" href=${to.slots(waits.pool)} title="Slot pool">${waits.pool}</a> `}<${Told} text=${waits.text} ofJob=${zoneOf(run.job)} /></span>`;
  if (!run.reason) return null;
  return html`<span class=${`why ${familyOf(run.state) === "bad" ? "bad" : ""}`} title=${meaning(run.reason) ?? run.reason}><${Told} text=${run.reason} ofJob=${zoneOf(run.job)} /></span>`;
};

/** @param {{run: import("../lib/runs.js").Row}} props */
const Trigger = ({ run }) => {
  const { icon, word, by } = triggerOf(run);
  const due = dueAt(run);
  const isSame = due && Math.abs(Date.parse(due) - (beganAt(run) ?? 0)) < PUNCTUAL_MS;
  return html`<span class=${`trigger ${isSame ? "punctual" : ""}`}><${Icon} of=${icon} /><span>${word}</span>${due ? html` <span class="quiet"><${Time} at=${due} ofJob=${zoneOf(run.job)} bare=${true} /></span>` : ""}${run.rerun_of
    ? html` <a class="mono tiny" href=${to.run(run.rerun_of)} title=${`of ${run.rerun_of}`}>${shortId(run.rerun_of)}</a>`
    : by ? html` <span class="quiet">by ${by}</span>` : ""}</span>`;
};

/** Grows while the run goes on; nothing else of the row is drawn anew. @param {{run: any, scale: any}} props */
function Took({ run, scale }) {
  const state = shownState(run);
  const goesOn = state === "running" || state === "retrying" || (state === "waiting" && run.started_at);
  const ms = tookMs(run, goesOn ? daemonNow() : 0);
  if (ms === undefined) return html`<span class="quiet">—</span>`;
  return html`<span class="took"><span class="figure">${goesOn ? whole(ms) : span(ms)}</span><span class="track" aria-hidden="true"><span class=${`fill of-${familyOf(state)}`} style=${{ width: `${6 + scale.part(ms) * 94}%` }}></span></span></span>`;
}

const columns = (scale) => [
  { key: "state", title: "State", lead: true, className: "c-state", cell: (run) => html`<${State} of=${shownState(run)} />` },
  { key: "job", title: "Job", lead: true, className: "c-job", cell: (run) => html`<a class="main-link" href=${to.run(run.id)} title=${run.id}>${run.job ?? shortId(run.id)}</a>` },
  { key: "why", title: "Why", className: "c-why", cell: (run) => html`<${Why} run=${run} />` },
  { key: "trigger", title: "Begun by", className: "c-trigger", cell: (run) => run.trigger && html`<${Trigger} run=${run} />` },
  { key: "start", title: "Start", className: "c-start", cell: (run) => run.created_at && html`<span class=${run.started_at ? "" : "quiet"} title=${run.started_at ? undefined : "not started; this is when it was made"}><${Time} at=${beganAt(run)} ofJob=${zoneOf(run.job)} /></span>` },
  { key: "took", title: html`<span title="Bars are on the same log scale as the picture above">Duration</span>`, className: "c-took", cell: (run) => run.created_at && html`<${Took} run=${run} scale=${scale} />` },
  { key: "attempt", title: "Attempt", number: true, className: "c-attempt", cell: (run) => (run.attempt > 1 ? html`<strong>${run.attempt}</strong>` : html`<span class="quiet">${run.attempt ?? ""}</span>`) },
];

/**
 * Keeps the rows in place while they are pointed at, have the focus, or are selected.
 * @param {any[]} rows @param {{value: Set<string>, peek: () => Set<string>}} picked
 * @param {string} of what is filtered: another filter is another list @param {boolean} isOld these rows are about to go
 */
function useStill(rows, picked, of, isOld) {
  const held = useRef(signal(/** @type {string[]} */ ([]))).current;
  const known = useRef(new Map()).current;
  const filtered = useRef(of);
  if (filtered.current !== of) {
    filtered.current = of;
    held.value = [];
    picked.value = new Set();
  }
  const seen = held.value.length > 0 ? holdStill(held.value, rows, keyOf, known) : { rows, fresh: 0 };
  known.clear();
  for (const row of seen.rows) known.set(keyOf(row), row);
  const latest = useRef(seen.rows);
  latest.current = seen.rows;
  const going = useRef(isOld);
  going.current = isOld;
  const over = useRef({ pointer: false, focus: false }).current;
  const hold = () => {
    if (!going.current && held.peek().length === 0) held.value = latest.current.map(keyOf);
  };
  const goOn = () => {
    if (!over.pointer && !over.focus && picked.peek().size === 0) held.value = [];
  };
  return {
    ...seen,
    show: () => {
      held.value = [];
    },
    on: {
      onPointerMove: (event) => { if (event.pointerType === "mouse") { over.pointer = true; hold(); } },
      onPointerLeave: () => { over.pointer = false; goOn(); },
      onFocusIn: () => { over.focus = true; hold(); },
      onFocusOut: (event) => { if (!event.currentTarget.contains(event.relatedTarget)) { over.focus = false; goOn(); } },
    },
  };
}

/** @param {{asked: any}} props */
function None({ asked }) {
  if (!asked.isEmpty) return html`<${Nothing} title="No run matches this filter."><a class="button" href=${to.runs()}>Show all runs</a><//>`;
  const job = names.value.jobs[0];
  return job
    ? html`<${Nothing} title="Nothing has run yet. Jobs start by their schedule, or by hand:" command=${`ductor job start ${job}`} />`
    : html`<${Nothing} title="Nothing has run yet, and no job is configured." command="ductor init" />`;
}

/** Rows beyond the bound are reached by a filter that begins there. */
function Foot({ query, rows, text }) {
  const isFull = query.rows.length >= ROWS_MAX && query.more;
  const last = query.rows[query.rows.length - 1]?.created_at;
  return html`<${ListFoot} count=${rows.length} what=${rows.length === 1 ? "run" : "runs"} more=${isFull ? undefined : query.more} loading=${query.loadingMore}>
    ${isFull && last && html`. <a href=${to.runs(`${text.replace(/\s*until:\S+/g, "")} until:${last}`.trim())}>Go on with older ones</a>`}${query.scanned && html`; looked back to <${Time} at=${query.scanned} />`}
  <//>${query.moreError && html`<div class="body"><${Fault} error=${query.moreError} again=${query.more} /></div>`}`;
}

/**
 * @param {{query: any, asked: any, pointed: {value: string | undefined}, text: string}} props
 */
export function RunList({ query, asked, pointed, text }) {
  const picked = useRef(signal(/** @type {Set<string>} */ (new Set()))).current;
  const still = useStill(query.rows, picked, text, query.isOld);
  const longest = spanScale(query.rows.map((run) => tookMs(run, Date.now())));
  const key = `${longest.from}-${longest.to}`;
  const columnsOf = useRef({ key: "", columns: /** @type {any[]} */ ([]) });
  if (columnsOf.current.key !== key) columnsOf.current = { key, columns: columns(longest) };
  const onPick = (id, on) => {
    const next = new Set(picked.peek());
    if (on) next.add(id);
    else next.delete(id);
    picked.value = next;
  };
  const onPickAll = (on) => {
    picked.value = on ? new Set(still.rows.map(keyOf)) : new Set();
  };
  return html`<section class=${`card flush runs-list ${query.isOld ? "old" : ""}`} aria-busy=${query.isOld ? "true" : undefined} aria-labelledby="runs-title" ...${still.on}>
    <header><h2 id="runs-title">Newest first</h2>
      ${still.fresh > 0 && html`<button type="button" class="button tiny fresh" onClick=${still.show} title="The list holds still while you use it">${plural(still.fresh, "new run")}: show</button>`}
      <${Bulk} picked=${picked} rows=${still.rows} asked=${asked} text=${text} hasMore=${Boolean(query.more)} />
    </header>
    <div><${Loaded} query=${query} lines=${12}>${() =>
      still.rows.length === 0 && !query.more
        ? html`<${None} asked=${asked} />`
        : html`<${List} rows=${still.rows} columns=${columnsOf.current.columns} keyOf=${keyOf} hrefOf=${(run) => to.run(run.id)} label="Runs" picked=${picked} onPick=${onPick} onPickAll=${onPickAll}
            nameOf=${(run) => `${run.job ?? ""} ${shortId(run.id)}`} onPoint=${(id) => { pointed.value = id; }} />
          <${Foot} query=${query} rows=${still.rows} text=${text} />`}<//></div>
    <p class="unseen" role="status">${query.data ? `${number(still.rows.length)} runs shown` : ""}</p>
  </section>`;
}
