// A page of the browser under watch: what it asks for, what it complains of, and when it has come to rest.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";
import { until } from "./daemon.mjs";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--force-color-profile=srgb"];
const QUIET_MS = 150;

/** Headless, with a profile of its own that goes with it. */
export const launch = () => chromium.launch({ executablePath: process.env.DUCTOR_CHROMIUM || "/usr/bin/chromium", args: FLAGS });

/** What a page did that it should not. */
export class Watch {
  /** @param {import("playwright-core").Page} page @param {string} origin */
  constructor(page, origin) {
    this.page = page;
    this.origin = origin;
    /** @type {string[]} */
    this.faults = [];
    this.pending = new Set();
    this.quietSince = Date.now();
    this.requests = 0;
    const isStream = (request) => /\/api\/stream|\/log\/tail/.test(request.url());
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.faults.push(`console ${message.type()}: ${message.text()} ${message.location().url ?? ""}`);
    });
    page.on("pageerror", (error) => this.faults.push(`page error: ${error.stack ?? error.message}`));
    page.on("request", (request) => {
      this.requests += 1;
      if (!request.url().startsWith(`${origin}/`)) this.faults.push(`a request to another host: ${request.url()}`);
      if (!isStream(request)) this.pending.add(request);
    });
    const done = (request) => {
      this.pending.delete(request);
      this.quietSince = Date.now();
    };
    page.on("requestfinished", done);
    page.on("requestfailed", (request) => {
      done(request);
      const why = request.failure()?.errorText ?? "";
      // A page that is left takes its requests back.
      if (why !== "net::ERR_ABORTED") this.faults.push(`a request failed: ${request.method()} ${request.url()} ${why}`);
    });
    page.on("response", (response) => {
      if (response.status() >= 400) this.faults.push(`answered ${response.status()}: ${response.request().method()} ${response.url()}`);
    });
  }

  /** Waits until a head of the first order is there and nothing has been asked for a while. */
  async settled() {
    await this.page.getByRole("heading", { level: 1 }).first().waitFor();
    await until("the page to come to rest", () => this.pending.size === 0 && Date.now() - this.quietSince > QUIET_MS);
    await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  }

  /** Fails with all that was noted. @param {(fault: string) => boolean} [allowed] */
  clean(allowed = () => false) {
    const left = this.faults.filter((fault) => !allowed(fault));
    this.faults = [];
    assert.deepEqual(left, [], "the page complained");
  }
}

/**
 * A page in a context of its own.
 * @param {import("playwright-core").Browser} browser
 * @param {import("./report.mjs").Told} told
 * @param {string} origin
 * @param {import("playwright-core").BrowserContextOptions} [options]
 */
export async function openPage(browser, told, origin, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: "Europe/Berlin", locale: "en-GB", reducedMotion: "reduce", baseURL: origin, ...options });
  context.setDefaultTimeout(20_000);
  told.atEnd(() => context.close());
  const page = await context.newPage();
  told.pages.push(page);
  return { page, watch: new Watch(page, origin) };
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails with what axe finds serious or critical on the page as it is. @param {import("playwright-core").Page} page @param {string} what @param {string[]} [rules] these only */
export async function accessible(page, what, rules) {
  // Through the debugger's door: the page's own content policy stays in force.
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axe);
  const found = await page.evaluate(async (only) => {
    const options = { resultTypes: ["violations"], iframes: false, ...(only ? { runOnly: only } : {}) };
    const { violations } = await /** @type {any} */ (window).axe.run(document, options);
    return violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, help, nodes }) => `${id}: ${help}\n  ${nodes.slice(0, 4).map((node) => `${node.target.join(" ")} ${node.html.slice(0, 160)} ${node.any[0]?.message ?? ""}`).join("\n  ")}`);
  }, rules);
  assert.deepEqual(found, [], `axe, ${what}`);
}

/** Fails if the page can be scrolled sideways. @param {import("playwright-core").Page} page */
export async function fitsWidth(page) {
  const wide = await page.evaluate(() => {
    const over = document.documentElement.scrollWidth - innerWidth;
    if (over <= 0) return undefined;
    const guilty = [...document.querySelectorAll("body *")].filter((each) => each.getBoundingClientRect().right > innerWidth + 1);
    return `${over} px too wide: ${guilty.slice(0, 5).map((each) => each.outerHTML.slice(0, 120)).join("\n")}`;
  });
  assert.equal(wide, undefined);
}

/** Tabs through the whole page: focus is seen wherever it is, and comes round. @param {import("playwright-core").Page} page */
export async function walk(page) {
  const STEPS_MAX = 900;
  await page.evaluate(() => {
    /** @type {any} */ (window).walked = new Set();
    // The walk begins where the document does, wherever somebody has clicked before.
    document.body.tabIndex = -1;
    document.body.focus();
    document.body.removeAttribute("tabindex");
    scrollTo(0, 0);
  });
  let count = 0;
  for (; count < STEPS_MAX; count += 1) {
    await page.keyboard.press("Tab");
    const step = await page.evaluate(() => {
      const walked = /** @type {any} */ (window).walked;
      const at = document.activeElement;
      if (!at || at === document.body || walked.has(at)) return { end: true, back: walked.size };
      walked.add(at);
      const box = at.getBoundingClientRect();
      const inView = box.width > 0 && box.height > 0 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
      const marked = (element) => {
        const style = getComputedStyle(element);
        return (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
      };
      const seen = [at, at.parentElement, at.parentElement?.parentElement].some((each) => each && marked(each));
      return { end: false, inView, seen, what: at.outerHTML.slice(0, 160) };
    });
    if (step.end) break;
    assert.ok(step.inView, `focus is outside of what is seen: ${step.what}`);
    assert.ok(step.seen, `focus is not marked: ${step.what}`);
  }
  assert.ok(count < STEPS_MAX, "the walk does not end");
  assert.ok(count >= 8, `only ${count} stops`);
  return count;
}
