// Begins the page: keys, links, the live feed, and the page that the address names.
import { html, render } from "./lib/dom.js";
import * as keys from "./lib/keys.js";
import * as live from "./lib/live.js";
import { catchLinks } from "./lib/route.js";
import { Page } from "./pages/index.js";
import { Shell } from "./ui/shell.js";

keys.begin();
catchLinks();
live.begin();
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${Shell}><${Page} /><//>`, root);
