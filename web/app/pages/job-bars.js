// The last runs of a job as bars: how long each took, how it ended, one click away.
import { html } from "../lib/dom.js";
import { median } from "../lib/jobs.js";
import { to } from "../lib/route.js";
import { relative, span } from "../lib/time.js";
import { Nothing } from "../ui/parts.js";
import { familyOf, State, wordOf } from "../ui/state.js";

/** @param {{run: any, longest: number}} props */
function Bar({ run, longest }) {
  const took = run.duration_ms;
  const part = took == null ? 0.04 : Math.max(0.04, took / longest);
  const text = `${wordOf(run.state)} ${relative(Date.parse(run.ended_at), Date.now())}${took == null ? "" : `, took ${span(took)}`}`;
  return html`<a class="run-bar" href=${to.run(run.id)} aria-label=${text} title=${text}><span class=${`bar of-${familyOf(run.state)}`} style=${{ height: `${Math.round(part * 100)}%` }}></span></a>`;
}

/** @param {{job: any}} props */
export function RunBars({ job }) {
  const runs = job.recent;
  if (runs.length === 0) return html`<${Nothing} title="It has not run yet." command=${`ductor job start ${/^[\w.-]+$/.test(job.name) ? job.name : `'${job.name}'`} --follow`} />`;
  const longest = Math.max(...runs.map((run) => run.duration_ms ?? 0), 1);
  const typical = median(runs);
  const counted = [...new Set(runs.map(({ state }) => state))].map((state) => [state, runs.filter((run) => run.state === state).length]);
  return html`<div class="stack">
    <div class="run-bars" role="group" aria-label=${`The last ${runs.length} runs, oldest first`}>${[...runs].reverse().map((run) => html`<${Bar} key=${run.id} run=${run} longest=${longest} />`)}</div>
    <div class="row wrap apart small"><span class="row wrap">${counted.map(([state, count]) => html`<${State} key=${state} of=${state} word=${`${count} ${wordOf(state)}`} />`)}</span>
      <span class="quiet">${typical === undefined ? "" : `typically ${span(typical)}, at most ${span(longest)}`}</span></div>
  </div>`;
}
