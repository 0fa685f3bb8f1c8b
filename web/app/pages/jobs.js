// Jobs and schedules: all jobs with what they do next, the week as a calendar, and a place to try an expression.
import { html } from "../lib/dom.js";
import { param, setParams } from "../lib/route.js";
import { Icon } from "../ui/icons.js";
import { PageHead, Panel, Tabs } from "../ui/parts.js";
import { JobList } from "./jobs-list.js";
import { TryIt } from "./jobs-try.js";
import { Week } from "./jobs-week.js";

const TABS = [
  { key: "list", title: "Jobs" },
  { key: "week", title: "Week" },
  { key: "try", title: "Try an expression" },
];
const SHOWN = { list: JobList, week: Week, try: TryIt };

export function Jobs() {
  const asked = param("tab");
  const tab = asked in SHOWN ? asked : "list";
  const onPick = (key) => setParams({ tab: key === "list" ? "" : key });
  return html`<${PageHead} title="Jobs and schedules">
      <a class="button" href="/api/schedules.ics" download="ductor.ics" title="The next fires of all jobs, for a calendar program"><${Icon} of="calendar" />Calendar file (.ics)</a>
    <//>
    <${Tabs} tabs=${TABS} at=${tab} onPick=${onPick} label="Jobs and schedules" />
    <${Panel} of=${tab}><${SHOWN[tab]} /><//>`;
}
