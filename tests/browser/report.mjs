// Runs tests one after the other and says what came of each, in the lines that `cargo test` would print.
import { mkdir } from "node:fs/promises";
import { performance } from "node:perf_hooks";

const LANES = 2;

/** @typedef {{name: string, beside?: boolean, run: (t: Told, browser: import("playwright-core").Browser) => Promise<void>}} Test */

/** What a test may say besides passing, and whose picture is taken when it fails. */
export class Told {
  constructor() {
    /** @type {import("playwright-core").Page[]} */
    this.pages = [];
    /** @type {string[]} */
    this.notes = [];
    /** @type {(() => Promise<unknown>)[]} */
    this.ends = [];
    /** @type {Error[]} */
    this.faults = [];
  }

  /**
   * Something that may be wrong without hindering the rest of the test, which fails at its end.
   * @param {string} what @param {() => Promise<unknown> | unknown} look
   */
  async check(what, look) {
    try {
      await look();
    } catch (error) {
      error.message = `${what}: ${error.message}`;
      this.faults.push(error);
    }
  }

  /** A figure that is printed, not judged. @param {string} text */
  note(text) {
    this.notes.push(text);
  }

  /** Done when the test is over, the newest first. @param {() => Promise<unknown>} end */
  atEnd(end) {
    this.ends.push(end);
  }
}

/** @param {string} folder @param {string} name @param {Told} told */
async function pictures(folder, name, told) {
  await mkdir(folder, { recursive: true });
  const paths = [];
  for (const [index, page] of told.pages.entries()) {
    const path = `${folder}/${name.replace(/[^a-z0-9]+/gi, "-")}${index || ""}.png`;
    try {
      await page.screenshot({ path, fullPage: true, timeout: 10_000 });
      paths.push(path);
    } catch {
      // The page is gone with what failed.
    }
  }
  return paths;
}

/** What is told of a fault: its sentence and the lines of these files. @param {any} fault */
function said(fault) {
  const places = String(fault.stack ?? "").split("\n").filter((line) => /^\s+at .*(?<!node_modules.*)tests\/browser/.test(line));
  return [...String(fault.message ?? fault).split("\n").slice(0, 40), ...places.slice(0, 4)].join("\n    ");
}

/**
 * @param {Test[]} tests @param {import("playwright-core").Browser} browser @param {{folder: string, patience?: number}} options
 * @returns {Promise<number>} how many failed
 */
export async function runAll(tests, browser, { folder, patience = 300_000 }) {
  let failed = 0;
  const one = async ({ name, run }) => {
    const told = new Told();
    const began = performance.now();
    let timer;
    const { faults } = told;
    try {
      const late = new Promise((_, no) => { timer = setTimeout(() => no(new Error(`not done after ${patience / 1000} s`)), patience); });
      await Promise.race([run(told, browser), late]);
    } catch (error) {
      faults.push(error);
    }
    clearTimeout(timer);
    const seen = faults.length > 0 ? await pictures(folder, name, told) : [];
    for (const end of told.ends.reverse()) {
      await end().catch((error) => { faults.push(error); });
    }
    const took = `${((performance.now() - began) / 1000).toFixed(1)} s`;
    console.log(`test ${name} ... ${faults.length > 0 ? "FAILED" : "ok"} <${took}>`);
    for (const note of told.notes) console.log(`    ${note}`);
    if (faults.length > 0) {
      failed += 1;
      for (const fault of faults) console.log(`    ${said(fault)}`);
      for (const path of seen) console.log(`    picture: ${path}`);
    }
  };
  // Who only looks may do so beside another one; who measures or kills is alone.
  const lookers = tests.filter(({ beside }) => beside);
  await Promise.all(Array.from({ length: LANES }, async () => {
    for (let test = lookers.shift(); test; test = lookers.shift()) await one(test);
  }));
  for (const test of tests.filter(({ beside }) => !beside)) await one(test);
  return failed;
}
