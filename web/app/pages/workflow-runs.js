// The runs of a workflow: the last ones as bars, and all of them as a list.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { span } from "../lib/time.js";
import { Card, Loaded, Nothing } from "../ui/parts.js";
import { familyOf, wordOf } from "../ui/state.js";
import { JobRuns } from "./job-runs.js";

const BARS = 40;

/** @param {{workflow: any}} props */
export function LastRuns({ workflow }) {
  const query = useQuery(withQuery("/api/runs", { job: workflow.family_slug, "pagination.page_size": BARS }), { topics: ["runs"], rest: 2000 });
  return html`<${Card} title="Last runs" more=${html`<a href=${to.workflow(workflow.family_slug, "runs")}>All runs</a>`}><${Loaded} query=${query} lines=${2}>${(runs) => (runs.length === 0
    ? html`<${Nothing} title=${workflow.current_version ? "It has not run yet." : "It has not run yet: publish it first."} command=${workflow.current_version ? `ductor run start ${workflow.family_slug} --follow` : `ductor workflow publish ${workflow.family_slug}`} />`
    : html`<${Bars} runs=${runs} />`)}<//><//>`;
}

/** Each bar is a run, a link to it; oldest first, the longest is the highest. @param {{runs: any[]}} props */
function Bars({ runs }) {
  const longest = Math.max(...runs.map((run) => run.duration_ms ?? 0), 1);
  const bad = runs.filter((run) => familyOf(run.state) === "bad").length;
  const took = runs.filter((run) => run.duration_ms !== null && run.duration_ms !== undefined).map((run) => run.duration_ms).sort((one, other) => one - other);
  return html`<div class="flow-bars"><ul>${[...runs].reverse().map((run) => {
    const part = Math.max(0.1, Math.sqrt((run.duration_ms ?? 0) / longest));
    const words = `${wordOf(run.state)}${run.duration_ms === null || run.duration_ms === undefined ? "" : `, ${span(run.duration_ms)}`}${run.reason ? `: ${run.reason}` : ""}`;
    return html`<li key=${run.id}><a href=${to.run(run.id)} title=${words} aria-label=${`Run ${words}`}><span class=${`bar of-${familyOf(run.state)}`} style=${{ height: `${Math.round(part * 100)}%` }}></span></a></li>`;
  })}</ul><p class="small soft">${bad === 0 ? `None of the last ${plural(runs.length, "run")} failed` : `${bad} of the last ${plural(runs.length, "run")} failed`}${took.length > 0 ? `; half took at most ${span(took[Math.floor((took.length - 1) / 2)])}, the longest ${span(took[took.length - 1])}` : ""}.</p></div>`;
}

/** @param {{workflow: any}} props */
export const WorkflowRuns = ({ workflow }) => html`<${JobRuns} job=${{ name: workflow.family_slug }} />`;
