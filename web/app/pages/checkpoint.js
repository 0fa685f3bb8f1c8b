// One open checkpoint: what is asked, of which run, since when and until when; approve, reject, or resume with a value.
import { html } from "../lib/dom.js";
import { instant, shortId } from "../lib/format.js";
import { to } from "../lib/route.js";
import { relative, whole } from "../lib/time.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Json } from "../ui/json.js";
import { daemonNow, Time } from "../ui/time.js";

const Age = ({ at }) => html`<span class="nowrap">${whole(Math.max(0, daemonNow() - at))}</span>`;
const Until = ({ at }) => html`<strong class=${at - daemonNow() < 3_600_000 ? "bad nowrap" : "nowrap"}>${relative(at, daemonNow())}</strong>`;

/** @param {any} point @param {"approve" | "reject"} verb @returns {import("../ui/dialog.js").Wish} */
export const decide = (point, verb) => ({
  title: `${verb === "approve" ? "Approve" : "Reject"} ${point.title || point.step}`,
  will: verb === "approve"
    ? html`<p>The step <strong>${point.title || point.step}</strong> of the run <code>${shortId(point.run_id)}</code> of <strong>${point.workflow}</strong> succeeds, and the run goes on.</p>`
    : html`<p>The step <strong>${point.title || point.step}</strong> of the run <code>${shortId(point.run_id)}</code> of <strong>${point.workflow}</strong> ${point.on_reject === "skip" ? "is skipped, and the run goes on without it" : "fails"}.</p>`,
  verb: verb === "approve" ? "Approve" : "Reject",
  danger: verb === "reject",
  fields: [{ name: "note", label: "Why", hint: "Kept with the decision, for whoever asks later.", required: verb === "reject" }],
  request: ({ note }) => ({ method: "POST", path: `/api/checkpoints/${encodeURIComponent(point.id)}:${verb}`, body: note ? { note } : {} }),
  cli: ({ note }) => ["run", verb, point.run_id, point.step, ...(note ? ["--reason", note] : [])],
  done: () => [`${point.title || point.step} is ${verb === "approve" ? "approved" : "rejected"}`, { link: { href: to.run(point.run_id, "graph"), text: "Open the run" } }],
});

/** @param {{of: any, withRun?: boolean}} props */
export function Checkpoint({ of: point, withRun }) {
  const since = instant(point.created_at ?? point.since);
  const deadline = instant(point.deadline);
  return html`<article class="card checkpoint" aria-label=${point.title || point.step}>
    <header><${Icon} of=${point.kind === "approval" ? "person" : "flag"} /><h2>${point.title || point.step}</h2>${withRun && html`<span class="small soft">in <a href=${to.run(point.run_id, "graph")}>${point.workflow} <code>${shortId(point.run_id)}</code></a></span>`}
      <div class="more row wrap"><${AskButton} className="danger" wish=${() => decide(point, "reject")}><${Icon} of="stop" />Reject<//><${AskButton} className="main" wish=${() => decide(point, "approve")}><${Icon} of="check" />Approve<//></div></header>
    <div class="body stack">
      <ul class="why-facts">
        ${since !== undefined && html`<li><span class="quiet">Waits for</span> <${Age} at=${since} /> <span class="quiet">since <${Time} at=${since} /></span></li>`}
        ${deadline === undefined ? html`<li class="quiet">No deadline</li>` : html`<li><span class="quiet">Given up</span> <${Until} at=${deadline} /> <span class="quiet">at <${Time} at=${deadline} /></span></li>`}
        ${point.approvers?.length > 0 && html`<li><span class="quiet">May decide</span> ${point.approvers.join(", ")}</li>`}
      </ul>
      ${point.context !== undefined && point.context !== null && html`<details open=${withRun}><summary class="small soft">Context</summary><${Json} value=${point.context} label="Context" /></details>`}
    </div></article>`;
}
