// Home: is all well, what failed, what runs, what waits and why, what comes next, how the last day went.
import { html, useEffect } from "../lib/dom.js";
import { instant, plural } from "../lib/format.js";
import { verdict } from "../lib/home.js";
import { skew } from "../lib/live.js";
import { to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { Fault, PageHead, Skeleton } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Failing, GivenUp, Late } from "./home_failing.js";
import { FirstSteps } from "./home_first.js";
import { Hours } from "./home_hours.js";
import { Countdown, NextFires, Nodes, SlotPools } from "./home_next.js";
import { Running, Waiting } from "./home_now.js";
import { Sentence } from "./home_parts.js";

const TOPICS = ["runs", "slots", "jobs", "nodes", "config"];
const EVERY_MS = 15_000;
/** On a busy daemon every run is a change: once a second is enough for a person. */
const REST_MS = 1000;
/** Below this the clocks are thought to agree: the answer took its time too. */
const SKEW_MIN_MS = 1500;

function useDaemonClock(overview) {
  useEffect(() => {
    const theirs = instant(overview.data?.now);
    if (theirs === undefined) return;
    const ahead = theirs - overview.at;
    if (Math.abs(ahead - skew.peek()) > SKEW_MIN_MS) skew.value = Math.abs(ahead) > SKEW_MIN_MS ? ahead : 0;
  }, [overview.data]);
}

/** What runs, waits and comes, in one line under the sentence; each leads to its list. */
const Tallies = ({ status, overview }) => html`<p class="tallies soft dots">
  <a href=${to.runs("state:running")}>${overview.running.total} running</a>
  <a href=${overview.waiting.total > 0 ? "#waiting" : to.runs("state:pending")}>${overview.waiting.total} waiting</a>
  ${overview.next_fires[0] && html`<a href="#next">next fire ${overview.next_fires[0].job} <${Countdown} at=${overview.next_fires[0].at} /></a>`}
  <a href=${to.settings("nodes")}>${plural(status.nodes.filter((node) => node.state === "live").length, "live node")}</a>
</p>`;

function Top({ status, overview }) {
  const { of, parts, also, quiet } = verdict(status, overview);
  return html`<section class=${`home-verdict is-${of} ${quiet ? "is-quiet" : ""}`} aria-label="Verdict">
    <div class="home-mark"><${State} of=${of} iconOnly /></div>
    <div class="stack grow">
      <h1><${Sentence} parts=${parts} /></h1>
      ${also.length > 0 && html`<ul class="also">${also.map((each) => html`<li key=${each.parts.map((part) => ("text" in part ? part.text : part.at)).join("")}><${State} of=${each.of} iconOnly /><span><${Sentence} parts=${each.parts} /></span></li>`)}</ul>`}
      <${Tallies} status=${status} overview=${overview} />
    </div>
  </section>`;
}

const Waiting_ = () => html`<${PageHead} title="Home" />
  <div class="home-columns"><div class="stack wide"><div class="card"><${Skeleton} lines=${6} /></div></div><div class="stack wide"><div class="card"><${Skeleton} lines=${6} /></div></div></div>`;

export function Home() {
  const status = useQuery("/api/status", { topics: TOPICS, every: EVERY_MS, rest: REST_MS });
  const overview = useQuery("/api/overview", { topics: TOPICS, every: EVERY_MS, rest: REST_MS });
  useDaemonClock(overview);
  const missing = [status, overview].find((query) => query.data === undefined);
  if (missing) return missing.error ? html`<${PageHead} title="Home" /><${Fault} error=${missing.error} again=${missing.reload} />` : html`<${Waiting_} />`;
  const [now, seen] = [status.data, overview.data];
  const failed = [status, overview].find((query) => query.error && query.error.code !== "UNREACHABLE");
  const troubled = seen.failing.total > 0 || now.late_jobs.length > 0 || now.poisoned_runs.length > 0;
  const next = html`<${NextFires} key="next" fires=${seen.next_fires} />`;
  return html`
    ${failed && html`<${Fault} error=${failed.error} again=${failed.reload} />`}
    <${Top} status=${now} overview=${seen} />
    ${seen.first_steps && html`<${FirstSteps} fires=${seen.next_fires} />`}
    <div class="home-columns">
      <div class="stack wide">
        <${Failing} failing=${seen.failing} /><${GivenUp} runs=${now.poisoned_runs} /><${Late} jobs=${now.late_jobs} />
        <${Running} running=${seen.running} /><${Waiting} waiting=${seen.waiting} />
        ${!troubled && next}
      </div>
      <div class="stack wide">
        ${!seen.first_steps && html`<${Hours} hours=${seen.hours} from=${seen.hours_counted_from} />`}
        <${SlotPools} pools=${now.pools} />
        ${troubled && next}
        <${Nodes} nodes=${now.nodes} own=${now.node} />
      </div>
    </div>`;
}
