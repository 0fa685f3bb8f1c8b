// Settings: nodes, configuration, keys, the audit, disk and store, health, and what this is.
import { html } from "../lib/dom.js";
import { param, setParams } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { PageHead, Panel, Tabs } from "../ui/parts.js";
import { About } from "./settings_about.js";
import { Audit } from "./settings_audit.js";
import { Configuration } from "./settings_config.js";
import { Disk } from "./settings_disk.js";
import { Health } from "./settings_health.js";
import { Keys } from "./settings_keys.js";
import { Nodes } from "./settings_nodes.js";

const TABS = [
  { key: "nodes", title: "Nodes", show: Nodes },
  { key: "configuration", title: "Configuration", show: Configuration },
  { key: "keys", title: "Keys", show: Keys },
  { key: "audit", title: "Audit", show: Audit },
  { key: "disk", title: "Disk and store", show: Disk },
  { key: "health", title: "Health", show: Health },
  { key: "about", title: "About", show: About },
];

export function Settings() {
  const status = useQuery("/api/status", { topics: ["runs", "slots", "jobs", "nodes", "config"], every: 15_000 });
  const tab = TABS.find(({ key }) => key === param("tab")) ?? TABS[0];
  const rejected = status.data?.configuration?.rejected;
  const marks = { configuration: rejected, health: status.data && !status.data.ready };
  const titles = TABS.map(({ key, title }) => ({ key, title: marks[key] ? html`${title} <span class="tab-mark" title="Needs attention">!</span>` : title }));
  return html`<${PageHead} title="Settings" />
    <${Tabs} label="Settings" tabs=${titles} at=${tab.key} onPick=${(key) => setParams({ tab: key === TABS[0].key ? "" : key, find: "", who: "", what: "", thing: "", since: "" })} />
    <${Panel} of=${tab.key}><div class="stack wide settings"><${tab.show} status=${status} /></div><//>`;
}
