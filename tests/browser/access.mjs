// Keys in the browser: the first one ends open mode, signing in and out, what a key that only reads is refused, the audit.
import assert from "node:assert/strict";
import { Daemon, until } from "./daemon.mjs";
import { accessible, fitsWidth, openPage } from "./pages.mjs";

const CONFIG = "jobs:\n  - {name: poster, command: echo printed}\n";
const main = (page) => page.getByRole("main");
const shows = (page, text) => until(`the page to show ${text}`, async () => text.test(await main(page).innerText()));
/** Until somebody signs in everything is refused: that is no fault of the page. */
const refusals = (fault) => /answered 40[13]|status of 40[13]/.test(fault);

/** Looks at a page in both themes, wide and narrow; keeps the pictures where somebody wants them. */
async function check(page, what) {
  for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
    for (const width of [360, 1440]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await accessible(page, `${what}, ${colorScheme}, ${width}`);
      await fitsWidth(page);
      const folder = process.env.DUCTOR_LOOK;
      if (folder) await page.screenshot({ path: `${folder}/${what.replace(/\W+/g, "-")}-${colorScheme}-${width}.png`, fullPage: true });
    }
  }
}

/** Fills the dialog that is open and says yes. */
async function make(page, name, access) {
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await dialog.getByLabel("What it is for").fill(name);
  if (access) await dialog.getByLabel("It may").selectOption({ label: access });
  await dialog.getByRole("button", { name: "Make it" }).click();
  await dialog.waitFor({ state: "detached" });
  const shown = page.getByRole("status", { name: "The new key" });
  const key = (await shown.locator("code").innerText()).trim();
  assert.match(key, /^dk_[0-9a-f]{32}_[0-9A-Za-z]{49}$/);
  return key;
}

async function firstKeyToSignOut(t, browser) {
  const daemon = await Daemon.start(CONFIG);
  t.atEnd(() => daemon.end());
  const { page, watch } = await openPage(browser, t, daemon.url);
  await page.goto("/ui/settings?tab=keys");
  await watch.settled();
  await shows(page, /every user of this machine may do everything/);
  await main(page).getByRole("button", { name: "Key", exact: true }).click();
  const admin = await make(page, "admin");
  // The page went on without a word: it has signed itself in.
  await shows(page, /You are key:admin of the tenant default/);
  await main(page).getByRole("button", { name: "I have it" }).click();
  assert.ok(!(await main(page).innerText()).includes(admin), "the key is gone from the page");
  await main(page).getByRole("button", { name: "Key", exact: true }).click();
  const reader = await make(page, "board", "read everything");
  await check(page, "the page of keys");
  await page.getByRole("button", { name: /sign out/ }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await check(page, "the page to sign in");
  const field = page.getByLabel("API key");
  await field.fill("dk_wrong");
  await field.press("Enter");
  await page.getByRole("alert").waitFor();
  assert.match(await page.getByRole("alert").innerText(), /opens nothing/);
  await field.fill(reader);
  await field.press("Enter");
  await shows(page, /You are key:board/);
  assert.equal(await main(page).getByRole("button", { name: "Revoke board" }).count(), 0, "who only reads ends nothing");
  // What it may not do is told with the scope that is missing.
  await page.goto("/ui/jobs/poster");
  await main(page).getByRole("button", { name: /^Start/ }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: /^Start$/ }).click();
  await until("the refusal", async () => /job:write/.test(await page.getByRole("dialog").innerText()));
  await page.goto("/ui/settings?tab=audit");
  await shows(page, /create key/);
  await shows(page, /key:admin/);
  await check(page, "the page of the audit");
  const revoked = await fetch(`${daemon.url}/api/keys`, { headers: { authorization: `Bearer ${admin}` } }).then((answer) => answer.json());
  const board = revoked.data.find(({ name }) => name === "board");
  await fetch(`${daemon.url}/api/keys/${board.id}`, { method: "DELETE", headers: { authorization: `Bearer ${admin}` } });
  // Its session is over at once.
  await page.goto("/ui/runs");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  watch.clean(refusals);
}

/** @returns {import("./report.mjs").Test[]} */
export const tests = () => [{ name: "access: the first key, signing in and out, what a reader is refused, the audit", run: firstKeyToSignOut, beside: true }];
