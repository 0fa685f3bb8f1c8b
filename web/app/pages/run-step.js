// One step of a run: how it stands and why, its attempts, what it has made or why it failed, and what can be done.
import { withQuery } from "../lib/api.js";
import { html } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { branchWords, typeWord } from "../lib/graph.js";
import { to } from "../lib/route.js";
import { whyOf } from "../lib/run.js";
import { useQuery } from "../lib/store.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Json } from "../ui/json.js";
import { Fault, Skeleton } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Span, Time } from "../ui/time.js";
import { Told } from "../ui/told.js";
import { Decide } from "./checkpoint.js";
import { logTab } from "./run-log.js";

const INSTANCES_MAX = 60;
const ENDED = ["succeeded", "failed", "cancelled", "timed_out"];

/** @param {any} run @param {string} name @param {string} title @returns {import("../ui/dialog.js").Wish} */
const retryFrom = (run, name, title) => ({
  title: `Retry from ${title}`,
  will: html`<p>Starts a new run of <strong>${run.job}</strong>, version ${run.version}, that begins at <strong>${title}</strong>: this step and what follows it run again, and what the other steps have made is used as it is. This run stays as it is; the new one names it.</p>`,
  verb: "Retry from here",
  request: () => ({ method: "POST", path: `/api/runs/${encodeURIComponent(run.id)}:retry`, body: { from: name } }),
  cli: () => ["run", "retry", run.id, "--from", name],
  done: (answer) => [`${run.job} goes on from ${title}`, answer.id ? { link: { href: to.run(answer.id, "graph"), text: "Open it" } } : {}],
});

/** @param {{step: any, run: any}} props */
const Attempts = ({ step, run }) => html`<div class="scroll-x" role="region" aria-label="Attempts" tabindex="-1"><table class="list as-cards"><thead><tr>${["Attempt", "Outcome", "Reason", "Start", "Duration", "Log"].map((head) => html`<th key=${head} scope="col">${head}</th>`)}</tr></thead>
  <tbody>${step.attempts.map((each) => html`<tr key=${`${each.number}-${each.fence}`}><td data-label="Attempt" class="lead"><strong>${each.number}</strong></td><td data-label="Outcome"><${State} of=${each.outcome} /></td><td data-label="Reason">${each.reason ? html`<${Told} text=${each.reason} />` : ""}</td><td data-label="Start"><${Time} at=${each.started_at} /></td><td data-label="Duration"><${Span} from=${each.started_at} to=${each.ended_at} /></td><td data-label="Log">${each.log_bytes > 0 ? html`<a href=${logTab(run, each.number, step.ref)}>log</a>` : ""}</td></tr>`)}</tbody></table></div>`;

const ORDER = ["failed", "timed_out", "running", "retrying", "waiting", "queued"];
const placeOf = (step) => (ORDER.includes(step.state) ? ORDER.indexOf(step.state) : ORDER.length);
const itemOf = (step) => Number(step.ref.split("#")[1] ?? 0);

/** The executions of a step of a body, to pick one: those that failed first. @param {{run: any, name: string, onPick: (ref: string) => void}} props */
function Instances({ run, name, onPick }) {
  const path = (state) => withQuery(`/api/runs/${encodeURIComponent(run.id)}/steps`, { of: name, state, "pagination.page_size": INSTANCES_MAX });
  const options = { topics: ["runs"], touches: (change) => change.id === run.id, rest: 3000 };
  const failed = useQuery(path("failed"), options);
  const any = useQuery(path(undefined), options);
  const known = new Map([...(failed.data ?? []), ...(any.data ?? [])].map((step) => [step.ref, step]));
  if (known.size === 0) return null;
  const shown = [...known.values()].sort((one, other) => placeOf(one) - placeOf(other) || itemOf(one) - itemOf(other)).slice(0, INSTANCES_MAX);
  const hasMore = Boolean(any.next) || known.size > shown.length;
  return html`<div class="stack"><p class="small soft">It runs once for each item; failed ones first:</p><div class="row wrap">${shown.map((step) => html`<button type="button" key=${step.ref} class="button tiny" onClick=${() => onPick(step.ref)}><${State} of=${step.state} word=${`item ${step.ref.slice(name.length + 1).replaceAll("#", ", ")}`} title=${step.state} /></button>`)}</div>${hasMore && html`<p class="tiny quiet">There are more; the list of all steps below can be narrowed to a state.</p>`}</div>`;
}

/** @param {{run: any, name: string, graph: import("../lib/graph.js").Graph, onPick: (ref: string) => void}} props */
export function RunStep({ run, name, graph, onPick }) {
  const base = name.split("#")[0];
  const node = graph.nodes.find((each) => each.ref === base);
  const isKnown = run.steps.some((step) => step.ref === name);
  // Of many steps only the first came with the run: others are asked for, and may turn out not to be reached.
  const isAsked = isKnown || Boolean(run.more_steps && (name !== base || (node && !node.parent)));
  const query = useQuery(isAsked ? `/api/runs/${encodeURIComponent(run.id)}/steps/${encodeURIComponent(name)}` : null, { topics: ["runs", "slots"], touches: (change) => change.id === run.id });
  const step = query.data;
  const isReached = isKnown || Boolean(step);
  const title = node?.title || base;
  const state = step?.state ?? (name === base ? node?.state : undefined);
  const isOpen = state === "waiting" && /APPROVAL|CHECKPOINT/.test(node?.type ?? "");
  const point = { id: `${run.id}:${name}`, run: run.id, workflow: run.job, step: name, title, kind: /APPROVAL/.test(node?.type ?? "") ? "approval" : "checkpoint" };
  return html`<section class="step-pane" aria-label=${`Step ${title}`}>
    <div class="row wrap"><h3>${title} <code class="quiet small">${name}</code></h3><span class="tag">${typeWord(node?.type)}</span>${state && html`<${State} of=${state} chip=${true} />`}${node?.branches && name === base && html`<span class="small soft">${branchWords(node.branches)}</span>`}
      <div class="actions row wrap">${isOpen && html`<${Decide} of=${point} />`}${ENDED.includes(run.state) && isReached && name === base && html`<${AskButton} wish=${() => retryFrom(run, name, title)}><${Icon} of="again" />Retry from here<//>`}</div></div>
    ${step && whyOf(step) && html`<p class=${state === "failed" ? "bad" : "soft"}><${Told} text=${whyOf(step)} /></p>`}
    ${!isReached && (!isAsked || query.error?.status === 404) && html`<p class="quiet">${run.steps.some((each) => each.ref.startsWith(`${base}#`)) ? "" : ENDED.includes(run.state) ? "The run ended without reaching it." : "Not reached yet."}</p>`}
    ${name === base && node && (node.folded ?? 0) > 0 && html`<p class="small soft">${plural(node.folded ?? 0, "step")} of its body ${node.folded === 1 ? "is" : "are"} not drawn; the list of steps below has what ran for each item, and can be narrowed to what failed.</p>`}
    ${isAsked && !step && query.error?.status !== 404 && (query.error ? html`<${Fault} error=${query.error} again=${query.reload} />` : html`<${Skeleton} lines=${3} />`)}
    ${name === base && (node?.parent || !node) && html`<${Instances} run=${run} name=${base} onPick=${onPick} />`}
    ${step?.attempts?.length > 0 && html`<${Attempts} step=${step} run=${run} />`}
    ${step && step.error !== null && step.error !== undefined && html`<div><p class="small soft">Error</p><${Json} value=${step.error} label=${`Error of ${title}`} /></div>`}
    ${step && step.output !== null && step.output !== undefined && html`<details open><summary class="small soft">Output</summary><${Json} value=${step.output} label=${`Output of ${title}`} /></details>`}
  </section>`;
}
