// Everything that is stored about a run, for whoever looks closely.
import { html } from "../lib/dom.js";
import { to } from "../lib/route.js";
import { attemptsOf } from "../lib/run.js";
import { asCurl } from "../lib/clip.js";
import { Card, Command, Facts } from "../ui/parts.js";
import { wordOf } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { Began } from "./run-head.js";
import { names, zoneOf } from "./runs-names.js";

/** @param {{run: any}} props */
export function Details({ run }) {
  const zone = zoneOf(run.job);
  const time = (at) => at && html`<${Time} at=${at} ofJob=${zone} form="long" />`;
  const pool = run.waiting_reason?.pool ?? names.value.of.get(run.job);
  const path = `/api/runs/${run.id}`;
  return html`<div class="grid run-details">
    <${Card} title="Run"><${Facts} of=${[
      ["Id", html`<code>${run.id}</code>`],
      ["Job", html`<a href=${to.job(run.job)}>${run.job}</a>`],
      ["Definition", `version ${run.version}`],
      ["State", `${wordOf(run.state)}${run.reason ? `: ${run.reason}` : ""}`],
      ["Begun", html`<${Began} run=${run} />`],
      ["Bound to node", run.node],
      ["Made", time(run.created_at)],
      ["Started", time(run.started_at)],
      ["Ended", time(run.ended_at)],
      ["Record version", run.record_version],
      ["Set aside", run.poisoned ? "yes: it cannot be gone on with" : undefined],
    ]} /><//>
    ${run.steps.map((step) => html`<${Card} key=${step.ref} title=${`Step ${step.ref}`}><${Facts} of=${[
      ["State", `${wordOf(step.state)}${step.reason ? `: ${step.reason}` : ""}`],
      ["Attempt", step.attempt],
      ["Lost processes", step.deaths > 0 ? step.deaths : undefined],
      ["Next attempt", time(step.retry_at)],
      ["Queue entry", step.queue_id && html`<code>${step.queue_id}</code>`],
      ["Slot pool", pool && html`<a href=${to.slots(pool)}>${pool}</a>`],
      ["Claimed by", step.live && `${step.live.node}, pid ${step.live.pid ?? "unknown"}`],
      ["Claimed", time(step.live?.claimed_at)],
      ["Lease until", time(step.live?.lease_until)],
      ["Fence", step.live?.fence ?? attemptsOf(run).find((each) => each.step === step.ref)?.fence],
      ["Being ended", step.live?.ending && html`${step.live.ending.cause} by ${step.live.ending.by}, ${time(step.live.ending.at)}`],
    ]} /><//>`)}
    <${Card} title="The same elsewhere" className="span-all"><div class="stack"><${Command} text=${`ductor run show ${run.id}`} /><${Command} text=${`ductor run why ${run.id}`} /><${Command} text=${asCurl({ method: "GET", path }, location.origin)} /></div><//>
  </div>`;
}
