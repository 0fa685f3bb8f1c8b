// The rules a job lives by, as the configuration has them.
import { html } from "../lib/dom.js";
import { commandText, plural } from "../lib/format.js";
import { overlap } from "../lib/jobs.js";
import { to } from "../lib/route.js";
import { span } from "../lib/time.js";
import { Card, CopyButton, Facts } from "../ui/parts.js";

const MISSED = {
  skip: "Fires missed while no daemon was there are skipped.",
  "run-once": "Of fires missed while no daemon was there, the newest is run.",
  "run-all": "Fires missed while no daemon was there are all run, oldest first.",
};
const FAILS = { nonzeroReturn: "its exit code is not 0", producesStdout: "it writes to standard output", producesStderr: "it writes to standard error", always: "it ends" };

const time = (ms) => (ms === null || ms === undefined ? undefined : span(ms));
const names = (list) => (list?.length > 0 ? html`<span class="row wrap">${list.map((name) => html`<code class="tag" key=${name}>${name}</code>`)}</span>` : undefined);

function retries({ max, initial_delay_ms: first, maximum_delay_ms: longest, multiplier }) {
  if (max === 0) return "None: a failed attempt is the end of the run.";
  const count = max === null || max === undefined ? "Without end" : `${plural(max, "more attempt")} at most`;
  return `${count}: the first after ${span(first)}, ${multiplier === 1 ? "all alike" : `each delay ${multiplier} times the one before`}, never longer than ${span(longest)}.`;
}

const Group = ({ title, of }) => html`<h3 class="small soft">${title}</h3><${Facts} of=${of} />`;

/** @param {{job: any}} props */
export function Policy({ job }) {
  const { policy, pool } = job;
  const { sla } = policy;
  const command = commandText(job.command);
  const watches = [sla.max_time_since_success_ms, sla.late_after_ms, sla.max_runtime_ms].some((ms) => ms !== null && ms !== undefined);
  return html`<${Card} title="How it runs" className="policy" more=${policy.origin && html`<span class="quiet">defined in <code>${policy.origin}</code></span>`}>
    <div class="stack wide">
      <div class="stack"><div class="row apart"><h3 class="small soft">Command</h3><${CopyButton} text=${command} /></div><pre class="command-text" tabindex="0" aria-label="Command">${command}</pre></div>
      <${Facts} of=${[
        ["Fails when", policy.fails_when.map((word) => FAILS[word] ?? word).join(", or ") || "never"],
        ["Verified", policy.verify ? "a second command must agree before a run is a success" : undefined],
        ["Retries", retries(policy.retries)],
        ["Time limit", policy.execution_timeout_ms == null ? "none" : `${span(policy.execution_timeout_ms)}, then SIGTERM; SIGKILL ${span(policy.kill_timeout_ms)} later`],
        ["Overlap", overlap(job)],
        ["Missed fires", `${MISSED[policy.on_missed] ?? policy.on_missed}${policy.starting_deadline_ms == null ? "" : ` Not those more than ${span(policy.starting_deadline_ms)} late.`}`],
        ["After a failure", policy.only_if_last_succeeded ? "fires are skipped until a run succeeds (onlyIfLastSucceeded)" : undefined],
        ["Daemons", policy.every_node ? "each of them fires it" : undefined],
        ["Slot pool", pool ? html`<a href=${to.slots(pool.name)}>${pool.name}</a>: ${plural(pool.slots, "slot")}, priority ${pool.priority}, waits at most ${time(policy.queue_timeout_ms)}` : "none: it never waits for slots"],
      ]} />
      ${watches && html`<${Group} title="It is late when" of=${[
        ["No success for", time(sla.max_time_since_success_ms)],
        ["Begins late by", time(sla.late_after_ms)],
        ["Runs longer than", time(sla.max_runtime_ms)],
      ]} />`}
      <${Group} title="Surroundings" of=${[
        ["Shell", Array.isArray(job.command) ? undefined : html`<code>${policy.shell}</code>`],
        ["Folder", policy.working_dir ? html`<code>${policy.working_dir}</code>` : undefined],
        ["User", policy.user ? `${policy.user}${policy.group ? `, group ${policy.group}` : ""}` : "that of the daemon"],
        ["Variables", names(policy.environment)],
        ["Variables from", policy.env_file ? html`<code>${policy.env_file}</code>` : undefined],
        ["Secrets", names(policy.secrets)],
        ["Reports", names(policy.reports)],
      ]} />
    </div>
  <//>`;
}
