// A job that the configuration does not know: says so, with names that are near.
import { html, useEffect, useState } from "../lib/dom.js";
import { get, withQuery } from "../lib/api.js";
import { to } from "../lib/route.js";
import { near } from "../lib/schedule.js";
import { Nothing, PageHead } from "../ui/parts.js";

const PAGES_MAX = 4;

/** The names of jobs; of very many only the first. */
async function names() {
  const found = [];
  let cursor;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { body, next } = await get(withQuery("/api/jobs", { "pagination.page_size": 500, "pagination.cursor": cursor }));
    found.push(...body.map(({ name }) => name));
    if (!next) break;
    cursor = next;
  }
  return found;
}

/** @param {{name: string, error: any}} props */
export function Missing({ name }) {
  const [close, setClose] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    names().then((all) => setClose(near(name, all)), () => {});
  }, [name]);
  return html`<nav class="crumbs small" aria-label="Where this is"><a href=${to.jobs()}>Jobs and schedules</a></nav>
    <${PageHead} title=${name} />
    <section class="card"><${Nothing} title=${`The configuration has no job called ‘${name}’.`}>
      ${close.length > 0 && html`<p>Perhaps you mean ${close.map((each, at) => html`${at > 0 ? ", " : ""}<a key=${each} href=${to.job(each)}>${each}</a>`)}.</p>`}
      <p class="small quiet">If it was taken out of the file, its runs are still there.</p>
      <div class="row wrap"><a class="button" href=${to.jobs()}>All jobs</a><a class="button" href=${to.runs(`job:${/\s/.test(name) ? `"${name}"` : name}`)}>Runs of that name</a></div><//></section>`;
}
