// What holds for every page: it loads, is named, is clean, accessible, narrow enough, and walked by keyboard alone.
import assert from "node:assert/strict";
import { accessible, fitsWidth, openPage, walk } from "./pages.mjs";
import { anEmptyDaemon, theScene } from "./scenes.mjs";

/** Pages by what they show; the address of some holds the id of a run. @type {Record<string, string | ((runs: Record<string, string>) => string)>} */
export const PAGES = {
  home: "/",
  runs: "/ui/runs",
  "failed runs": "/ui/runs?filter=state%3Afailed",
  "a run that succeeded": (runs) => `/ui/runs/${runs["deploy-site"]}`,
  "a run that failed": (runs) => `/ui/runs/${runs["nightly-backup"]}`,
  "a run that runs": (runs) => `/ui/runs/${runs["export-orders"]}`,
  "a run that waits": (runs) => `/ui/runs/${runs["import-prices"]}`,
  "a run in back-off": (runs) => `/ui/runs/${runs["sync-crm"]}`,
  "a run of two attempts": (runs) => `/ui/runs/${runs["fetch-rates"]}`,
  "a run of a workflow": (runs) => `/ui/runs/${runs["monthly-orders"]}?tab=graph&step=each`,
  "the life of a workflow's run": (runs) => `/ui/runs/${runs["monthly-orders"]}`,
  workflows: "/ui/workflows",
  "a new workflow": "/ui/workflows?new=1",
  "a workflow": "/ui/workflows/monthly-orders?step=look",
  "a dag of the configuration": "/ui/workflows/nightly-load",
  "a draft that is wrong": "/ui/workflows/broken?tab=definition",
  approvals: "/ui/approvals",
  jobs: "/ui/jobs",
  "a job": "/ui/jobs/thumbnails",
  "a paused job": "/ui/jobs/send-invoices",
  "a disabled job": "/ui/jobs/old-report",
  "slot pools": "/ui/slots",
  "a slot pool": "/ui/slots/warehouse",
  "a draining slot pool": "/ui/slots/reports",
  routing: "/ui/routing",
  "a recipient pool": (runs) => `/ui/routing/${runs["billing-desk"]}`,
  "a recipient pool that is stopped": (runs) => `/ui/routing/${runs["spare-desk"]}`,
  "a decision": (runs) => `/ui/routing?decision=${runs["a decision"]}`,
  "a decision that queued": (runs) => `/ui/routing?decision=${runs["a decision that queued"]}`,
  settings: "/ui/settings",
  api: "/ui/api",
};

/** One of several pages of a kind shows all its tabs, the others their first. */
const OF_A_KIND = ["the life of a workflow's run", "a run that failed", "a run that waits", "a run in back-off", "a run of two attempts", "a paused job", "a disabled job", "a draft that is wrong"];

/** What is not there has a page too; the requests that find this out are answered with 404. @type {Record<string, string>} */
const MISSING = {
  "no page": "/ui/nowhere",
  "no run": "/ui/runs/run_01aaaaaaaaaaaaaaaaaaaaaaaa",
  "no job": "/ui/jobs/nobody",
  "no workflow": "/ui/workflows/nobody",
  "no slot pool": "/ui/slots/nowhere",
  "no recipient pool": "/ui/routing/01a22cc9-4e15-71dc-899b-2d48fd645e94",
};

const isNotFound = (fault) => /404/.test(fault);

/** What another theme can break. */
const COLOURS = ["color-contrast", "link-in-text-block"];

/** Light, dark and narrow, as the page stands. */
async function looks(t, page, what) {
  await t.check(what, () => accessible(page, "light"));
  await page.emulateMedia({ colorScheme: "dark" });
  await t.check(what, () => accessible(page, "dark", COLOURS));
  await page.setViewportSize({ width: 360, height: 740 });
  await t.check(`${what}, narrow`, () => fitsWidth(page));
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1440, height: 900 });
}

async function named(page) {
  assert.equal(await page.getByRole("heading", { level: 1 }).count(), 1, "one head of the first order");
  assert.match(await page.title(), /^(?!undefined).+ · ductor$/);
}

/** Each tab of the page in turn, whatever they are called. */
async function tabsOf(page, watch, each) {
  const tabs = page.getByRole("tab");
  for (let index = 0; index < (await tabs.count()); index += 1) {
    const tab = tabs.nth(index);
    if ((await tab.getAttribute("aria-selected")) === "true") continue;
    const name = (await tab.innerText()).trim();
    await tab.click();
    await watch.settled();
    assert.equal(await tab.getAttribute("aria-selected"), "true", name);
    await each(name);
  }
}

/** @param {{tabs?: boolean, allowed?: (fault: string) => boolean}} [options] */
async function whole(browser, t, origin, path, { tabs = true, allowed } = {}) {
  const { page, watch } = await openPage(browser, t, origin);
  await page.goto(path);
  await watch.settled();
  await t.check(path, () => named(page));
  await t.check(path, () => watch.clean(allowed));
  await looks(t, page, path);
  await t.check(`${path}, by keyboard`, async () => t.note(`${await walk(page)} stops by keyboard`));
  if (tabs) await tabsOf(page, watch, async (name) => {
    const what = `${path}, tab ${name}`;
    await t.check(what, () => watch.clean(allowed));
    await looks(t, page, what);
    await t.check(`${what}, by keyboard`, () => walk(page));
  });
  // Loaded narrow, not only made so.
  await page.setViewportSize({ width: 360, height: 740 });
  await page.reload();
  await watch.settled();
  await t.check(`${path}, loaded narrow`, () => fitsWidth(page));
  await t.check(`${path}, loaded narrow`, () => accessible(page, "narrow"));
  await t.check(`${path}, loaded narrow`, () => watch.clean(allowed));
}

/** @returns {import("./report.mjs").Test[]} */
export function tests() {
  const paths = Object.entries(PAGES).map(([name, path]) => ({
    name: `page: ${name}`,
    beside: true,
    run: async (t, browser) => {
      const { daemon, runs } = await theScene();
      await whole(browser, t, daemon.url, typeof path === "string" ? path : path(runs), { tabs: !OF_A_KIND.includes(name) });
    },
  }));
  const missing = Object.entries(MISSING).map(([name, path]) => ({
    name: `page: ${name}`,
    beside: true,
    run: async (t, browser) => {
      const { daemon } = await theScene();
      await whole(browser, t, daemon.url, path, { allowed: isNotFound });
    },
  }));
  const nothing = ["/", "/ui/runs", "/ui/workflows", "/ui/approvals", "/ui/jobs", "/ui/slots", "/ui/routing", "/ui/settings", "/ui/api"].map((path) => ({
    name: `page: ${path} with nothing to show`,
    beside: true,
    run: async (t, browser) => {
      const daemon = await anEmptyDaemon();
      await whole(browser, t, daemon.url, path);
    },
  }));
  return [...paths, ...missing, ...nothing];
}
