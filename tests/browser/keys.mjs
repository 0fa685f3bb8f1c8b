// By keyboard alone: what is pressed everywhere, and that none of it fires where somebody writes.
import assert from "node:assert/strict";
import { until } from "./daemon.mjs";
import { openPage } from "./pages.mjs";
import { theScene } from "./scenes.mjs";

const heading = (page) => page.getByRole("heading", { level: 1 }).first().innerText();
const at = (page, path) => until(`the address to be ${path}`, () => new URL(page.url()).pathname === path);

async function begin(browser, t, path = "/") {
  const { daemon } = await theScene();
  const { page, watch } = await openPage(browser, t, daemon.url);
  await page.goto(path);
  await watch.settled();
  return { page, watch };
}

async function goes(t, browser) {
  const { page, watch } = await begin(browser, t);
  for (const [key, path, title] of [["r", "/ui/runs", /runs/i], ["s", "/ui/jobs", /jobs/i], ["p", "/ui/slots", /pools/i], ["h", "/", /./]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await at(page, path);
    await watch.settled();
    assert.match(await heading(page), title);
  }
  await page.goBack();
  await at(page, "/ui/slots");
  watch.clean();
}

async function dialogs(t, browser) {
  const { page, watch } = await begin(browser, t);
  const dialog = page.getByRole("dialog");
  await page.keyboard.press("?");
  await dialog.waitFor();
  assert.match(await dialog.innerText(), /Ctrl-K/);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  const opener = page.getByRole("button", { name: /^Go to/ });
  await opener.focus();
  await page.keyboard.press("Control+k");
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await until("focus to come back", () => opener.evaluate((element) => element === document.activeElement));
  watch.clean();
}

async function palette(t, browser) {
  const { page, watch } = await begin(browser, t);
  const options = page.getByRole("dialog").getByRole("option");
  for (const [typed, path] of [["thumbnails", "/ui/jobs/thumbnails"], ["warehouse", "/ui/slots/warehouse"], ["settings", "/ui/settings"]]) {
    await page.keyboard.press("Control+k");
    await page.getByRole("dialog").getByRole("combobox").pressSequentially(typed);
    await until("an entry", async () => (await options.first().innerText()).toLowerCase().includes(typed));
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await at(page, path);
    await watch.settled();
  }
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog").getByRole("combobox").pressSequentially("zzzzqqq");
  await until("no entry", async () => (await options.count()) === 0);
  watch.clean();
}

async function toggles(t, browser) {
  const { page, watch } = await begin(browser, t);
  const live = page.getByRole("banner").getByRole("button", { name: /^(Live|Paused)/ });
  await page.getByRole("button", { name: /^Live/ }).waitFor();
  await page.keyboard.press("p");
  await until("the page to hold still", async () => /paused/i.test(await live.innerText()));
  await page.keyboard.press("p");
  await until("the page to go on", async () => /live/i.test(await live.innerText()));
  const zoneOf = () => page.getByRole("banner").getByRole("button").allInnerTexts();
  const zone = (await zoneOf()).join(" ");
  await page.keyboard.press("t");
  await until("another zone", async () => (await zoneOf()).join(" ") !== zone);
  await page.reload();
  await watch.settled();
  assert.notEqual((await zoneOf()).join(" "), zone, "the zone is kept");
  watch.clean();
}

async function inFields(t, browser) {
  const { page, watch } = await begin(browser, t, "/ui/runs");
  await page.keyboard.press("/");
  const field = page.getByRole("combobox").first();
  await until("focus in the filter", () => field.evaluate((element) => element === document.activeElement));
  await page.keyboard.type("g h?pt", { delay: 20 });
  assert.equal(await field.inputValue(), "g h?pt");
  await watch.settled();
  assert.equal(new URL(page.url()).pathname, "/ui/runs");
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.match((await page.getByRole("banner").innerText()), /live/i);
}

async function rows(t, browser) {
  const { page, watch } = await begin(browser, t, "/ui/jobs");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const focused = await page.evaluate(() => document.activeElement?.closest("tr, li, article")?.textContent ?? "");
  assert.notEqual(focused, "", "a row has the focus");
  await page.keyboard.press("Enter");
  await until("the row's page", () => /^\/ui\/jobs\/./.test(new URL(page.url()).pathname));
  await watch.settled();
  watch.clean();
}

/** @returns {import("./report.mjs").Test[]} */
export const tests = () =>
  Object.entries({ "keys: g and a letter go to pages, and Back comes back": goes, "keys: ? and Ctrl-K open, Esc closes and gives focus back": dialogs, "keys: the palette finds by name": palette, "keys: p holds still, t changes the zone": toggles, "keys: none fires in a text field": inFields, "keys: j, k and Enter walk rows": rows })
    .map(([name, run]) => ({ name, run, beside: true }));
