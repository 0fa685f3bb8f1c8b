// One decision: the way through rules and pools, and for each candidate why it did or did not get the work.
import { html, useState } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { inOrder, inWords, outcomeState, wouldWin } from "../lib/routing.js";
import { useQuery } from "../lib/store.js";
import { Icon } from "../ui/icons.js";
import { Json } from "../ui/json.js";
import { Card, Facts, Loaded, PageHead } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { ShadowOf } from "./routing_shadow.js";

const VERDICTS = { won: ["check", "good", "won"], lost: ["dots", "calm", "eligible, not chosen"], rejected: ["cross", "wait", "not eligible"] };
/** Candidates shown before "show all". */
const SHOWN = 25;

/** @param {{of: import("../lib/routing.js").Candidate}} props */
function Candidate({ of: candidate }) {
  const [icon, family, word] = VERDICTS[candidate.verdict] ?? ["dots", "calm", candidate.verdict];
  return html`<li class=${`candidate of-${family}`}><span class=${`state of-${family}`}><${Icon} of=${icon} /><span class="unseen">${word}: </span></span>
    <div class="grow"><strong>${candidate.recipient}</strong> <span class="soft">${candidate.verdict === "won" ? "got the work" : inWords(candidate.reason)}</span>
      ${candidate.also?.length ? html`<span class="tiny quiet"> and ${candidate.also.map(inWords).join("; ")}</span>` : ""}</div>
    <span class="tiny quiet nowrap">${candidate.reason?.code ?? ""}</span></li>`;
}

/** @param {{candidates: import("../lib/routing.js").Candidate[]}} props */
function Candidates({ candidates }) {
  const [all, setAll] = useState(false);
  const rows = inOrder(candidates);
  return html`<ul class="candidates">${(all ? rows : rows.slice(0, SHOWN)).map((each) => html`<${Candidate} key=${each.recipient_id ?? each.recipient} of=${each} />`)}</ul>
    ${!all && rows.length > SHOWN && html`<button type="button" class="button" onClick=${() => setAll(true)}>Show all ${rows.length}</button>`}`;
}

/** The way: rules asked, pools entered, stages gone through. @param {{of: any}} props */
const Way = ({ of: explanation }) => html`<ol class="way">
  ${(explanation.rules ?? []).map((rule) => html`<li><span class=${`state of-${rule.result ? "good" : "calm"}`}><${Icon} of=${rule.result ? "check" : "cross"} /></span> rule <strong>${rule.rule}</strong> <span class="soft breaks">${rule.because ?? ""}</span>${rule.pool ? html` → ${rule.pool}` : ""}</li>`)}
  ${(explanation.hops ?? []).map((hop) => html`<li><${Icon} of="next" /> ${hop.depth > 0 ? "then " : ""}<strong>${hop.pool}</strong>: ${hop.eligible} of ${plural(hop.considered, "recipient")} eligible</li>`)}
  ${(explanation.stages ?? []).map((stage) => html`<li class="soft"><span class="tag">${stage.kind}</span> ${stage.strategy ?? stage.trait ?? stage.by ?? ""} ${stage.in} → ${stage.out}</li>`)}
</ol>`;

/** What a decision says; a trial has the same shape. @param {{decision: any}} props */
export function Explained({ decision }) {
  const explanation = decision.explanation ?? {};
  return html`<div class="stack">
    <p class="verdict"><${State} of=${outcomeState(decision.outcome)} word=${decision.outcome.replaceAll("_", " ")} chip /> ${decision.summary}</p>
    ${explanation.nearest_miss && html`<p class="small soft">Closest: <strong>${explanation.nearest_miss.recipient}</strong>, which ${wouldWin(explanation.nearest_miss.would_win_if)}.</p>`}
    <div class="grid">
      <${Card} title="Who was considered"><${Candidates} candidates=${explanation.candidates ?? []} />${(explanation.candidates ?? []).length === 0 && html`<p class="small quiet">Nobody was looked at.</p>`}<//>
      <${Card} title="The way"><${Way} of=${explanation} /><//>
    </div></div>`;
}

/** @param {{id: string}} props */
export function Decision({ id }) {
  const query = useQuery(`/api/decisions/${encodeURIComponent(id)}`, { topics: [] });
  return html`<${PageHead} title=${html`<a class="plain trail" href=${to.routing()}>Routing</a> <span class="trail">/</span> Decision`} />
    <${Loaded} query=${query} lines=${8}>${(decision) => html`<div class="stack wide">
      <${Explained} decision=${decision} />
      ${decision.shadow?.length > 0 && html`<${ShadowOf} shadow=${decision.shadow} />`}
      <${Card} title="Facts"><${Facts} of=${[
        ["Decision", html`<code>${decision.id}</code>`],
        ["Work", html`<code>${decision.work_id}</code>`],
        ["At", html`<${Time} at=${decision.at} />`],
        ["Pool", decision.pool && html`<a href=${to.routing(decision.pool.id)}>${decision.pool.name}</a> at version ${decision.pool.record_version}`],
        ["Deadline", decision.winners?.[0]?.deadline_at && html`<${Time} at=${decision.winners[0].deadline_at} />`],
        ["Took", decision.duration_micros === undefined ? undefined : `${decision.duration_micros} µs`],
        ["Snapshot", decision.snapshot && html`<code class="breaks">${decision.snapshot}</code>`],
      ]} /><details class="raw"><summary class="small soft">All of it</summary><${Json} value=${decision} label="Decision" /></details><//>
    </div>`}<//>`;
}
