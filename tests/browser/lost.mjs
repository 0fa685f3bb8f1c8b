// A daemon that dies under the page: it says so, shows nothing as if it were known, and goes on by itself when it is back.
import assert from "node:assert/strict";
import { Daemon, until } from "./daemon.mjs";
import { openPage } from "./pages.mjs";

const CONFIG = `
jobs:
  - {name: beacon, command: echo lit}
  - {name: lantern, command: echo lit}
`;
const TOLD_WITHIN_MS = 35_000;

const banner = (page) => page.getByRole("alert").filter({ hasText: "NO SIGNAL" });
const live = (page) => page.getByRole("banner").getByRole("button", { name: /^Live/ });
/** How strongly what is shown is drawn. */
const look = (page) => page.getByRole("main").evaluate((element) => {
  const { filter, opacity } = getComputedStyle(element);
  return `${filter} ${opacity}`;
});

async function killed(t, browser) {
  const daemon = await Daemon.start(CONFIG);
  t.atEnd(() => daemon.end());
  const { page, watch } = await openPage(browser, t, daemon.url);
  await page.goto("/ui/jobs");
  await watch.settled();
  await live(page).waitFor();
  watch.clean();
  await page.evaluate(() => { /** @type {any} */ (window).neverReloaded = true; });
  const before = await look(page);
  const began = Date.now();
  await daemon.kill();
  await banner(page).waitFor({ timeout: TOLD_WITHIN_MS });
  t.note(`told after ${((Date.now() - began) / 1000).toFixed(1)} s`);
  assert.match(await banner(page).innerText(), /NO SIGNAL since \d\d:\d\d:\d\d UTC/);
  assert.notEqual(await look(page), before, "what is not known is not drawn as if it were");
  assert.match(await page.getByRole("main").innerText(), /beacon/, "what was known stays");
  // Pages can still be gone to; they say what they could not read.
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await until("the other page to say so", async () => /no answer/i.test(await page.getByRole("main").innerText()));
  await page.goBack();
  await daemon.restart();
  await banner(page).waitFor({ state: "detached" });
  await live(page).waitFor();
  await until("the page to look as before", async () => (await look(page)) === before);
  watch.faults = [];
  const { runId } = await daemon.start("beacon");
  await daemon.run(runId, "succeeded");
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await page.getByRole("main").getByRole("link", { name: /beacon/ }).first().waitFor();
  const other = await daemon.start("lantern");
  await daemon.run(other.runId, "succeeded");
  await page.getByRole("main").getByRole("link", { name: /lantern/ }).first().waitFor();
  assert.ok(await page.evaluate(() => /** @type {any} */ (window).neverReloaded), "the page was reloaded");
  watch.clean();
}

/** A page that is held still lets the feed go, and catches up with all that it missed. */
async function heldStill(t, browser) {
  const daemon = await Daemon.start(CONFIG);
  t.atEnd(() => daemon.end());
  const { page, watch } = await openPage(browser, t, daemon.url);
  await page.goto("/ui/runs");
  await watch.settled();
  await live(page).waitFor();
  await page.keyboard.press("p");
  await page.getByRole("banner").getByRole("button", { name: /^Paused/ }).waitFor();
  const { runId } = await daemon.start("beacon");
  await daemon.run(runId, "succeeded");
  await watch.settled();
  assert.equal(await page.getByRole("main").getByRole("link", { name: /beacon/ }).count(), 0, "the page holds still");
  await page.keyboard.press("p");
  await page.getByRole("main").getByRole("link", { name: /beacon/ }).first().waitFor();
  watch.clean();
}

/** Two daemons share a state directory: the page of the one shows what the other does, as it happens, and that it is gone. */
async function twoDaemons(t, browser) {
  const first = await Daemon.start(CONFIG);
  t.atEnd(() => first.end());
  const second = await first.another();
  t.atEnd(() => second.kill());
  const { page, watch } = await openPage(browser, t, second.url);
  await page.goto("/ui/runs");
  await watch.settled();
  await live(page).waitFor();
  const { runId } = await first.start("beacon");
  await first.run(runId, "succeeded");
  const row = page.getByRole("main").getByRole("link", { name: /beacon/ }).first();
  await row.waitFor();
  await row.click();
  await until("the run of the other daemon to be shown", async () => /succeeded/i.test(await page.getByRole("main").innerText()));
  const seen = async (daemon) => JSON.stringify((await daemon.get("/api/runs")).map((run) => [run.id, run.state]));
  assert.equal(await seen(first), await seen(second));
  const name = (await first.get("/api/status")).node;
  await page.goto("/ui/settings");
  await until("both nodes to be shown", async () => (await page.getByRole("main").innerText()).includes(name));
  await page.getByRole("button", { name: `Drain ${name}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Drain", exact: true }).click();
  await page.getByRole("button", { name: `Undrain ${name}` }).waitFor();
  assert.equal((await first.get("/api/nodes")).find((node) => node.name === name).state, "drained");
  await first.kill();
  await until("the page to say that the first is gone", async () => {
    const text = await page.getByRole("main").innerText();
    return new RegExp(`${name}[\\s\\S]{0,80}gone`).test(text);
  });
  assert.equal(await banner(page).count(), 0, "this page has its signal");
  watch.clean();
}

/** @returns {import("./report.mjs").Test[]} */
export const tests = () => [
  { name: "lost: the daemon is killed and comes back", run: killed, beside: true },
  { name: "lost: the page of one of two daemons", run: twoDaemons, beside: true },
  { name: "lost: a page held still catches up", run: heldStill, beside: true },
];
