// What left a slot pool lately: finished, expired, cancelled, and why.
import { html, useState } from "../lib/dom.js";
import { shortId } from "../lib/format.js";
import { param, setParams, to } from "../lib/route.js";
import { outcomes, parts } from "../lib/slots.js";
import { Nothing } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Span, Time, zoneWord } from "../ui/time.js";

const STEP = 10;
/** Reasons of the store, said to people. */
const REASONS = {
  "queue timeout": "its deadline passed while it waited",
  "cancelled by operator": "by hand",
  "job removed, disabled, or configuration changed": "its job was changed, disabled or removed",
  "retry superseded": "a newer start took the place of the retry",
  "retry succeeded": "the job succeeded meanwhile",
  "retry cancelled": "its retries were cancelled",
  "task is no longer waiting": "its workflow had ended",
  "launch failed": "the command could not be started",
  "run cancelled": "its run was cancelled",
  "crash limit reached": "its daemon died with it five times",
};

/** @param {{pool: import("../lib/slots.js").Pool}} props */
export function Ended({ pool }) {
  const [shown, setShown] = useState(STEP);
  const { ended } = parts(pool);
  const wanted = param("ended");
  const count = outcomes(ended);
  const rows = ended.filter(({ state }) => !wanted || state === wanted);
  const pick = (state, word, number) => html`<button type="button" class="button tiny" aria-pressed=${wanted === state ? "true" : "false"} onClick=${() => setParams({ ended: state }, { replace: true })}>${word} ${number}</button>`;
  if (ended.length === 0) return html`<${Nothing} title="Nothing has gone through this pool yet." />`;
  return html`
    ${count.expired + count.cancelled > 0 && html`<div class="row wrap pad" role="group" aria-label="Which entries">${pick("", "All", ended.length)}${pick("finished", "Finished", count.finished)}${pick("expired", "Expired", count.expired)}${pick("cancelled", "Cancelled", count.cancelled)}</div>`}
    <div class="scroll-x pool-list"><table class="list as-cards">
    <thead><tr><th scope="col">Job</th><th scope="col">Ended as</th><th scope="col">Run</th><th scope="col" class="number">Slots</th><th scope="col" class="number">Waited</th><th scope="col" class="number">Held</th><th scope="col">At (${zoneWord()})</th></tr></thead>
    <tbody>${rows.slice(0, shown).map((entry) => html`<tr key=${entry.id}>
      <td class="lead"><a class="main-link" href=${to.job(entry.job)}>${entry.job}</a></td>
      <td data-label="Ended as"><span><${State} of=${entry.state} />${entry.reason && html` <span class="soft" title=${entry.reason}>${REASONS[entry.reason] ?? entry.reason}</span>`}</span></td>
      <td data-label="Run"><a href=${to.run(entry.runId)} title=${entry.runId}><code>${shortId(entry.runId)}</code></a></td>
      <td class="number" data-label="Slots">${entry.slots}</td>
      <td class="number" data-label="Waited"><${Span} from=${entry.queuedAt} to=${entry.claim?.claimedAt ?? entry.finishedAt} /></td>
      <td class="number" data-label="Held">${entry.claim ? html`<${Span} from=${entry.claim.claimedAt} to=${entry.finishedAt} />` : html`<span class="quiet">never</span>`}</td>
      <td data-label="At"><${Time} at=${entry.finishedAt} bare /></td>
    </tr>`)}</tbody></table></div>
    <div class="list-foot"><span>${Math.min(shown, rows.length)} of ${rows.length} shown; a pool keeps its newest 100</span>${rows.length > shown && html`<button type="button" class="button" onClick=${() => setShown(shown + STEP * 3)}>Show more</button>`}</div>`;
}
