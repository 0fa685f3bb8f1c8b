// Resource pools: all of them as cards, or one with its whole queue.
import { html, useLayoutEffect, useRef, useState } from "../lib/dom.js";
import { readFilter } from "../lib/filter.js";
import { plural } from "../lib/format.js";
import { param } from "../lib/route.js";
import { matches } from "../lib/slots.js";
import { useQuery } from "../lib/store.js";
import { FilterBox } from "../ui/filterbox.js";
import { Command, Fault, Nothing, PageHead, Skeleton } from "../ui/parts.js";
import { PoolCard } from "./slots_card.js";
import { PoolPage } from "./slots_pool.js";
import { Unavailable } from "./slots_unavailable.js";

const SNIPPET = `pools:
  warehouse:
    slots: 4
    maxQueued: 100
jobs:
  - name: export
    command: python export.py
    schedule: "0 * * * *"
    pool: warehouse
    poolSlots: 2`;

/** Cards drawn before "show more". */
const CARDS = 60;
/** From so many on a filter helps. */
const MANY = 5;
/** The least width of a card. */
const CARD_PX = 470;
/** Queued entries that a card needs; the page of a pool shows all. */
const QUEUED = 60;

const WORDS = ["held", "waiting", "full", "blocked", "paused", "draining", "idle"];

/** Cards in as many columns as fit. Each keeps its column, so that one that grows pushes only those below it. @param {{pools: import("../lib/slots.js").Pool[]}} props */
function Columns({ pools }) {
  const box = useRef(null);
  const [count, setCount] = useState(1);
  useLayoutEffect(() => {
    const fit = () => setCount(Math.max(1, Math.floor((box.current.clientWidth + 16) / (CARD_PX + 16))));
    fit();
    const observer = new ResizeObserver(fit);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const columns = Array.from({ length: Math.min(count, Math.max(pools.length, 1)) }, (_, at) => pools.filter((_pool, index) => index % count === at));
  return html`<div class="pool-cards" ref=${box}>${columns.map((column, at) => html`<div key=${at}>${column.map((pool) => html`<${PoolCard} key=${pool.name} pool=${pool} />`)}</div>`)}</div>`;
}

/** @param {{pools: import("../lib/slots.js").Pool[]}} props */
function Cards({ pools }) {
  const jobs = () => [...new Set(pools.flatMap((pool) => (pool.entries ?? []).filter(({ state }) => state === "running" || state === "queued").map(({ job }) => job)))];
  const keys = [
    { key: "is", about: "what is true of the pool", values: WORDS },
    { key: "job", about: "a job that holds or waits", values: jobs },
  ];
  const filter = readFilter(param("filter"), keys);
  const shown = pools.filter((pool) => matches(pool, filter));
  const limit = Number(param("show")) || CARDS;
  return html`
    ${(pools.length >= MANY || param("filter")) && html`<div class="row wrap"><${FilterBox} keys=${keys} label="Filter the pools" placeholder="name, is:waiting, job:export" faults=${filter.faults} />
      <span class="small quiet">${shown.length === pools.length ? plural(pools.length, "pool") : `${shown.length} of ${plural(pools.length, "pool")}`}</span></div>`}
    ${shown.length === 0
      ? html`<div class="card"><${Nothing} title="No pool matches the filter."><a class="button" href="?">Show all</a><//></div>`
      : html`<${Columns} pools=${shown.slice(0, limit)} />`}
    ${shown.length > limit && html`<div class="row"><a class="button" href=${`?show=${limit + CARDS}`}>Show more</a><span class="small quiet">${limit} of ${shown.length} shown</span></div>`}`;
}

const Empty = () => html`<div class="card"><div class="nothing pool-none">
  <p>There are no resource pools yet. A pool limits how many jobs use a database, an API or a licence at the same time: what does not fit waits in a queue that survives a restart.</p>
  <p class="small quiet">Put this into the configuration and reload it.</p>
  <${Command} text=${SNIPPET} />
  <${Command} text="ductor config reload" />
</div></div>`;

function All() {
  const query = useQuery(`/pools?limit=${QUEUED}`, { topics: ["slots", "jobs", "config"], every: 8000, rest: 700 });
  const { data, error } = query;
  let content;
  if (error?.status === 503) content = html`<${Unavailable} again=${query.reload} error=${error} />`;
  else if (data === undefined) content = html`<div class="card">${error ? html`<div class="body"><${Fault} error=${error} again=${query.reload} /></div>` : html`<${Skeleton} lines=${6} />`}</div>`;
  else content = html`${error && error.code !== "UNREACHABLE" && html`<${Fault} error=${error} again=${query.reload} />`}${data.length === 0 ? html`<${Empty} />` : html`<${Cards} pools=${data} />`}`;
  return html`<${PageHead} title="Resource pools" />${content}`;
}

/** @param {{name?: string}} props */
export const Slots = ({ name }) => (name ? html`<${PoolPage} key=${name} name=${name} />` : html`<${All} />`);
