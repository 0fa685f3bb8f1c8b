// One open checkpoint: what is asked, of which run, since when and until when; approved, rejected, or resumed with a value.
import { html, useState } from "../lib/dom.js";
import { instant, shortId } from "../lib/format.js";
import { to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { relative, whole } from "../lib/time.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Json } from "../ui/json.js";
import { Loaded } from "../ui/parts.js";
import { daemonNow, Time } from "../ui/time.js";

const SOON_MS = 3_600_000;
const Age = ({ at }) => html`<span class="nowrap">${whole(Math.max(0, daemonNow() - at))}</span>`;
const Until = ({ at }) => html`<strong class=${at - daemonNow() < SOON_MS ? "bad nowrap" : "nowrap"}>${relative(at, daemonNow())}</strong>`;
const opens = (point) => ({ link: { href: to.run(point.run, "graph"), text: "Open the run" } });
const pathOf = (point, verb) => `/api/checkpoints/${encodeURIComponent(point.id)}:${verb}`;
const Where = ({ of: point }) => html`The step <strong>${point.title ?? point.step}</strong> of the run <code>${shortId(point.run)}</code> of <strong>${point.workflow}</strong>`;

/** @param {any} point @param {"approve" | "reject"} verb @returns {import("../ui/dialog.js").Wish} */
const decision = (point, verb) => ({
  title: `${verb === "approve" ? "Approve" : "Reject"} ${point.title ?? point.step}`,
  will: html`<p><${Where} of=${point} /> ${verb === "approve" ? "succeeds, and the run goes on." : "fails, or is skipped where its definition says so."}</p>`,
  verb: verb === "approve" ? "Approve" : "Reject",
  danger: verb === "reject",
  fields: [{ name: "note", label: "Why", hint: "Kept with the decision, for whoever asks later.", required: verb === "reject" }],
  request: ({ note }) => ({ method: "POST", path: pathOf(point, verb), body: note ? { note } : {} }),
  cli: ({ note }) => ["run", verb, point.run, point.step, ...(note ? ["--reason", note] : [])],
  done: () => [`${point.title ?? point.step} is ${verb === "approve" ? "approved" : "rejected"}`, opens(point)],
});

/** What was typed as JSON, else as a text. @param {string} text */
function valueOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @param {any} point @returns {import("../ui/dialog.js").Wish} */
const resumption = (point) => ({
  title: `Resume ${point.title ?? point.step}`,
  will: html`<p><${Where} of=${point} /> succeeds with this value as its output, and the run goes on.</p>${point.schema && html`<details><summary class="small soft">What it takes</summary><${Json} value=${point.schema} label="Schema of the answer" /></details>`}`,
  verb: "Resume",
  fields: [{ name: "value", label: "Value", hint: "JSON; anything else is taken as a text. Empty is null." }],
  request: ({ value }) => ({ method: "POST", path: pathOf(point, "resume"), body: value ? { value: valueOf(value) } : {} }),
  done: () => [`${point.title ?? point.step} is resumed`, opens(point)],
});

/** What can be done with it. @param {{of: any}} props */
export const Decide = ({ of: point }) => (point.kind === "approval"
  ? html`<${AskButton} className="danger" wish=${() => decision(point, "reject")}><${Icon} of="stop" />Reject<//><${AskButton} className="main" wish=${() => decision(point, "approve")}><${Icon} of="check" />Approve<//>`
  : html`<${AskButton} className="main" wish=${() => resumption(point)}><${Icon} of="play" />Resume<//>`);

/** The input of its run, read when it is wanted. @param {{run: string}} props */
function Context({ run }) {
  const [open, setOpen] = useState(false);
  const query = useQuery(open ? `/api/runs/${encodeURIComponent(run)}/values` : null, {});
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}><summary class="small soft">Input of the run</summary>${open && html`<${Loaded} query=${query} lines=${2}>${(values) => html`<${Json} value=${values.input} label="Input of the run" />`}<//>`}</details>`;
}

/** @param {{of: any}} props */
export function Checkpoint({ of: point }) {
  const since = instant(point.since);
  const until = instant(point.until);
  return html`<article class="card checkpoint" aria-label=${point.step}>
    <header><${Icon} of=${point.kind === "approval" ? "person" : "flag"} /><h2>${point.title ?? point.step}</h2><span class="small soft">in <a href=${`${to.run(point.run, "graph")}&step=${encodeURIComponent(point.step)}`}>${point.workflow} <code>${shortId(point.run)}</code></a></span>
      <div class="more row wrap"><${Decide} of=${point} /></div></header>
    <div class="body stack">
      <ul class="why-facts">
        ${since !== undefined && html`<li><span class="quiet">Waits for</span> <${Age} at=${since} /> <span class="quiet">since <${Time} at=${since} /></span></li>`}
        ${until === undefined ? html`<li class="quiet">No deadline</li>` : html`<li><span class="quiet">Fails</span> <${Until} at=${until} /> <span class="quiet">at <${Time} at=${until} /></span></li>`}
      </ul>
      <${Context} run=${point.run} />
    </div></article>`;
}
