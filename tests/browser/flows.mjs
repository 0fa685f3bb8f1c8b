// What people do with the page: start and watch, cancel, pause, retry, mend a configuration. Nothing is ever reloaded.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Daemon, until } from "./daemon.mjs";
import { openPage } from "./pages.mjs";

// A command that ends when a file is there.
const UNTIL_GO = "while [ ! -e go ]; do sleep 0.05; done";
const CONFIG = `
shutdown: {drainTimeout: 1s}
defaults: {killTimeout: 1s}
pools:
  press: {slots: 1}
jobs:
  - name: brochure
    command: 'echo "printing the cover"; ${UNTIL_GO}; echo "all printed"'
  - name: poster
    command: exec sleep 3600
    pool: press
  - name: flyer
    command: echo flown
    pool: press
  - name: flaky
    command: 'echo "no paper" >&2; exit 9'
    onFailure: {retry: {maximumRetries: 5, initialDelay: 1h}}
`;

/** A daemon of its own, and a page of it that would lose its mark by a reload. */
async function begin(browser, t, path) {
  const daemon = await Daemon.start(CONFIG);
  t.atEnd(() => daemon.end());
  const { page, watch } = await openPage(browser, t, daemon.url);
  await page.goto(path);
  await watch.settled();
  await page.evaluate(() => { /** @type {any} */ (window).neverReloaded = true; });
  t.atEnd(async () => assert.ok(page.isClosed() || (await page.evaluate(() => /** @type {any} */ (window).neverReloaded)), "the page was reloaded"));
  return { daemon, page, watch };
}

/** Says yes in the dialog, after a look at what it says. */
async function confirm(page, says, verb) {
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  assert.match(await dialog.innerText(), says);
  await dialog.getByRole("button", { name: verb }).click();
  await dialog.waitFor({ state: "detached" });
}

const main = (page) => page.getByRole("main");
const shows = (page, text) => until(`the page to show ${text}`, async () => text.test(await main(page).innerText()));

async function startAndWatch(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/jobs/brochure");
  await main(page).getByRole("button", { name: /^Start/ }).first().click();
  const dialog = page.getByRole("dialog");
  for (const name of [/copy as cli/i, /copy as curl/i]) assert.ok(await dialog.getByRole("button", { name }).isVisible());
  await confirm(page, /Start brochure/, /^Start$/);
  await page.getByRole("link", { name: "Open the run" }).click();
  await until("the run's page", () => /^\/ui\/runs\/run_/.test(new URL(page.url()).pathname));
  await shows(page, /running/);
  await page.getByRole("tab", { name: "Log" }).click();
  await shows(page, /printing the cover/);
  assert.doesNotMatch(await main(page).innerText(), /all printed/);
  await writeFile(join(daemon.folder, "go"), "");
  await shows(page, /all printed/);
  await shows(page, /succeeded/);
  watch.clean();
}

async function cancelEntry(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/slots/press");
  const holder = await daemon.start("poster");
  await daemon.run(holder.runId, "running");
  const { queueId } = await daemon.start("flyer");
  const row = main(page).getByRole("row").filter({ hasText: "flyer" });
  await row.getByRole("button", { name: /cancel/i }).click();
  await confirm(page, /waiting entry of flyer/, /^Cancel the entry$/);
  await daemon.entry("press", queueId, "cancelled");
  await until("the entry to leave the queue", async () => (await row.getByRole("button", { name: /cancel/i }).count()) === 0);
  assert.equal((await daemon.get(`/api/runs/${holder.runId}`)).state, "running");
  watch.clean();
}

async function cancelMatching(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/runs?filter=job%3Aflyer");
  const holder = await daemon.start("poster");
  await daemon.run(holder.runId, "running");
  const waiting = [];
  for (let count = 0; count < 3; count += 1) waiting.push((await daemon.start("flyer")).runId);
  await until("three rows", async () => (await main(page).getByRole("row").filter({ hasText: "flyer" }).count()) === 3);
  await main(page).getByRole("button", { name: /^Cancel all that match/ }).click();
  await page.getByRole("dialog").waitFor();
  // One more comes while somebody reads: what was shown is not what would be done, so it is shown anew.
  waiting.push((await daemon.start("flyer")).runId);
  await page.getByRole("dialog").getByRole("button", { name: /^Cancel them$/ }).click();
  await until("the new count", async () => /now it is 4/.test(await page.getByRole("dialog").innerText()));
  // The refusal is a 409 that the page asked for.
  watch.clean((fault) => /409/.test(fault));
  await confirm(page, /4 runs/, /^Cancel them$/);
  await until("all to be cancelled", async () => {
    const runs = await Promise.all(waiting.map((id) => daemon.get(`/api/runs/${id}`)));
    return runs.every(({ state }) => state !== "pending" && state !== "running");
  });
  assert.equal((await daemon.get(`/api/runs/${holder.runId}`)).state, "running");
  watch.clean();
}

async function pauseAndResume(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/jobs/brochure");
  await main(page).getByRole("button", { name: /^Pause/ }).first().click();
  await page.getByRole("dialog").getByLabel(/why|reason|note/i).fill("the paper is wet");
  await confirm(page, /Pause brochure/, /^Pause/);
  await shows(page, /the paper is wet/);
  assert.equal((await daemon.get("/api/jobs/brochure")).paused.note, "the paper is wet");
  await main(page).getByRole("button", { name: /^Resume/ }).first().click();
  await confirm(page, /Resume brochure/, /^Resume/);
  await until("the job to be resumed", async () => (await daemon.get("/api/jobs/brochure")).paused === null);
  await until("the note to go", async () => !/the paper is wet/.test(await main(page).innerText()));
  watch.clean();
}

async function retryNow(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/");
  const { runId } = await daemon.start("flaky", { retries: true });
  await until("the back-off", async () => (await daemon.get(`/api/runs/${runId}`)).steps[0].retry_at);
  const home = main(page).getByRole("link", { name: /flaky/ }).first();
  await home.waitFor();
  await page.evaluate((id) => {
    // As a link of the page itself would.
    history.pushState(null, "", `/ui/runs/${id}`);
    dispatchEvent(new PopStateEvent("popstate"));
  }, runId);
  await main(page).getByRole("button", { name: /^Retry now/ }).first().click();
  await confirm(page, /attempt/i, /^Retry now$/);
  await until("the second attempt", async () => (await daemon.get(`/api/runs/${runId}`)).steps[0].attempts.length === 2);
  await until("the page to show two attempts", async () => /attempt\s*2|2\s*attempts/i.test(await main(page).innerText()));
  watch.clean();
}

async function cancelRun(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/runs");
  const { runId } = await daemon.start("poster");
  await daemon.run(runId, "running");
  await main(page).getByRole("link", { name: /poster/ }).first().click();
  await watch.settled();
  await main(page).getByRole("button", { name: /^Cancel/ }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Back" }).click();
  assert.equal((await daemon.get(`/api/runs/${runId}`)).state, "running");
  await main(page).getByRole("button", { name: /^Cancel/ }).first().click();
  await confirm(page, /poster/, /^Cancel/);
  await daemon.run(runId, "cancelled");
  await shows(page, /cancelled/i);
  watch.clean();
}

async function rejectedConfiguration(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/settings?tab=configuration");
  const banner = page.getByRole("alert").filter({ hasText: /refused/i }).first();
  await daemon.writeConfig(CONFIG.replace("slots: 1", "slotz: 1"));
  const answer = await daemon.send("POST", "/api/config:reload");
  assert.ok(answer.status >= 400, `${answer.status}`);
  await banner.waitFor();
  await shows(page, /slotz/);
  await daemon.writeConfig(CONFIG.replace("slots: 1", "slots: 2"));
  await main(page).getByRole("button", { name: /^Reload/ }).first().click();
  await confirm(page, /reload/i, /^Reload/);
  await banner.waitFor({ state: "detached" });
  assert.equal((await daemon.get("/pools/press")).configuredSlots, 2);
  watch.clean();
}

async function refusal(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/jobs/poster");
  await main(page).getByRole("button", { name: /^Start/ }).first().click();
  await page.getByRole("dialog").waitFor();
  // The job goes while somebody reads the question.
  await daemon.writeConfig(CONFIG.replace("name: poster", "name: banner"));
  await daemon.post("/api/config:reload");
  await page.getByRole("dialog").getByRole("button", { name: /^Start$/ }).click();
  const alert = page.getByRole("dialog").getByRole("alert");
  await alert.waitFor();
  assert.match(await alert.innerText(), /job 'poster' not found[^]*POST \/jobs\/poster\/start[^]*404/);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  watch.clean((fault) => /404/.test(fault));
}

/** Two people stop the same recipient pool: the slower one is shown what the faster one did. */
async function switchConflict(t, browser) {
  const { daemon, page, watch } = await begin(browser, t, "/ui/routing");
  const { data: pool } = await daemon.post("/api/pools", { name: "desk", strategy: "round_robin" });
  await main(page).getByRole("link", { name: "desk" }).click();
  await watch.settled();
  await main(page).getByRole("button", { name: /^Stop/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await dialog.getByRole("textbox").fill("the building is closed");
  await daemon.post(`/api/pools/${pool.id}:set_enabled`, { enabled: false, reason: "the provider is down" });
  await dialog.getByRole("button", { name: /^Stop routing$/ }).click();
  await until("what has changed", async () => /Somebody has changed it meanwhile[^]*the provider is down/.test(await dialog.innerText()));
  watch.clean((fault) => /412/.test(fault));
  await confirm(page, /routes again at once/, /^Let it route$/);
  await shows(page, /routes/);
  assert.ok(!(await daemon.get(`/api/pools/${pool.id}`)).config?.kill_switch);
  watch.clean();
}

/** @returns {import("./report.mjs").Test[]} */
export const tests = () =>
  Object.entries({
    "flow: a job is started and watched to its end": startAndWatch,
    "flow: a waiting entry is cancelled": cancelEntry,
    "flow: all runs that match are cancelled, after a preview": cancelMatching,
    "flow: a job is paused with a note and resumed": pauseAndResume,
    "flow: a run in back-off is retried now": retryNow,
    "flow: a running run is cancelled, at the second thought": cancelRun,
    "flow: a rejected configuration is told, and mended": rejectedConfiguration,
    "flow: a refusal is shown in its dialog": refusal,
    "flow: the kill-switch shows what somebody else did": switchConflict,
  }).map(([name, run]) => ({ name, run, beside: true }));
