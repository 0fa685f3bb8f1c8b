// The attempts of a run and the reports about it, as tables.
import { html } from "../lib/dom.js";
import { bytes, plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { attemptsOf, stepName } from "../lib/run.js";
import { Card } from "../ui/parts.js";
import { Icon } from "../ui/icons.js";
import { State } from "../ui/state.js";
import { Span, Time } from "../ui/time.js";
import { Told } from "../ui/told.js";
import { logTab } from "./run-log.js";
import { zoneOf } from "./runs-names.js";

const cell = (label, content, className = "") => html`<td data-label=${label} class=${className}>${content}</td>`;
const none = html`<span class="quiet">—</span>`;

/** Rows of the table; more are in the steps' own places. */
const ROWS_MAX = 50;

/** @param {{run: any, graph?: any}} props */
export function Attempts({ run, graph }) {
  const attempts = attemptsOf(run);
  const zone = zoneOf(run.job);
  if (attempts.length === 0 && run.more_steps) return html`<${Card} title="Attempts"><p class="quiet">There are too many steps to list their attempts here; <a href=${to.run(run.id, "graph")}>the list of steps</a> leads to each.</p><//>`;
  if (attempts.length === 0) return html`<${Card} title="Attempts"><p class="quiet">None yet${run.ended_at ? ": it ended before its command began" : ""}.</p><//>`;
  const titles = new Map((graph?.nodes ?? []).map((node) => [node.ref, node.title]));
  const shown = attempts.slice(0, ROWS_MAX);
  const remote = shown.some((each) => each.worker);
  const heads = [...(graph ? ["Step"] : []), "Attempt", "Outcome", "Reason", "Exit code", "Start", "Duration", "Node", ...(remote ? ["Worker"] : []), "Pid", "Log"];
  const count = attempts.length > ROWS_MAX || run.more_steps ? `the newest ${shown.length}${run.more_steps ? "" : ` of ${attempts.length} attempts`}` : `${plural(attempts.length, "attempt")}, newest first`;
  return html`<${Card} title="Attempts" flush=${true} more=${html`<span class="quiet">${count}</span>`}>
    <div class="scroll-x"><table class="list as-cards"><thead><tr>${heads.map((title) => html`<th key=${title} scope="col" class=${/Exit|Pid/.test(title) ? "number" : ""}>${title}</th>`)}</tr></thead>
    <tbody>${shown.map((each) => html`<tr key=${`${each.step}-${each.number}-${each.fence}`}>
      ${graph && cell("Step", html`<a class="plain" href=${`${to.run(run.id, "graph")}&step=${encodeURIComponent(each.step)}`}>${stepName(each.step, titles.get(each.step.split("#")[0]))}</a>`, "lead")}
      ${cell("Attempt", html`<strong>${each.number}</strong>`)}
      ${cell("Outcome", html`<${State} of=${each.outcome} />`)}
      ${cell("Reason", each.reason ? html`<${Told} text=${each.reason} ofJob=${zone} />` : none, "c-reason")}
      ${cell("Exit code", each.exit_code ?? none, "number")}
      ${cell("Start", html`<${Time} at=${each.started_at} ofJob=${zone} />`)}
      ${cell("Duration", html`<${Span} from=${each.started_at} to=${each.ended_at ?? undefined} />`)}
      ${cell("Node", each.node, "nowrap")}
      ${remote && cell("Worker", each.worker ?? none)}
      ${cell("Pid", each.pid ?? none, "number")}
      ${cell("Log", graph && !each.pid && !each.log_bytes ? none : html`<a class="nowrap log-link" href=${logTab(run, each.number, each.step)}><${Icon} of="log" />${each.live ? "follow" : each.log_bytes > 0 ? bytes(each.log_bytes) : "empty"}</a>`)}
    </tr>`)}</tbody></table></div>
  <//>`;
}

const ON_WORDS = { onFailure: "an attempt failed", onPermanentFailure: "the run failed", onSuccess: "the run succeeded", onLate: "the job is late" };

/** @param {{run: any}} props */
export function Reports({ run }) {
  if (run.reports.length === 0) return null;
  return html`<${Card} title="Reports" flush=${true} more=${html`<span class="quiet">who was told</span>`}>
    <div class="scroll-x"><table class="list as-cards"><thead><tr>${["State", "Because", "By", "Tries", "When", "Why not"].map((title) => html`<th key=${title} scope="col" class=${title === "Tries" ? "number" : ""}>${title}</th>`)}</tr></thead>
    <tbody>${run.reports.map((each) => html`<tr key=${each.id}>
      ${cell("State", html`<${State} of=${each.state} />`)}
      ${cell("Because", html`<span title=${each.on}>${ON_WORDS[each.on] ?? each.on}${each.attempt ? html` <span class="quiet">(attempt ${each.attempt})</span>` : ""}</span>`)}
      ${cell("By", each.target)}
      ${cell("Tries", each.tries, "number")}
      ${cell("When", each.at ? html`<${Time} at=${each.at} />` : each.next_try_at ? html`<span class="quiet">next try</span> <${Time} at=${each.next_try_at} />` : html`<${Time} at=${each.created_at} />`)}
      ${cell("Why not", each.reason ?? none, "c-reason")}
    </tr>`)}</tbody></table></div>
  <//>`;
}
