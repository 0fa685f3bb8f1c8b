// Which page an address names.
import { html, useEffect } from "../lib/dom.js";
import { place, to } from "../lib/route.js";
import { Nothing, PageHead } from "../ui/parts.js";
import { Api } from "./api.js";
import { Approvals } from "./approvals.js";
import { Home } from "./home.js";
import { Job } from "./job.js";
import { Jobs } from "./jobs.js";
import { Routing } from "./routing.js";
import { Run } from "./run.js";
import { Runs } from "./runs.js";
import { Settings } from "./settings.js";
import { Slots } from "./slots.js";
import { Workflow } from "./workflow.js";
import { Workflows } from "./workflows.js";

const PAGES = {
  home: { title: "Home", show: () => html`<${Home} />` },
  runs: { title: "Runs", show: (id) => (id ? html`<${Run} key=${id} id=${id} />` : html`<${Runs} />`) },
  workflows: { title: "Workflows", show: (id) => (id ? html`<${Workflow} key=${id} slug=${id} />` : html`<${Workflows} />`) },
  jobs: { title: "Jobs and schedules", show: (id) => (id ? html`<${Job} key=${id} id=${id} />` : html`<${Jobs} />`) },
  slots: { title: "Resource pools", show: (id) => html`<${Slots} name=${id} />` },
  routing: { title: "Routing", show: (id) => html`<${Routing} id=${id} />` },
  approvals: { title: "Approvals", show: () => html`<${Approvals} />` },
  settings: { title: "Settings", show: () => html`<${Settings} />` },
  api: { title: "API", show: () => html`<${Api} />` },
};

const Missing = ({ page }) => html`<${PageHead} title="Not found" /><div class="card"><${Nothing} title=${`There is no page called ‘${page}’.`}><a class="button" href=${to.home()}>Home</a><//></div>`;

export function Page() {
  const { page, id, rest } = place.value;
  const known = PAGES[page];
  useEffect(() => {
    document.title = `${id ?? known?.title ?? "Not found"} · ductor`;
  }, [page, id]);
  return known ? known.show(id, rest) : html`<${Missing} page=${page} />`;
}
