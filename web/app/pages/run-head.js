// The head of a run's page: which it is, how it stands, what began it, and what can be done with it.
import { html } from "../lib/dom.js";
import { asCli, copy } from "../lib/clip.js";
import { shortId } from "../lib/format.js";
import { to } from "../lib/route.js";
import { attemptsOf, deedsFor } from "../lib/run.js";
import { dueAt, tookMs, triggerOf } from "../lib/runs.js";
import { span, whole } from "../lib/time.js";
import { AskButton, ask } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Menu } from "../ui/menu.js";
import { CopyButton } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { daemonNow, Time } from "../ui/time.js";
import { say } from "../ui/toast.js";
import { logAddress } from "./run-log.js";
import { wishes } from "./run-actions.js";
import { zoneOf } from "./runs-names.js";

/** @param {{run: any}} props */
export function Began({ run }) {
  const { words, by } = triggerOf(run);
  const due = dueAt(run);
  const zone = zoneOf(run.job);
  return html`<span>${words}${run.rerun_of && html` of <a class="mono" href=${to.run(run.rerun_of)} title=${run.rerun_of}>${shortId(run.rerun_of)}</a>`}${by && html` by ${by}`}${due && html`, due <${Time} at=${due} ofJob=${zone} />`}</span>`;
}

/** How long it took or has taken; only this ticks. @param {{run: any}} props */
function Took({ run }) {
  const ended = Boolean(run.ended_at);
  const ms = tookMs(run, ended ? 0 : daemonNow());
  if (ms === undefined) return null;
  return html`<span>${ended ? "took" : "for"} <strong>${ended ? span(ms) : whole(ms)}</strong></span>`;
}

/** @param {{run: any, isGraph: boolean, state: string, etag?: string, listHref: string}} props */
export function Head({ run, isGraph, state, etag, listHref }) {
  const home = isGraph ? to.workflow(run.job) : to.job(run.job);
  const can = deedsFor(run, state);
  const newest = attemptsOf(run)[0];
  const zone = zoneOf(run.job);
  const cli = asCli(["run", "show", run.id], location.origin);
  const items = [
    ...(can.cancelRetries ? [{ title: "Cancel the job’s retries…", icon: "stop", danger: true, run: () => ask(wishes.cancelRetries(run)) }] : []),
    ...(can.rerun ? [] : [{ title: "Run it again beside this one…", icon: "play", run: () => ask(wishes.rerun(run)) }]),
    run.pinned ? { title: "Keep it no longer…", icon: "cross", run: () => ask(wishes.unpin(run)) } : { title: "Keep this run…", icon: "check", run: () => ask(wishes.pin(run)) },
    ...(isGraph ? [] : [{ title: "Pause the job…", icon: "pause", run: () => ask(wishes.pauseJob(run)) }]),
    ...(newest ? [{ title: `Download log ${newest.number}`, icon: "down", href: `${logAddress(run, newest)}&download=text`, download: true }] : []),
    { title: "Copy as CLI", icon: "copy", run: () => copy(cli).then(() => say("Copied"), () => say("The browser did not allow copying")) },
    { title: isGraph ? "Open the workflow" : "Open the job", icon: isGraph ? "graph" : "calendar", href: home },
  ];
  return html`<header class="run-head">
    <nav class="crumb small" aria-label="Where this is"><a href=${listHref}>Runs</a><span class="quiet" aria-hidden="true">/</span><a href=${home}>${run.job}</a></nav>
    <div class="page-head"><h1>${run.job}</h1><${State} of=${state} chip=${true} />
      <span class="run-id"><code title=${run.id}>${run.id}</code><${CopyButton} text=${run.id} label="Copy" /></span>
      <div class="actions">
        ${can.retry && html`<${AskButton} wish=${() => wishes.retry(run, etag)}><${Icon} of="again" />Retry now<//>`}
        ${can.rerun && html`<${AskButton} wish=${() => wishes.rerun(run)}><${Icon} of="again" />Run again<//>`}
        ${can.cancel && html`<${AskButton} className="danger" wish=${() => wishes.cancel(run, etag)}><${Icon} of="stop" />Cancel<//>`}
        <${Menu} label="More" items=${items} />
      </div>
    </div>
    <p class="run-facts">
      <${Began} run=${run} />
      ${run.started_at ? html`<span>started <${Time} at=${run.started_at} ofJob=${zone} /></span>` : html`<span>made <${Time} at=${run.created_at} ofJob=${zone} /></span>`}
      <${Took} run=${run} />
      ${newest && newest.number > 1 && html`<span>attempt <strong>${newest.number}</strong></span>`}
      ${newest && html`<span>on ${newest.node}</span>`}
      ${run.pinned && html`<span class="tag" title=${`By ${run.pinned.by} since ${run.pinned.since}${run.pinned.reason ? `: ${run.pinned.reason}` : ""}`}>kept</span>`}
      ${run.should_continue_as_new && html`<span class="tag" title="Its history is so long that it should end and go on as another run">long history</span>`}
    </p>
  </header>`;
}
