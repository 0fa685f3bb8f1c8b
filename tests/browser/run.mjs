// All tests of the dashboard in a browser. Words of the command line choose those whose names contain one of them.
import { fileURLToPath } from "node:url";
import { launch } from "./pages.mjs";
import { runAll } from "./report.mjs";
import { endScenes } from "./scenes.mjs";
import * as access from "./access.mjs";
import * as everyPage from "./every_page.mjs";
import * as flows from "./flows.mjs";
import * as keys from "./keys.mjs";
import * as large from "./large.mjs";
import * as lost from "./lost.mjs";

const SUITES = [everyPage, keys, flows, access, lost, large];

const wanted = process.argv.slice(2);
const chosen = SUITES.flatMap((suite) => suite.tests()).filter(({ name }) => wanted.length === 0 || wanted.some((word) => name.includes(word)));
const folder = process.env.DUCTOR_PICTURES ?? fileURLToPath(new URL("../../target/browser", import.meta.url));
let failed = 0;
if (chosen.length > 0) {
  // It takes a while, which the others can make use of.
  if (chosen.some((test) => "large" in test)) large.beginFilling();
  const browser = await launch();
  failed = await runAll(chosen, browser, { folder });
  await endScenes();
  await large.endFilling();
  await browser.close();
}
console.log(`${chosen.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
