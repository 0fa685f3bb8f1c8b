// A job's overview: its next fires, its last runs as bars, and the rules it lives by.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { zone } from "../lib/prefs.js";
import { useQuery } from "../lib/store.js";
import { zoneFor } from "../lib/time.js";
import { Card, Loaded } from "../ui/parts.js";
import { RunBars } from "./job-bars.js";
import { NextFires, SHOWN_MAX } from "./job-next.js";
import { Policy } from "./job-policy.js";

function Upcoming({ job }) {
  const own = job.schedule.timezone;
  const chosen = zoneFor(zone.value, own);
  const second = chosen === own ? "UTC" : chosen;
  const path = withQuery(`/api/schedules/${encodeURIComponent(job.name)}/next`, { count: SHOWN_MAX * 2, second_timezone: second });
  const query = useQuery(path, { topics: ["config"], every: 60_000 });
  return html`<${Card} title="Next fires" flush more=${html`<a href=${`/api/schedules.ics?job=${encodeURIComponent(job.name)}`} download=${`${job.name}.ics`}>.ics</a>`}>
    <${Loaded} query=${query}>${(data) => html`<${NextFires} preview=${data} />`}<//><//>`;
}

/** @param {{job: any}} props */
export const Overview = ({ job }) => html`<div class="job-overview">
  <div class="stack wide">
    <${Card} title="Last runs"><${RunBars} job=${job} /><//>
    ${job.schedule && job.enabled && html`<${Upcoming} job=${job} />`}
  </div>
  <${Policy} job=${job} />
</div>`;
