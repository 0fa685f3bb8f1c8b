// One slot pool: its slots, why its head waits, who holds, the whole queue, what ended lately.
import { html, signal, useEffect, useMemo, useRef } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { param, to } from "../lib/route.js";
import { condition, freeOf, parts, slotsWord } from "../lib/slots.js";
import { forecast } from "../lib/slotforecast.js";
import { useQuery } from "../lib/store.js";
import { Card, Fault, Nothing, PageHead, Skeleton } from "../ui/parts.js";
import { speak } from "../ui/toast.js";
import { Span } from "../ui/time.js";
import { Backlog, Condition, Lately, PauseButton, Reasons } from "./slots_parts.js";
import { Ended } from "./slots_ended.js";
import { Holders } from "./slots_holders.js";
import { Queue, QUEUED_MAX } from "./slots_queue.js";
import { Track } from "./slots_track.js";
import { Unavailable } from "./slots_unavailable.js";

/** Queued entries asked for at first. */
const QUEUED = 200;

/** @param {{pool: import("../lib/slots.js").Pool, loading: boolean}} props */
function Pool({ pool, loading }) {
  const lit = useMemo(() => signal(/** @type {string | undefined} */ (undefined)), []);
  const { running, waiting, ended } = parts(pool);
  const { starts, known } = useMemo(() => forecast(pool, Date.now()), [pool]);
  const { word } = condition(pool);
  const said = useRef(word);
  useEffect(() => {
    // The number that waits changes all the time; what kind of state it is does not.
    const kind = word.replace(/^[\d,]+ /, "");
    if (said.current !== kind) speak(`${pool.name} is now ${word}`);
    said.current = kind;
  }, [word]);
  const oldest = waiting.reduce((first, entry) => (entry.queuedAt < first ? entry.queuedAt : first), waiting[0]?.queuedAt ?? "");
  return html`
    <section class="card pool-top" aria-label="Slots">
      <div class="body stack">
        <div class="figures">
          <div><strong>${number(pool.used)}</strong><span>of ${slotsWord(pool.slots)} held${pool.draining ? `, ${number(pool.configuredSlots)} configured` : ""}</span></div>
          <div><strong>${number(freeOf(pool))}</strong><span>free</span></div>
          <div><strong>${oldest ? html`<${Span} from=${oldest} />` : "—"}</strong><span>longest wait</span></div>
          <${Backlog} pool=${pool} />
        </div>
        <${Track} pool=${pool} big lit=${lit} />
        <${Reasons} pool=${pool} start=${waiting[0] && starts.get(waiting[0].id)} />
      </div>
    </section>
    <${Card} title="Holds slots" flush more=${html`<span class="small quiet">${running.length > 0 ? plural(running.length, "claim") : ""}</span>`}><${Holders} pool=${pool} known=${known} lit=${lit} /><//>
    <${Queue} pool=${pool} starts=${starts} loading=${loading} />
    <${Card} title="Ended lately" flush more=${ended.length > 0 && html`<${Lately} pool=${pool} marks=${40} />`}><${Ended} pool=${pool} /><//>`;
}

/** @param {{name: string}} props */
export function PoolPage({ name }) {
  const wanted = Number(param("limit")) || (param("filter") ? QUEUED_MAX : QUEUED);
  const limit = Math.min(Math.max(wanted, 1), QUEUED_MAX);
  const query = useQuery(`/pools/${encodeURIComponent(name)}?limit=${limit}`, { topics: ["slots", "jobs", "config"], every: 5000, rest: 500 });
  // While more of the queue is fetched, what was there stays.
  const last = useRef(/** @type {import("../lib/slots.js").Pool | undefined} */ (undefined));
  if (query.data) last.current = query.data;
  const pool = last.current;
  const { error } = query;
  let content;
  if (error?.status === 503) content = html`<${Unavailable} again=${query.reload} error=${error} name=${name} />`;
  else if (error?.status === 404) content = html`<div class="card"><${Nothing} title=${`There is no pool called ‘${name}’ in the configuration.`}><a class="button" href=${to.slots()}>All pools</a><//></div>`;
  else if (!pool) content = html`<div class="card">${error ? html`<div class="body"><${Fault} error=${error} again=${query.reload} /></div>` : html`<${Skeleton} lines=${8} />`}</div>`;
  else content = html`${error && error.code !== "UNREACHABLE" && html`<${Fault} error=${error} again=${query.reload} />`}<${Pool} pool=${pool} loading=${!query.data} />`;
  const isKnown = pool && error?.status !== 404 && error?.status !== 503;
  return html`<${PageHead} title=${html`<a class="plain trail" href=${to.slots()}>Resource pools</a><span class="trail" aria-hidden="true"> / </span>${name}`} beside=${isKnown && html`<${Condition} pool=${pool} />`}>
      ${isKnown && html`<a class="button" href=${to.runs(`pool:${/\s/.test(name) ? `"${name}"` : name}`)}>Runs of this pool</a><${PauseButton} pool=${pool} />`}
    <//>${content}`;
}
