// Which page an address names.
import { html, useEffect } from "../lib/dom.js";
import { place, to } from "../lib/route.js";
import { Nothing } from "../ui/parts.js";
import { Home } from "./home.js";

const PAGES = {
  home: { title: "Home", show: () => html`<${Home} />` },
};

const Missing = ({ page }) => html`<div class="card"><${Nothing} title=${`There is no page called ‘${page}’.`}><a class="button" href=${to.home()}>Home</a><//></div>`;

export function Page() {
  const { page, id, rest } = place.value;
  const known = PAGES[page];
  useEffect(() => {
    document.title = `${id ?? known?.title ?? "Not found"} · ductor`;
  }, [page, id]);
  return known ? known.show(id, rest) : html`<${Missing} page=${page} />`;
}
