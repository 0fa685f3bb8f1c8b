// First steps: three commands, until the first run was made.
import { html } from "../lib/dom.js";
import { asCli } from "../lib/clip.js";
import { useQuery } from "../lib/store.js";
import { Card, Command } from "../ui/parts.js";
import { startJob } from "../ui/acts.js";
import { AskButton } from "../ui/dialog.js";

const SNIPPET = `jobs:
  - name: hello
    command: echo hello
    schedule: "*/5 * * * *"`;

/** @param {{fires: any[]}} props */
export function FirstSteps({ fires }) {
  const jobs = useQuery("/api/jobs?pagination.page_size=20", { topics: ["jobs", "config"] });
  const names = (jobs.data ?? []).filter((job) => job.enabled !== false).map((job) => job.name);
  const name = fires[0]?.job ?? names[0];
  const cli = (...words) => asCli(words, location.origin);
  if (jobs.data && !name) {
    return html`<${Card} title="First steps" className="first"><ol class="first-steps">
      <li><p>Write a job into your configuration.</p><${Command} text=${SNIPPET} /></li>
      <li><p>Put it in force.</p><${Command} text=${cli("config", "reload")} /></li>
      <li><p>Start it and watch what it prints.</p><${Command} text=${cli("job", "start", "hello", "--follow")} /></li>
    </ol><//>`;
  }
  const job = name ?? "NAME";
  return html`<${Card} title="First steps" className="first" more=${name && html`<${AskButton} className="main" wish=${() => startJob(name)}>Start ${name}<//>`}><ol class="first-steps">
    <li><p>Start a job by hand.</p><${Command} text=${cli("job", "start", job)} /></li>
    <li><p>See what runs, what waits and what comes next.</p><${Command} text=${cli("status")} /></li>
    <li><p>Edit the configuration, then put it in force.</p><${Command} text=${cli("config", "reload")} /></li>
  </ol><//>`;
}
