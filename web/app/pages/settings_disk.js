// The state directory and the store: how large, how much is free, what is kept, and whether every row is sound.
import { html, useState } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { asCli } from "../lib/clip.js";
import { bytes, number, plural } from "../lib/format.js";
import { useQuery } from "../lib/store.js";
import { span } from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { Card, Command, Facts, Fault, Loaded, Note } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Backups } from "./settings_backups.js";
import { useChecks } from "./settings_health.js";

function Check() {
  const [state, setState] = useState({ busy: false, result: /** @type {any} */ (undefined), error: undefined, took: 0 });
  const run = async () => {
    setState({ busy: true, result: undefined, error: undefined, took: 0 });
    const began = Date.now();
    try {
      const { body } = await get("/api/store/check");
      setState({ busy: false, result: body, error: undefined, took: Date.now() - began });
    } catch (error) {
      setState({ busy: false, result: undefined, error, took: 0 });
    }
  };
  const { busy, result, error, took } = state;
  return html`<${Card} title="Check of the store" more=${html`<button type="button" class="button" disabled=${busy} onClick=${run}><${Icon} of="search" />${busy ? "Checking…" : result ? "Check again" : "Check now"}</button>`}>
    <div class="stack" aria-live="polite">
      ${error && html`<${Fault} error=${error} again=${run} />`}
      ${result?.clean && html`<${Note} of="good" icon="check">Every row and index is sound: ${plural(result.rows, "row")} read in ${span(took)}.<//>`}
      ${result && !result.clean && html`<${Note} of="bad" icon="cross">${plural(result.findings.length, "finding")}${result.findings.length >= 100 ? " and perhaps more" : ""} in ${plural(result.rows, "row")}.<//>
        <ol class="findings mono small">${result.findings.map((finding) => html`<li key=${finding}>${finding}</li>`)}</ol>`}
      ${!result && !error && html`<p class="soft">Reads every row and computes every index anew, on a snapshot: the daemon goes on working.</p>`}
      ${!result && !error && html`<${Command} text=${asCli(["doctor", "--store"], "http://127.0.0.1:8470")} />`}
    </div>
  <//>`;
}

const length = (ms) => (ms ? span(ms) : "no limit");

function Kept({ config }) {
  const { runs, ageMs, logs } = config.retention;
  return html`<${Facts} of=${[
    ["Runs of each job", html`${number(runs)} newest <code class="quiet tiny">retention.runs</code>`],
    ["Age of runs", html`${length(ageMs)} <code class="quiet tiny">retention.ageMs</code>`],
    ["Age of logs", html`${length(logs?.ageMs)} <code class="quiet tiny">retention.logs.ageMs</code>`],
    ["Size of logs", html`${logs?.bytes ? bytes(logs.bytes) : "no limit"} <code class="quiet tiny">retention.logs.bytes</code>`],
  ]} />`;
}

/** @param {{status: any}} props */
export function Disk({ status }) {
  const config = useQuery("/api/config", { topics: ["config"] });
  const { checks } = useChecks();
  const disk = checks?.find((check) => check.name === "disk");
  const free = Number(/^(\d+) bytes free/.exec(disk?.detail ?? "")?.[1] ?? NaN);
  const low = config.data?.state.lowDiskBytes;
  return html`<div class="grid">
    <${Card} title="State directory"><${Loaded} query=${status}>${(data) => html`<${Facts} of=${[
      ["Directory", html`<code>${config.data?.state.path ?? data.state_directory}</code>`],
      ["Store file", bytes(data.store.file_bytes)],
      ["Shared", data.store.mode === "shared" ? "with other daemons" : html`no <span class="quiet small">alone until another daemon wants in</span>`],
      ["Free space", disk && html`<span class="row wrap">${Number.isNaN(free) ? disk.detail : bytes(free)} <${State} of=${disk.ok ? "good" : "bad"} word=${disk.ok ? "enough" : "too little"} /></span>`],
      ["Limit", low && html`${bytes(low)} <span class="quiet small">with less, no new run begins; what runs goes on</span>`],
    ]} />`}<//><//>
    <${Card} title="Store since the start"><${Loaded} query=${status}>${(data) => html`<${Facts} of=${[
      ["Commits", number(data.store.commits)],
      ["Changes", html`${number(data.store.changes)} <span class="quiet small">${data.store.commits > 0 ? `${(data.store.changes / data.store.commits).toFixed(1)} in a commit` : ""}</span>`],
      ["A commit takes", data.store.commits > 0 && html`${span(data.store.commit_ms / data.store.commits)} <span class="quiet small">on average</span>`],
      ["Waiting changes", number(data.store.waiting)],
      ["Faults", html`<${State} of=${data.store.faults === 0 ? "good" : "bad"} word=${data.store.faults === 0 ? "none" : number(data.store.faults)} />`],
    ]} />`}<//><//>
    <${Card} title="What is kept"><${Loaded} query=${config}>${(data) => html`<${Kept} config=${data} />`}<//><//>
  </div><${Backups} /><${Check} />`;
}
