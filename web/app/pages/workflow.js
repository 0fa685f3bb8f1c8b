// One workflow: its graph and last runs, a form to start it, its document and draft, its versions and what differs.
import { html, useEffect } from "../lib/dom.js";
import { param, setParams, to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { AskButton, ask } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Menu } from "../ui/menu.js";
import { Fault, Note, Nothing, PageHead, Panel, Skeleton, Tabs } from "../ui/parts.js";
import { asCurl, copy } from "../lib/clip.js";
import { isOfConfiguration } from "../lib/workflow.js";
import { say } from "../ui/toast.js";
import { deprecate, publish } from "./workflow-actions.js";
import { Definition } from "./workflow-definition.js";
import { Overview } from "./workflow-overview.js";
import { WorkflowRuns } from "./workflow-runs.js";
import { Start } from "./workflow-start.js";
import { Versions } from "./workflow-versions.js";
import { Standing } from "./workflows.js";

const TABS = [
  { key: "overview", title: "Overview", show: Overview },
  { key: "start", title: "Start", show: Start },
  { key: "definition", title: "Definition", show: Definition },
  { key: "versions", title: "Versions", show: Versions },
  { key: "runs", title: "Runs", show: WorkflowRuns },
];

/** @param {{slug: string}} props */
function Missing({ slug }) {
  return html`<${PageHead} title="No such workflow" /><div class="card"><${Nothing} title=${`There is no workflow ‘${slug}’.`}><a class="button" href=${to.workflows()}>All workflows</a><//></div>`;
}

/** @param {{slug: string}} props */
export function Workflow({ slug }) {
  const query = useQuery(`/api/workflows/${encodeURIComponent(slug)}`, { topics: ["workflows", "config"], touches: (change) => change.id === slug });
  const workflow = query.data;
  useEffect(() => {
    document.title = `${workflow?.title || slug} · ductor`;
  }, [workflow?.title]);
  if (!workflow) {
    if (query.error?.status === 404) return html`<${Missing} slug=${slug} />`;
    return query.error ? html`<div class="card"><div class="body"><${Fault} error=${query.error} again=${query.reload} /></div></div>` : html`<div class="card"><${Skeleton} lines=${8} /></div>`;
  }
  const tab = TABS.find(({ key }) => key === param("tab")) ?? TABS[0];
  const pick = (key) => setParams({ tab: key === "overview" ? "" : key, step: "", from: "", to: "" });
  const curl = asCurl({ method: "GET", path: `/api/workflows/${slug}` }, location.origin);
  const isFixed = isOfConfiguration(workflow);
  const items = [
    ...(isFixed ? [] : [{ title: "Edit the draft", icon: "log", run: () => pick("definition") }]),
    ...(workflow.current_version && !isFixed ? [{ title: `Deprecate version ${workflow.current_version}…`, icon: "off", danger: true, run: () => ask(deprecate(workflow, workflow.current_version)) }] : []),
    { title: "Copy as curl", icon: "copy", run: () => copy(curl).then(() => say("Copied"), () => say("The browser did not allow copying")) },
  ];
  return html`<div class="workflow-page">
    <header class="run-head"><nav class="crumb small" aria-label="Where this is"><a href=${to.workflows()}>Workflows</a></nav>
      <div class="page-head"><h1>${workflow.title || slug}</h1><${Standing} workflow=${workflow} />${workflow.title && workflow.title !== slug && html`<code class="quiet small">${slug}</code>`}
        <div class="actions">
          ${workflow.draft && html`<${AskButton} className=${workflow.current_version ? "" : "main"} wish=${() => publish(workflow)}><${Icon} of="flag" />Publish<//>`}
          ${workflow.current_version && tab.key !== "start" && html`<button type="button" class="button main" onClick=${() => pick("start")}><${Icon} of="play" />Start a run</button>`}
          <${Menu} label="More" items=${items} />
        </div></div>
      ${workflow.document?.description && html`<p class="soft">${workflow.document.description}</p>`}
    </header>
    ${query.error && query.error.code !== "UNREACHABLE" && html`<${Fault} error=${query.error} again=${query.reload} />`}
    ${isFixed && html`<${Note} icon="info">It is a dag of the configuration: change its file and reload, and the next version is in force.<//>`}
    ${!workflow.newest_version && html`<${Note} of="wait" icon="dots">This is a draft that was never published: it cannot run yet.<//>`}
    <${Tabs} tabs=${TABS.map(({ key, title }) => ({ key, title }))} at=${tab.key} onPick=${pick} label="About this workflow" />
    <${Panel} of=${tab.key}><${tab.show} workflow=${workflow} /><//>
  </div>`;
}
