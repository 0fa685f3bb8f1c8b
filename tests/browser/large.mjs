// Much of everything: ten thousand runs, a thousand jobs, a log of 200 MB. What the page holds stays bounded, and it answers.
import assert from "node:assert/strict";
import { Daemon, until } from "./daemon.mjs";
import { openPage } from "./pages.mjs";

const JOBS = 1000;
const RUNS = 10_000;
/** So many of them by commands that really run; the others wait in a queue and are cancelled. */
const RUNS_REAL = 1500;
const LOG_LINES = 1_000_000;
/** What is searched for, behind the first 64 MB that one request looks through. */
const FOUND_LINE = 400_077;
/** The daemon of the tests is not optimised, and looks through a log slowly. */
const SEARCH_PATIENCE_MS = 120_000;
/** Nodes of a page, however much there is to show. */
const NODES_MAX = 6000;
const ROWS_MAX = 250;
const BURST_S = 6;
const BURST_PER_S = 50;
/** Far above what it takes: a page that stands still is found, a busy machine is not. */
const ANSWER_MS_MAX = 10_000;
/** Requests a second of a page while everything changes. */
const REQUESTS_PER_S_MAX = 15;

const nameOf = (index) => `job-${String(index % JOBS).padStart(4, "0")}`;

/** Even jobs run at once, odd ones wait behind one that holds the only slot. */
const config = () => `
shutdown: {drainTimeout: 1s}
pools:
  line: {slots: 1, maxQueued: 10000}
jobs:
${Array.from({ length: JOBS }, (_, index) => `  - {name: ${nameOf(index)}, command: ["/bin/true"]${index % 2 ? ", pool: line" : ""}${index % 5 ? "" : `, schedule: "${index % 60} 3 * * *"`}}`).join("\n")}
  - {name: holder, command: exec sleep 3600, pool: line, queuePriority: 10}
  - name: loud
    command: awk 'BEGIN { for (i = 0; i < ${LOG_LINES}; i++) printf "%08d the quick brown fox jumps over the lazy dog again and again and again and again until line %d is written; then it rests, begins with the next one, and so on, and so forth, and so on, and so on and on\\n", i, i }'
    saveLimit: 1000000
`;

/** Does something many times, some at once. @param {number} count @param {number} lanes @param {(index: number) => Promise<unknown>} deed */
async function many(count, lanes, deed) {
  let next = 0;
  await Promise.all(Array.from({ length: lanes }, async () => {
    while (next < count) {
      next += 1;
      await deed(next - 1);
    }
  }));
}

async function fill() {
  const daemon = await Daemon.start(config());
  daemon.agent.maxSockets = 64;
  const began = Date.now();
  const loud = await daemon.start("loud");
  const holder = await daemon.start("holder");
  await daemon.run(holder.runId, "running");
  await many(RUNS_REAL, 32, (index) => daemon.start(nameOf(index * 2)));
  await many(RUNS - RUNS_REAL, 64, (index) => daemon.start(nameOf(index * 2 + 1)));
  await until("the waiting runs to be cancelled", async () => {
    const filter = { state: ["pending"] };
    const { data } = await daemon.post("/api/runs:cancel_matching", { filter, preview: true });
    if (data.count > 0) await daemon.post("/api/runs:cancel_matching", { filter, preview: false, expected_count: data.count });
    return data.count === 0;
  }, 120_000);
  await until("the others to end", async () => (await daemon.get("/api/status")).counts.running === 1, 120_000);
  return { daemon, log: loud.runId, took: Date.now() - began };
}

/** @type {ReturnType<typeof fill> | undefined} */
let filled;
/** Begins to fill, beside the tests that come first. */
export const beginFilling = () => {
  filled ??= fill();
  filled.catch(() => {});
};
const theFilled = () => (beginFilling(), /** @type {ReturnType<typeof fill>} */ (filled));
export const endFilling = async () => {
  await filled?.then(({ daemon }) => daemon.end(), () => {});
};

const nodes = (page) => page.evaluate(() => document.querySelectorAll("*").length);

/** Long tasks of the page since they were watched. */
const watchTasks = (page) => page.evaluate(() => {
  const seen = (/** @type {any} */ (window).longTasks = []);
  new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => seen.push(duration))).observe({ type: "longtask" });
});
const longest = (page) => page.evaluate(() => Math.round(Math.max(0, .../** @type {any} */ (window).longTasks)));

async function lists(t, browser) {
  const { daemon, took } = await theFilled();
  t.note(`${RUNS} runs of ${JOBS} jobs were made in ${Math.round(took / 1000)} s`);
  const { page, watch } = await openPage(browser, t, daemon.url);
  for (const path of ["/", "/ui/runs", "/ui/jobs", "/ui/jobs?tab=week", "/ui/slots", "/ui/slots/line", "/ui/settings", "/ui/jobs/job-0001"]) {
    const began = Date.now();
    await page.goto(path);
    await watch.settled();
    const count = await nodes(page);
    t.note(`${path}: ${Date.now() - began} ms, ${count} nodes`);
    await t.check(path, () => {
      assert.ok(count < NODES_MAX, `${count} nodes, at most ${NODES_MAX}`);
      watch.clean();
    });
    const rows = await page.getByRole("row").count();
    await t.check(path, () => assert.ok(rows <= ROWS_MAX, `${rows} rows, at most ${ROWS_MAX}`));
  }
}

async function further(t, browser) {
  const { daemon } = await theFilled();
  const { page, watch } = await openPage(browser, t, daemon.url);
  for (const path of ["/ui/runs", "/ui/jobs"]) {
    await page.goto(path);
    await watch.settled();
    const rows = page.getByRole("main").getByRole("row");
    const before = await rows.count();
    await page.getByRole("main").getByRole("button", { name: /^(Load )?more/i }).first().click();
    await until("further rows", async () => (await rows.count()) > before);
  }
  // The last of a thousand jobs is found by a word.
  await page.keyboard.press("/");
  await page.keyboard.type("job-0999");
  await page.getByRole("main").getByRole("link", { name: "job-0999" }).first().waitFor();
  watch.clean();
}

/** Starts runs at a steady rate. @param {Daemon} daemon */
async function burst(daemon) {
  const ids = [];
  const began = Date.now();
  await Promise.all(Array.from({ length: BURST_S * BURST_PER_S }, async (_, index) => {
    await new Promise((go) => setTimeout(go, (index * 1000) / BURST_PER_S));
    ids.push((await daemon.start(nameOf(index * 2))).runId);
  }));
  return { ids, took: Date.now() - began };
}

async function underEvents(t, browser) {
  const { daemon } = await theFilled();
  const { page, watch } = await openPage(browser, t, daemon.url);
  for (const path of ["/", "/ui/runs", "/ui/jobs"]) {
    await page.goto(path);
    await watch.settled();
    await watchTasks(page);
    const before = watch.requests;
    const pouring = burst(daemon);
    await until("the first events", () => watch.requests > before);
    // In the midst of it somebody goes elsewhere and comes back.
    const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: /settings/i });
    const answered = await link.evaluate((element) => new Promise((done) => {
      const clicked = performance.now();
      const look = () => (/settings/i.test(document.querySelector("h1")?.textContent ?? "") ? done(Math.round(performance.now() - clicked)) : requestAnimationFrame(look));
      /** @type {HTMLElement} */ (element).click();
      look();
    }));
    await page.goBack();
    await until("the page before", () => new URL(page.url()).pathname === path);
    const { ids, took } = await pouring;
    const per = (watch.requests - before) / (took / 1000);
    const count = await nodes(page);
    t.note(`${path}: ${ids.length} runs in ${(took / 1000).toFixed(1)} s, a click answered in ${answered} ms, ${per.toFixed(1)} requests/s, longest task ${await longest(page)} ms, ${count} nodes`);
    await t.check(path, () => {
      assert.ok(answered < ANSWER_MS_MAX, `a click answered after ${answered} ms`);
      assert.ok(per <= REQUESTS_PER_S_MAX, `${per.toFixed(1)} requests a second, at most ${REQUESTS_PER_S_MAX}`);
      assert.ok(count < NODES_MAX, `${count} nodes, at most ${NODES_MAX}`);
      watch.clean();
    });
    await daemon.run(ids.at(-1), "succeeded");
  }
  // The last of them is seen without a reload.
  await page.goto("/ui/runs");
  await watch.settled();
  const { runId } = await daemon.start(nameOf(2));
  await daemon.run(runId, "succeeded");
  await page.locator(`a[href="/ui/runs/${runId}"]`).first().waitFor();
  watch.clean();
}

async function longLog(t, browser) {
  const { daemon, log } = await theFilled();
  const run = await daemon.get(`/api/runs/${log}`);
  const size = run.steps[0].attempts[0].log_bytes;
  assert.ok(size > 200_000_000, `the log has ${size} bytes`);
  const { page, watch } = await openPage(browser, t, daemon.url);
  const began = Date.now();
  await page.goto(`/ui/runs/${log}?tab=log`);
  await watch.settled();
  const lines = page.getByRole("region", { name: "Lines of the log" });
  const shows = (number, patience) => until(`line ${number}`, async () => (await lines.innerText()).includes(`${String(number).padStart(8, "0")} the quick`), patience);
  const bounded = async (what) => {
    const count = await nodes(page);
    assert.ok(count < NODES_MAX, `${what}: ${count} nodes, at most ${NODES_MAX}`);
  };
  await until("lines", async () => /the quick brown fox/.test(await lines.innerText()));
  t.note(`${(size / 1e6).toFixed(0)} MB, first lines after ${Date.now() - began} ms`);
  await lines.click({ position: { x: 300, y: 100 } });
  await page.keyboard.press("End");
  await shows(LOG_LINES - 1);
  await bounded("at the end");
  await page.keyboard.press("Home");
  await shows(0);
  for (let count = 0; count < 40; count += 1) await page.keyboard.press("PageDown");
  await until("lines further down", async () => !(await lines.innerText()).includes("00000000 the quick"));
  await bounded("after forty pages");
  const rail = page.getByRole("slider", { name: /whole log/i });
  const box = await rail.boundingBox();
  assert.ok(box);
  const jumped = Date.now();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  await until("the middle", async () => /00[456]\d{5} the quick/.test(await lines.innerText()));
  t.note(`the middle after ${Date.now() - jumped} ms`);
  for (let count = 0; count < 30; count += 1) await page.mouse.wheel(0, 3000);
  await bounded("after the wheel");
  const searched = Date.now();
  const field = page.getByRole("textbox", { name: "Search the log" });
  await field.fill(`until line ${FOUND_LINE} is`);
  await field.press("Enter");
  await shows(FOUND_LINE, SEARCH_PATIENCE_MS);
  t.note(`a word behind 85 MB found after ${Date.now() - searched} ms`);
  await bounded("after a search");
  const heap = await page.evaluate(() => Math.round(/** @type {any} */ (performance).memory.usedJSHeapSize / 1e6));
  t.note(`${heap} MB of heap, ${await nodes(page)} nodes`);
  assert.ok(heap < 100, `${heap} MB of heap`);
  watch.clean();
}

const STEPS = 960;
const LAYERS = 24;
const BRANCHES = 10_000;
/** Completed while the page is looked at. */
const COMPLETED = 1500;

/** A graph of a thousand steps, one of which does something for each of ten thousand items. */
function hugeWorkflow() {
  const steps = [];
  const edges = [];
  const width = STEPS / LAYERS;
  for (let at = 0; at < STEPS; at += 1) {
    steps.push({ ref: `s${at}`, title: `Step ${at}`, type: "STEP_TYPE_DATAFLOW", args: { operation: "project", project: { at: String(at) } } });
    if (at >= width) edges.push({ source_ref: `s${at - width}`, target_ref: `s${at}` });
    if (at >= width && at % 3 === 0) edges.push({ source_ref: `s${at - width + (at % width === width - 1 ? 0 : 1)}`, target_ref: `s${at}`, type: "EDGE_TYPE_ALWAYS" });
  }
  steps.push({ ref: "each", title: "Each", type: "STEP_TYPE_SCATTER", args: { items: "input.items", tolerated_failures: "100%", body: { ref: "work", title: "Work", type: "STEP_TYPE_TASK", args: { queue: "many", input: "item" }, retry: { max_attempts: 1 } } } });
  edges.push({ source_ref: "s0", target_ref: "each" });
  return { family_slug: "huge", title: "Huge", steps, edges };
}

/** Does so many tasks, one in ten of them badly. @param {Daemon} daemon @param {number} count */
async function work(daemon, count) {
  const ask = { queue: "many", worker: "w-1", max: 50, wait_ms: 1000 };
  let tasks = (await daemon.post("/api/bridge/poll", ask)).data.tasks;
  for (let done = 0; done < count && tasks.length > 0;) {
    const items = tasks.map((task, at) => ({ token: task.token, ...(at % 10 === 0 ? { error: { code: "bad", message: "no luck", retryable: false } } : { output: at }) }));
    done += items.length;
    const answer = await daemon.post("/api/bridge/complete-batch", { items, ...(done < count ? { poll: ask } : {}) });
    tasks = answer.data.tasks ?? [];
  }
}

async function largeGraph(t, browser) {
  const daemon = await Daemon.start("jobs: []\n");
  try {
    await lookAtLargeGraph(t, browser, daemon);
  } finally {
    await daemon.end();
  }
}

async function lookAtLargeGraph(t, browser, daemon) {
  await daemon.post("/api/workflows", hugeWorkflow());
  await daemon.post("/api/workflows/huge:publish");
  const begun = await daemon.post("/api/workflows/huge/runs", { input: { items: Array.from({ length: BRANCHES }, (_, at) => at) } });
  const { page, watch } = await openPage(browser, t, daemon.url);
  for (const tab of ["", "?tab=graph"]) {
    const path = `/ui/runs/${begun.data.id}${tab}`;
    const began = Date.now();
    await page.goto(path);
    await watch.settled();
    await watchTasks(page);
    const [took, before, poured] = [Date.now() - began, watch.requests, Date.now()];
    await work(daemon, COMPLETED);
    const per = (watch.requests - before) / Math.max(1, (Date.now() - poured) / 1000);
    const count = await nodes(page);
    const rows = await page.getByRole("main").getByRole("row").count();
    t.note(`${tab || "overview"} of ${STEPS} steps and ${BRANCHES} branches: ${took} ms, ${count} nodes, ${rows} rows, ${per.toFixed(1)} requests/s, longest task ${await longest(page)} ms`);
    await t.check(path, () => {
      assert.ok(count < NODES_MAX, `${count} nodes, at most ${NODES_MAX}`);
      assert.ok(rows <= ROWS_MAX, `${rows} rows, at most ${ROWS_MAX}`);
      assert.ok(per <= REQUESTS_PER_S_MAX, `${per.toFixed(1)} requests a second, at most ${REQUESTS_PER_S_MAX}`);
      watch.clean();
    });
  }
  // What failed among ten thousand is found, and opened.
  await page.locator("#steps-state").selectOption("failed");
  await page.getByRole("button", { name: "work" }).first().waitFor();
  await page.getByText("10000").first().waitFor();
  watch.clean();
}

/** @returns {(import("./report.mjs").Test & {large?: boolean})[]} */
export const tests = () => [
  { name: "large: a thousand steps, ten thousand branches", run: largeGraph },
  ...Object.entries({
    "large: lists hold what fits a page": lists,
    "large: further rows and words": further,
    "large: 50 runs a second": underEvents,
    "large: a log of 200 MB": longLog,
  }).map(([name, run]) => ({ name, run, large: true })),
];
