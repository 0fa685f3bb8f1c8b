// One job: what it is, what it does next, how it went, what became of each fire and why.
import { html } from "../lib/dom.js";
import { isRetrying } from "../lib/jobs.js";
import { param, setParams, to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Loaded, PageHead, Panel, Tabs } from "../ui/parts.js";
import { cancelWish, pauseWish, resumeWish, retriesWish, startWish } from "./job-actions.js";
import { Fires } from "./job-fires.js";
import { Glance } from "./job-glance.js";
import { Missing } from "./job-missing.js";
import { Overview } from "./job-overview.js";
import { JobStates } from "./job-parts.js";
import { JobRuns } from "./job-runs.js";
import { Why } from "./job-why.js";

const TABS = [
  { key: "overview", title: "Overview" },
  { key: "fires", title: "Fires" },
  { key: "runs", title: "Runs" },
  { key: "why", title: "Why?" },
];
const SHOWN = { overview: Overview, fires: Fires, runs: JobRuns, why: Why };

const Actions = ({ job }) => html`
  <${AskButton} className="main" wish=${() => startWish(job)} disabled=${!job.enabled} title=${job.enabled ? undefined : "The job is disabled in the configuration"}><${Icon} of="play" />Start<//>
  ${job.paused
    ? html`<${AskButton} wish=${() => resumeWish(job)}><${Icon} of="again" />Resume<//>`
    : html`<${AskButton} wish=${() => pauseWish(job)} disabled=${!job.enabled}><${Icon} of="pause" />Pause<//>`}
  ${(job.policy.retries.max !== 0 || isRetrying(job)) && html`<${AskButton} wish=${() => retriesWish(job)}>Cancel retries<//>`}
  <${AskButton} className="danger" wish=${() => cancelWish(job)}>Cancel all instances<//>`;

/** Names that the configuration does not know: only a new configuration changes that. */
const unknown = new Set();

/** @param {{id: string}} props */
export function Job({ id }) {
  const query = useQuery(`/api/jobs/${encodeURIComponent(id)}`, { topics: ["jobs", "runs", "slots", "config"], every: 30_000, touches: ({ topic }) => !unknown.has(id) || topic?.startsWith("config") === true });
  if (query.error?.status === 404) unknown.add(id);
  else unknown.delete(id);
  const asked = param("tab");
  const tab = asked in SHOWN ? asked : "overview";
  // What was asked on one tab means nothing on another one.
  const onPick = (key) => setParams({ tab: key === "overview" ? "" : key, at: "", outcome: "", state: "" });
  if (query.error?.status === 404) return html`<${Missing} name=${id} error=${query.error} />`;
  const job = query.data;
  return html`<nav class="crumbs small" aria-label="Where this is"><a href=${to.jobs()}>Jobs and schedules</a></nav>
    <${PageHead} title=${id} beside=${job && html`<${JobStates} job=${job} />`}>${job && html`<${Actions} job=${job} />`}<//>
    <${Loaded} query=${query}>${(found) => html`
      <${Glance} job=${found} />
      <${Tabs} tabs=${TABS} at=${tab} onPick=${onPick} label=${`Job ${id}`} />
      <${Panel} of=${tab}><${SHOWN[tab]} job=${found} /><//>`}<//>`;
}
