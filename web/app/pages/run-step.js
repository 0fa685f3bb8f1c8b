// One step of a run: how it stands and why, its attempts, what it has made or why it failed, and what can be done.
import { html } from "../lib/dom.js";
import { branchWords, typeWord } from "../lib/graph.js";
import { to } from "../lib/route.js";
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
  <tbody>${step.attempts.map((each) => html`<tr key=${`${each.number}-${each.fence}`}><td data-label="Attempt" class="lead"><strong>${each.number}</strong></td><td data-label="Outcome"><${State} of=${each.outcome} /></td><td data-label="Reason">${each.reason ? html`<${Told} text=${each.reason} />` : ""}</td><td data-label="Start"><${Time} at=${each.started_at} /></td><td data-label="Duration"><${Span} from=${each.started_at} to=${each.ended_at} /></td><td data-label="Log">${each.log_bytes > 0 ? html`<a href=${logTab(run, each.number)}>log</a>` : ""}</td></tr>`)}</tbody></table></div>`;

/** The executions of a step of a body, to pick one. @param {{run: any, name: string, onPick: (ref: string) => void}} props */
function Instances({ run, name, onPick }) {
  const own = run.steps.filter((step) => step.ref.startsWith(`${name}#`));
  if (own.length === 0) return null;
  const order = ["failed", "timed_out", "running", "retrying", "waiting", "queued"];
  const place = (step) => (order.includes(step.state) ? order.indexOf(step.state) : order.length);
  const shown = [...own].sort((one, other) => place(one) - place(other)).slice(0, INSTANCES_MAX);
  return html`<div class="stack"><p class="small soft">It runs once for each item; failed ones first:</p><div class="row wrap">${shown.map((step) => html`<button type="button" key=${step.ref} class="button tiny" onClick=${() => onPick(step.ref)}><${State} of=${step.state} word=${`item ${step.ref.slice(name.length + 1).replaceAll("#", ", ")}`} title=${step.state} /></button>`)}</div>${own.length > shown.length && html`<p class="tiny quiet">and ${own.length - shown.length} more</p>`}</div>`;
}

/** @param {{run: any, name: string, graph: import("../lib/graph.js").Graph, onPick: (ref: string) => void}} props */
export function RunStep({ run, name, graph, onPick }) {
  const base = name.split("#")[0];
  const node = graph.nodes.find((each) => each.ref === base);
  const isReached = run.steps.some((step) => step.ref === name);
  const query = useQuery(isReached ? `/api/runs/${encodeURIComponent(run.id)}/steps/${encodeURIComponent(name)}` : null, { topics: ["runs", "slots"], touches: (change) => change.id === run.id });
  const step = query.data;
  const title = node?.title || base;
  const state = step?.state ?? (name === base ? node?.state : undefined);
  const isOpen = state === "waiting" && /APPROVAL|CHECKPOINT/.test(node?.type ?? "");
  const point = { id: `${run.id}:${name}`, run: run.id, workflow: run.job, step: name, title, kind: /APPROVAL/.test(node?.type ?? "") ? "approval" : "checkpoint" };
  return html`<section class="step-pane" aria-label=${`Step ${title}`}>
    <div class="row wrap"><h3>${title} <code class="quiet small">${name}</code></h3><span class="tag">${typeWord(node?.type)}</span>${state && html`<${State} of=${state} chip=${true} />`}${node?.branches && name === base && html`<span class="small soft">${branchWords(node.branches)}</span>`}
      <div class="actions row wrap">${isOpen && html`<${Decide} of=${point} />`}${ENDED.includes(run.state) && isReached && name === base && html`<${AskButton} wish=${() => retryFrom(run, name, title)}><${Icon} of="again" />Retry from here<//>`}</div></div>
    ${step?.reason && html`<p class=${state === "failed" ? "bad" : "soft"}><${Told} text=${step.reason} /></p>`}
    ${!isReached && html`<p class="quiet">${run.steps.some((each) => each.ref.startsWith(`${base}#`)) ? "" : ENDED.includes(run.state) ? "The run ended without reaching it." : "Not reached yet."}</p>`}
    ${isReached && !step && (query.error ? html`<${Fault} error=${query.error} again=${query.reload} />` : html`<${Skeleton} lines=${3} />`)}
    ${name === base && html`<${Instances} run=${run} name=${base} onPick=${onPick} />`}
    ${step?.attempts?.length > 0 && html`<${Attempts} step=${step} run=${run} />`}
    ${step && step.error !== null && step.error !== undefined && html`<div><p class="small soft">Error</p><${Json} value=${step.error} label=${`Error of ${title}`} /></div>`}
    ${step && step.output !== null && step.output !== undefined && html`<details open><summary class="small soft">Output</summary><${Json} value=${step.output} label=${`Output of ${title}`} /></details>`}
  </section>`;
}
