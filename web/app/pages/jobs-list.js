// All jobs: state, schedule, next and last fire, how the last runs went, and what can be done with each.
import { html, useRef } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { readFilter, withTerm } from "../lib/filter.js";
import { usePages } from "../lib/pages.js";
import { param, setParams, to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { ask } from "../ui/dialog.js";
import { FilterBox } from "../ui/filterbox.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Fault, Loaded, Nothing } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { pauseWish, resumeWish, startWish } from "./job-actions.js";
import { JobStates, LastFire, NextFire, Schedule, Trend } from "./job-parts.js";

const STATES = ["failing", "late", "running", "paused", "disabled"];
const PAGE_SIZE = 100;
const SNIPPET = `jobs:
  - name: nightly-backup
    schedule: "30 2 * * *"
    timezone: Europe/Berlin
    command: tar czf /backup/etc.tar.gz /etc`;

/** Start, and pause or resume. @param {{job: any}} props */
function RowActions({ job }) {
  const act = (icon, name, wish, disabled) => html`<button type="button" class="button ghost tiny icon" aria-label=${`${name} ${job.name}`} title=${name} disabled=${disabled} onClick=${() => ask(wish(job))}><${Icon} of=${icon} /></button>`;
  return html`<span class="row-actions">${act("play", "Start", startWish, !job.enabled)}${job.paused ? act("again", "Resume", resumeWish, false) : act("pause", "Pause", pauseWish, !job.enabled)}</span>`;
}

const COLUMNS = [
  { key: "state", title: "State", lead: true, className: "of-state", cell: (job) => html`<${JobStates} job=${job} />` },
  { key: "job", title: "Job", lead: true, className: "of-name", cell: (job) => html`<a class="main-link" href=${to.job(job.name)}>${job.name}</a>` },
  { key: "schedule", title: "Schedule", className: "of-schedule", cell: (job) => html`<${Schedule} schedule=${job.schedule} />` },
  { key: "next", title: "Next fire", className: "of-next", cell: (job) => html`<${NextFire} job=${job} />` },
  { key: "last", title: "Last fire", className: "of-last", cell: (job) => html`<${LastFire} job=${job} />` },
  { key: "trend", title: "Last 20", cell: (job) => html`<${Trend} job=${job} />` },
  { key: "pool", title: "Slot pool", className: "nowrap", cell: (job) => (job.pool ? html`<div class="two"><a class="plain" href=${to.slots(job.pool.name)}>${job.pool.name}</a>${job.pool.slots > 1 && html`<span class="quiet tiny">${job.pool.slots} slots</span>`}</div>` : job.queue_unavailable ? html`<span class="bad tiny">unavailable</span>` : null) },
  { key: "do", title: html`<span class="unseen">Actions</span>`, className: "of-actions", cell: (job) => html`<${RowActions} job=${job} />` },
];

/** One click for the states that people ask for most. @param {{filter: string}} props */
function QuickStates({ filter }) {
  const now = readFilter(filter, [{ key: "state", about: "" }]).query.state ?? [];
  return html`<div class="row wrap one-of" role="group" aria-label="Jobs in one state">${STATES.map((state) => {
    const on = now.length === 1 && now[0] === state;
    return html`<button type="button" key=${state} class="button ghost tiny" aria-pressed=${on ? "true" : "false"} onClick=${() => setParams({ filter: withTerm(filter, "state", on ? "" : state) })}><${State} of=${state} /></button>`;
  })}</div>`;
}

export function JobList() {
  const pools = useQuery("/pools?entries=none", { topics: ["config"] });
  const names = useRef([]);
  names.current = (pools.data ?? []).map(({ name }) => name);
  const keys = useRef([
    { key: "state", about: "what it is doing or what is wrong", values: STATES },
    { key: "pool", about: "where it gets its slots", values: () => names.current },
  ]).current;
  const filter = param("filter");
  const { query, words, faults } = readFilter(filter, keys);
  const path = withQuery("/api/jobs", { include: "recent", state: query.state, pool: query.pool, q: words.join(" "), "pagination.page_size": PAGE_SIZE });
  const list = usePages(faults.length > 0 ? null : path, { topics: ["jobs", "runs", "slots", "config"], rest: 2000, keyOf: (job) => job.name });
  return html`<section class="card flush jobs" aria-label="All jobs">
    <header><${FilterBox} keys=${keys} label="Filter jobs" placeholder="state:failing pool:warehouse or a part of a name" faults=${faults} /><${QuickStates} filter=${filter} /></header>
    <div class="body">${faults.length === 0 && html`<${Loaded} query=${list} lines=${8}>${() => html`
      ${list.rows.length > 0 ? html`<${List} rows=${list.rows} columns=${COLUMNS} keyOf=${(job) => job.name} hrefOf=${(job) => to.job(job.name)} label="Jobs" />` : html`<${None} filter=${filter} />`}
      ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
      ${list.rows.length > 0 && html`<${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "job" : "jobs"} more=${list.more} loading=${list.loadingMore} />`}`}<//>`}</div>
  </section>`;
}

const None = ({ filter }) => filter
  ? html`<${Nothing} title="No job matches this filter."><button type="button" class="button" onClick=${() => setParams({ filter: "" })}>Show all jobs</button><//>`
  : html`<${Nothing} title="There is no job yet. Put one into the configuration file; it is read again when it changes." command=${SNIPPET} />`;
