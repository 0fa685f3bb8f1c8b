// Pictures of every page and tab of the demo scenario, in both themes, wide and narrow, into a folder; and the two of the
// README into docs/images. By hand: see README.md.
import { mkdir, stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { demo } from "./demo.mjs";
import { PAGES } from "./every_page.mjs";
import { launch, openPage } from "./pages.mjs";
import { Told } from "./report.mjs";

const [folder] = process.argv.slice(2);
if (!folder) {
  console.error("usage: DUCTOR_BIN=target/debug/ductor node tests/browser/screenshots.mjs FOLDER");
  process.exit(2);
}
const IMAGE_BYTES_MAX = 250_000;
const images = fileURLToPath(new URL("../../docs/images", import.meta.url));
await mkdir(folder, { recursive: true });
await mkdir(images, { recursive: true });

const scene = await demo();
const browser = await launch();

/** @param {import("playwright-core").Page} page @param {string} name */
async function take(page, name) {
  await page.mouse.move(0, 0);
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
  console.log(`${folder}/${name}.png`);
}

async function everything() {
  for (const [name, path] of Object.entries(PAGES)) {
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      for (const width of [1440, 360]) {
        const told = new Told();
        const { page, watch } = await openPage(browser, told, scene.daemon.url, { colorScheme, viewport: { width, height: width < 600 ? 780 : 900 } });
        const plain = name.replaceAll(" ", "-");
        await page.goto(typeof path === "string" ? path : path(scene.runs));
        await watch.settled();
        await take(page, `${plain}-${colorScheme}-${width}`);
        const tabs = page.getByRole("tab");
        for (let index = 1; index < (await tabs.count()); index += 1) {
          const tab = (await tabs.nth(index).innerText()).trim().replace(/[^A-Za-z]+/g, "-").toLowerCase();
          await tabs.nth(index).click();
          await watch.settled();
          await take(page, `${plain}-${tab}-${colorScheme}-${width}`);
        }
        for (const end of told.ends) await end();
      }
    }
  }
}

/** One window full, small enough for a repository. */
async function forReadme() {
  for (const [path, name] of [["/", "home"], ["/ui/slots", "slots"]]) {
    for (const colorScheme of /** @type {const} */ (["light", "dark"])) {
      const told = new Told();
      const { page, watch } = await openPage(browser, told, scene.daemon.url, { colorScheme, viewport: { width: 1280, height: 860 } });
      await page.goto(path);
      await watch.settled();
      const file = `${images}/${name}-${colorScheme}.png`;
      await writeFile(file, await page.screenshot());
      const { size } = await stat(file);
      console.log(`${file} ${size} bytes`);
      if (size > IMAGE_BYTES_MAX) throw new Error(`${file} has ${size} bytes, at most ${IMAGE_BYTES_MAX}`);
      for (const end of told.ends) await end();
    }
  }
}

try {
  await everything();
  await forReadme();
} finally {
  await browser.close();
  await scene.daemon.end();
}
