// Brings a daemon into every state that a page can show, by its API alone; each step waits for what it needs to be so.
// By hand: `DUCTOR_BIN=target/debug/ductor node tests/browser/demo.mjs [127.0.0.1:PORT]` leaves it running until Ctrl-C.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { Daemon, until } from "./daemon.mjs";

const SUCCESSES = 14;

/** The scenario's configuration, at first and after its reload. */
async function configurations() {
  const after = await readFile(new URL("./demo.yaml", import.meta.url), "utf8");
  const first = after.replace(/^(\s*[\w-]+:) .*?\s+# at first: (.*)$/gm, "$1 $2");
  return { first, after };
}

/** What a page may want to show, by name. */
const found = (daemon) => ({ daemon, runs: /** @type {Record<string, string>} */ ({}), entries: /** @type {Record<string, string>} */ ({}) });

async function hold(scene, job) {
  const { runId, queueId } = await scene.daemon.start(job);
  await scene.daemon.run(runId, "running");
  scene.runs[job] = runId;
  if (queueId) scene.entries[job] = queueId;
}

async function wait(scene, job) {
  const { runId, queueId } = await scene.daemon.start(job);
  scene.runs[job] = runId;
  scene.entries[job] = queueId;
  return queueId;
}

async function finish(scene, job, state, body) {
  const { runId } = await scene.daemon.start(job, body);
  scene.runs[job] = runId;
  await scene.daemon.run(runId, state);
}

async function slots(scene) {
  const { daemon } = scene;
  await hold(scene, "export-orders");
  await hold(scene, "rebuild-search");
  await wait(scene, "import-prices");
  const expired = await wait(scene, "warm-cache");
  const cancelled = await wait(scene, "refresh-views");
  await wait(scene, "refresh-views");
  await wait(scene, "vacuum");
  await daemon.post(`/pools/warehouse/queue/${cancelled}/cancel`);
  await hold(scene, "send-newsletter");
  await wait(scene, "send-receipts");
  await daemon.post("/pools/mail/pause", { note: "the provider works on its servers until 06:00" });
  await hold(scene, "daily-report");
  await wait(scene, "weekly-report");
  await daemon.entry("warehouse", cancelled, "cancelled");
  await daemon.entry("warehouse", expired, "expired");
}

async function outcomes(scene) {
  const { daemon } = scene;
  for (const job of ["import-stock-eu", "import-stock-us", "import-stock-asia", "nightly-backup"]) await finish(scene, job, "failed");
  await finish(scene, "crawl-partners", "failed");
  await finish(scene, "fetch-rates", "succeeded", { retries: true });
  await finish(scene, "deploy-site", "succeeded");
  await finish(scene, "rotate-keys", "succeeded");
  for (let count = 0; count < SUCCESSES; count += 1) await finish(scene, "thumbnails", "succeeded");
  const { runId } = await daemon.start("sync-crm", { retries: true });
  scene.runs["sync-crm"] = runId;
  await until("a run in back-off", async () => (await daemon.get(`/api/runs/${runId}`)).steps[0].retry_at);
}

async function skippedFire(scene) {
  const { daemon } = scene;
  await daemon.post("/jobs/send-invoices/pause", { note: "wrong VAT in October, Ines looks at it" });
  await until("a skipped fire", async () => (await daemon.get("/api/schedules/send-invoices/fires?outcome=skipped")).length > 0);
}

/** A definition with a body, a failed branch, a way out that is not taken, and two steps that wait for somebody. */
const ORDERS = {
  family_slug: "monthly-orders",
  title: "Orders of a month",
  description: "Looks at the pages of a month, lets finance decide, and publishes.",
  input_schema: { type: "object", required: ["month"], properties: {
    month: { type: "string", title: "Month", description: "Like 2026-03" }, copies: { type: "integer", minimum: 1, default: 1 },
    mode: { enum: ["fast", "safe"], default: "safe" }, dry: { type: "boolean", title: "Only look" }, since: { type: "string", format: "date-time" }, tags: { type: "array", items: { type: "string" } } } },
  steps: [
    { ref: "pages", title: "List the pages", type: "STEP_TYPE_DATAFLOW", args: { operation: "project", project: { list: "[1, 2, 3, 4, 5]" } } },
    { ref: "each", title: "For each page", type: "STEP_TYPE_SCATTER", args: { items: "steps.pages.output.list", tolerated_failures: 2, body: {
      steps: [{ ref: "look", title: "Look at it", type: "STEP_TYPE_DATAFLOW", args: { operation: "assert", assert: [{ that: "item != 3", message: "page 3 is empty" }] } },
        { ref: "store", title: "Store it", type: "STEP_TYPE_WAIT", args: { duration: "100ms" } }],
      edges: [{ source_ref: "look", target_ref: "store" }] } } },
    { ref: "all", title: "Collect the pages", type: "STEP_TYPE_GATHER", args: { from: "each", step: "store" } },
    { ref: "finance", title: "Approval by finance", type: "STEP_TYPE_APPROVAL", args: { timeout: "2h" } },
    { ref: "carrier", title: "Answer of the carrier", type: "STEP_TYPE_CHECKPOINT", args: {} },
    { ref: "publish", title: "Publish", type: "STEP_TYPE_SUCCEED", args: {} },
    { ref: "warn", title: "Tell the person on call", type: "STEP_TYPE_WAIT", args: { duration: "1s" } }],
  edges: [
    { source_ref: "pages", target_ref: "each" }, { source_ref: "each", target_ref: "all" }, { source_ref: "all", target_ref: "finance" }, { source_ref: "finance", target_ref: "publish" },
    { source_ref: "each", target_ref: "warn", type: "EDGE_TYPE_FAILURE" }, { source_ref: "pages", target_ref: "carrier", type: "EDGE_TYPE_ALWAYS" }, { source_ref: "carrier", target_ref: "publish" }],
};

async function workflows(scene) {
  const { daemon } = scene;
  await daemon.post("/api/workflows", ORDERS);
  await daemon.post("/api/workflows/monthly-orders:publish");
  const changed = { ...ORDERS, title: "Orders of a month, again" };
  await daemon.send("PUT", "/api/workflows/monthly-orders", changed);
  await daemon.post("/api/workflows", { ...ORDERS, family_slug: "broken", edges: [{ source_ref: "pages", target_ref: "gone" }] });
  const { data } = await daemon.post("/api/workflows/monthly-orders/runs", { input: { month: "2026-03" } });
  scene.runs["monthly-orders"] = data.id;
  await until("an open approval", async () => (await daemon.get("/api/checkpoints")).some((point) => point.step === "finance"));
}

/** Two recipient pools, one that is stopped; people who are full, away, taken out; work that waits; rules. */
async function routing(scene) {
  const { daemon } = scene;
  const made = async (path, body) => (await daemon.post(path, body)).data;
  const desk = await made("/api/pools", { name: "billing-desk", description: "Refunds and invoices", strategy: "smooth_weighted_round_robin", config: { default_timeout: "30m" } });
  const spare = await made("/api/pools", { name: "spare-desk", description: "When the others are full", strategy: "longest_idle" });
  await made("/api/pools", { name: "a-pool-whose-name-goes-on-for-longer-than-anybody-would-type-it-twice-without-a-mistake", strategy: "shark_tank" });
  const person = (name, more) => made(`/api/pools/${desk.id}/recipients`, { name, type: "agent", ...more });
  await person("Jordan Reyes", { weight: 2, external_id: "agent-4471", capacity: { max_concurrent: 2, daily_limit: 40 }, tags: ["billing", "spanish"], attributes: { language: { string_value: "es" } } });
  await person("Kim Osei", { capacity: { max_concurrent: 1 }, attributes: { language: { string_value: "en" } } });
  await person("Lee Park", { state: "RECIPIENT_STATE_OFFLINE" });
  const away = await person("Mo Adler", { capacity: { max_concurrent: 4 } });
  await daemon.post(`/api/recipients/${away.id}/pause`);
  await daemon.post("/api/rules", { name: "billing", priority: 20, expression: 'work.attributes.skill == "billing"', action: { type: "select_pool", pool_id: desk.id } });
  await daemon.post("/api/rules", { name: "no-test-work", pool_id: desk.id, expression: 'work.kind != "test"', action: { type: "filter" } });
  await made("/api/rules", { name: "vip", priority: 10, expression: 'work.attributes.tier == "vip"', action: { type: "select_pool", pool_id: desk.id } });
  const trial = { pool_id: desk.id, status: "running" };
  await made("/api/shadow-campaigns", { ...trial, name: "least-utilized-trial", candidate: { strategy: "least_utilized" } });
  await made("/api/shadow-campaigns", { ...trial, name: "by-chance", candidate: { strategy: "random" }, status: "draft" });
  for (let count = 0; count < 5; count += 1) {
    const { id } = await made("/api/route", { work: { kind: "ticket", attributes: { skill: "billing" } } });
    scene.runs[count === 4 ? "a decision that queued" : "a decision"] = id;
  }
  await until("shadow results", async () => (await daemon.get("/api/shadow-campaigns")).length > 0 && (await daemon.get(`/api/decisions/${scene.runs["a decision"]}`)).shadow?.length > 0);
  await daemon.post(`/api/pools/${spare.id}:set_enabled`, { enabled: false, reason: "moving to another building until Tuesday" });
  Object.assign(scene.runs, { "billing-desk": desk.id, "spare-desk": spare.id });
}

async function drain(scene, after) {
  const { daemon } = scene;
  await daemon.writeConfig(after);
  await daemon.post("/api/config:reload");
  await until("a drain", async () => (await daemon.get("/pools/reports")).draining);
}

/**
 * Starts a daemon and plays the scenario.
 * @param {{listen?: string}} [options]
 */
export async function demo(options) {
  const { first, after } = await configurations();
  const daemon = await Daemon.start(first, options);
  try {
    const scene = found(daemon);
    await skippedFire(scene);
    await slots(scene);
    await outcomes(scene);
    await workflows(scene);
    await routing(scene);
    await drain(scene, after);
    await until("late jobs", async () => (await daemon.get("/api/status")).late_jobs.length >= 2, 60_000);
    return scene;
  } catch (error) {
    const told = new Error(`${error.message}\n${daemon.output}`);
    await daemon.end();
    throw told;
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const scene = await demo({ listen: process.argv[2] });
  console.log(`${scene.daemon.url}\n${JSON.stringify(scene.runs, null, 2)}`);
  process.removeAllListeners("SIGINT");
  process.removeAllListeners("SIGTERM");
  await new Promise((stop) => { process.once("SIGINT", stop); process.once("SIGTERM", stop); });
  await scene.daemon.end();
}
