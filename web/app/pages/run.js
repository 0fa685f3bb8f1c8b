// Run: what became of it or why it waits, its life as a timeline, its attempts, its log; cancel, retry, rerun.
import { html, useEffect, useRef } from "../lib/dom.js";
import { bind } from "../lib/keys.js";
import { left } from "../lib/leaving.js";
import { go, here, param, setParams, to } from "../lib/route.js";
import { deedsFor } from "../lib/run.js";
import { madeAt, shownState } from "../lib/runs.js";
import { useQuery } from "../lib/store.js";
import { ask } from "../ui/dialog.js";
import { Fault, Note, Nothing, PageHead, Panel, Skeleton, Tabs } from "../ui/parts.js";
import { wordOf } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { speak } from "../ui/toast.js";
import { wishes } from "./run-actions.js";
import { Attempts, Reports } from "./run-attempts.js";
import { Details } from "./run-details.js";
import { Head } from "./run-head.js";
import { Log } from "./run-log.js";
import { RunGraph } from "./run-graph.js";
import { RunTimeline } from "./run-timeline.js";
import { Why } from "./run-why.js";
import { useNames } from "./runs-names.js";

const GRAPH = { key: "graph", title: "Graph" };
const TABS = [{ key: "overview", title: "Overview" }, { key: "log", title: "Log" }, { key: "details", title: "Details" }];

const back = () => go(left.address || to.runs());

/** @param {{id: string}} props */
function Gone({ id }) {
  const at = madeAt(id);
  return html`<${PageHead} title=${at === undefined ? "No such run" : "A run that is gone"} /><div class="card"><${Nothing} title=${at === undefined ? `‘${id}’ is not the id of a run.` : "This run is not kept any more."}>
    ${at !== undefined && html`<p class="small">By its id it was made <${Time} at=${at} form="long" />. Old runs are removed by the configured retention; or it belongs to another state directory.</p>`}
    <a class="button" href=${left.address || to.runs()}>Back to the runs</a>
  <//></div>`;
}

/** Keys of this page; each asks for what is true when it is pressed. */
function useKeys(latest) {
  useEffect(() => {
    const when = (kind, make) => () => {
      const { run, etag } = latest.current;
      if (!run) return;
      if (deedsFor(run, shownState(run))[kind]) ask(make(run, etag));
      else speak(kind === "cancel" ? "It has ended: there is nothing to cancel" : "It goes on: there is nothing to rerun");
    };
    const ends = [
      bind("c", "Cancel the run", when("cancel", wishes.cancel), "This run"),
      bind("r", "Run it again as a new run", when("rerun", wishes.rerun), "This run"),
      bind("l", "Log or overview", () => setParams({ tab: (here.peek().query.get("tab") === "log" ? "" : "log"), attempt: "" }), "This run"),
      bind("Escape", "Back to the list", back, "This run"),
    ];
    return () => ends.forEach((end) => end());
  }, []);
}

/** @param {{id: string}} props */
export function Run({ id }) {
  useNames();
  const query = useQuery(`/api/runs/${encodeURIComponent(id)}`, {
    topics: ["runs", "slots"],
    // A place in a queue moves with what happens to others.
    touches: (change) => change.id === id || change.topic?.startsWith("pool.") || change.topic?.startsWith("report.") || false,
  });
  const run = query.data;
  const graph = useQuery(run ? `/api/runs/${encodeURIComponent(id)}/graph` : null, { topics: ["runs", "slots"], touches: (change) => change.id === id });
  const latest = useRef({ run, etag: query.etag });
  latest.current = { run, etag: query.etag };
  useKeys(latest);
  const state = run && shownState(run);
  const before = useRef(state);
  useEffect(() => {
    if (state && before.current && state !== before.current) speak(`${run.job} is now ${wordOf(state)}`);
    before.current = state;
    if (run) document.title = `${run.job} ${wordOf(state)} · ductor`;
  }, [state]);
  const isGone = query.error?.status === 404;
  if (!run) {
    if (isGone) return html`<${Gone} id=${id} />`;
    return query.error ? html`<div class="card"><div class="body"><${Fault} error=${query.error} again=${query.reload} /></div></div>` : html`<div class="card"><${Skeleton} lines=${8} /></div>`;
  }
  // A job is a graph of its one step: there is nothing to see.
  const isGraph = graph.data?.nodes.some((node) => node.ref !== "main") ?? param("tab") === "graph";
  const tabs = isGraph ? [TABS[0], GRAPH, ...TABS.slice(1)] : TABS;
  const tab = tabs.some(({ key }) => key === param("tab")) ? param("tab") : "overview";
  const pick = (next) => setParams({ tab: next === "overview" ? "" : next, attempt: next === "log" ? param("attempt") : "", step: next === "graph" || next === "log" ? param("step") : "" });
  return html`<div class="run-page">
    <${Head} run=${run} isGraph=${isGraph} state=${state} etag=${query.etag} listHref=${left.address || to.runs()} />
    ${isGone && html`<${Note} of="wait" icon="gone">This run has just been removed by retention: what you see is the last of it.<//>`}
    ${query.error && !isGone && query.error.code !== "UNREACHABLE" && html`<${Fault} error=${query.error} again=${query.reload} />`}
    <${Why} run=${run} state=${state} lines=${tab !== "log"} />
    <${Tabs} tabs=${tabs} at=${tab} onPick=${pick} label="About this run" />
    ${tab === "overview" && html`<${Panel} of="overview"><div class="stack wide"><${RunTimeline} run=${run} /><${Attempts} run=${run} graph=${isGraph ? graph.data : undefined} /><${Reports} run=${run} /></div><//>`}
    ${tab === "graph" && html`<${Panel} of="graph"><${RunGraph} run=${run} query=${graph} /><//>`}
    ${tab === "log" && html`<${Panel} of="log"><${Log} run=${run} graph=${isGraph ? graph.data : undefined} /><//>`}
    ${tab === "details" && html`<${Panel} of="details"><${Details} run=${run} /><//>`}
  </div>`;
}
