// Small drawings of many runs: a row of bars whose heights are spans and whose colours are outcomes.
import { html } from "../lib/dom.js";
import { span } from "../lib/time.js";
import { familyOf, wordOf } from "./state.js";

/**
 * The last runs of a job, oldest first; the tallest is the longest. A failed one is marked by its height too: it is full.
 * @param {{runs: {state: string, duration_ms: number | null}[], label: string}} props newest first, as the API has them
 */
export function Spark({ runs, label }) {
  if (!runs || runs.length === 0) return html`<span class="quiet tiny">no runs yet</span>`;
  const longest = Math.max(...runs.map((run) => run.duration_ms ?? 0), 1);
  const failed = runs.filter((run) => familyOf(run.state) === "bad").length;
  return html`<div class="spark" role="img" aria-label=${`${label}: ${failed} of the last ${runs.length} runs failed`}>${[...runs].reverse().map((run) => {
    const part = Math.max(0.18, Math.sqrt((run.duration_ms ?? 0) / longest));
    return html`<span class=${`bar of-${familyOf(run.state)}`} style=${{ height: `${Math.round(part * 100)}%` }} title=${`${wordOf(run.state)}${run.duration_ms === null ? "" : `, ${span(run.duration_ms)}`}`}></span>`;
  })}</div>`;
}

/**
 * How much of something is taken.
 * @param {{used: number, of: number, label: string, parts?: number[]}} props `parts`: what each holder has
 */
export function Meter({ used, of, label, parts = used > 0 ? [used] : [] }) {
  const whole = Math.max(of, used, 1);
  return html`<div class="meter" role="img" aria-label=${`${label}: ${used} of ${of}`}>${parts.map((part) => html`<span class=${`part ${used > of ? "over" : ""}`} style=${{ width: `${(part / whole) * 100}%` }}></span>`)}</div>`;
}
