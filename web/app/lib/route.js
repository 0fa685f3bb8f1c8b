// Where we are: the address holds page, filter, selection and tab, so that a view can be shared and Back works.
import { computed, signal } from "./dom.js";

const read = () => ({ path: location.pathname, query: new URLSearchParams(location.search), hash: location.hash });

export const here = signal(read());

addEventListener("popstate", () => {
  here.value = read();
});

/**
 * @param {string} to
 * @param {{replace?: boolean}} [options]
 */
export function go(to, options = {}) {
  if (to === location.pathname + location.search + location.hash) return;
  history[options.replace ? "replaceState" : "pushState"](null, "", to);
  const before = here.peek().path;
  here.value = read();
  if (here.peek().path !== before) scrollTo(0, 0);
}

/** The value of a query parameter, or "". @param {string} name */
export const param = (name) => here.value.query.get(name) ?? "";

/**
 * The present address with other query parameters; an empty value takes one out.
 * @param {Record<string, string | number | undefined | null>} changes
 */
export function addressWith(changes) {
  const query = new URLSearchParams(here.peek().query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const text = query.toString();
  return here.peek().path + (text ? `?${text}` : "");
}

/** @param {Record<string, string | number | undefined | null>} changes @param {{replace?: boolean}} [options] */
export const setParams = (changes, options) => go(addressWith(changes), options);

/** Links of our own change the page without loading it; everything else is the browser's. */
export function catchLinks() {
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const link = target.closest?.("a[href]");
    const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    if (!link || !plain || event.defaultPrevented) return;
    const href = link.getAttribute("href") ?? "";
    if (link.hasAttribute("download") || link.getAttribute("target") || !(href === "/" || href.startsWith("/ui/") || href.startsWith("?"))) return;
    event.preventDefault();
    go(href.startsWith("?") ? here.peek().path + href : href);
  });
}

export { to } from "./to.js";

/** The page's name and the thing it is about: `["runs", "r_…"]`. */
export const place = computed(() => {
  const { path } = here.value;
  const parts = path === "/" ? ["home"] : path.replace(/^\/ui\/?/, "").split("/").filter(Boolean).map(decode);
  return { page: parts[0] ?? "home", id: parts[1], rest: parts.slice(2) };
});

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
