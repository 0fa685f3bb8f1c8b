// Lists that come by pages: the first page is kept true by the feed. Further ones are read when they are asked for, and
// anew when one of their rows changes or the first page has moved on; they outlive the page, so that Back finds them.
import { signal, useEffect, useMemo, useRef } from "./dom.js";
import { get, withQuery } from "./api.js";
import { held, listen } from "./live.js";
import { bridge, reuse } from "./still.js";
import { useQuery } from "./store.js";

/** Between two readings of further pages. */
const REREAD_MS = 3000;
const REMEMBERED_MAX = 12;

/** @typedef {{pages: {rows: any[], next?: string, scanned?: string}[], after?: string, loading: boolean, error: any}} Further */

/** @type {Map<string, {value: Further, peek: () => Further}>} */
const remembered = new Map();

/** @param {string} path */
function furtherOf(path) {
  let known = remembered.get(path);
  if (!known) known = signal({ pages: [], after: undefined, loading: false, error: undefined });
  remembered.delete(path);
  remembered.set(path, known);
  for (const old of remembered.keys()) if (remembered.size > REMEMBERED_MAX) remembered.delete(old);
  return known;
}

/**
 * Reads the further pages again, from where the first one ends now.
 * @param {string} path @param {{value: Further, peek: () => Further}} further @param {string | undefined} after
 */
async function reread(path, further, after) {
  const count = further.peek().pages.length;
  const pages = [];
  let cursor = after;
  while (cursor && pages.length < count) {
    const { body, next, rest } = await get(withQuery(path, { "pagination.cursor": cursor }));
    pages.push({ rows: body, next, scanned: rest.scanned_to });
    cursor = next;
  }
  // Somebody asked for one more meanwhile: the next reading takes it along.
  if (further.peek().pages.length === count) further.value = { pages, after, loading: false, error: undefined };
}

/**
 * @param {string | null} path without cursor; `null` asks nothing
 * @param {{topics?: string[], touches?: (change: object) => boolean, rest?: number, keyOf: (row: any) => string}} options
 */
export function usePages(path, options) {
  const first = useQuery(path, options);
  const further = useMemo(() => furtherOf(path ?? ""), [path]);
  const state = further.value;
  const shown = useRef({ path, rows: /** @type {any[]} */ ([]) });
  const before = shown.current.path === path ? shown.current.rows : [];
  const rows = useMemo(() => {
    const all = bridge(before, first.data ?? [], state.pages.flatMap((page) => page.rows), options.keyOf);
    return reuse(before, all, options.keyOf);
  }, [path, first.data, state.pages]);
  shown.current = { path, rows };
  const latest = useRef(first.next);
  latest.current = first.next;
  const again = useRef(() => {});
  useEffect(() => {
    let timer;
    again.current = () => {
      if (timer !== undefined || further.peek().pages.length === 0) return;
      timer = setTimeout(() => {
        timer = undefined;
        reread(path ?? "", further, latest.current).catch((error) => {
          further.value = { ...further.peek(), error };
        });
      }, REREAD_MS);
    };
    const stop = listen((change) => {
      const concerns = () => further.peek().pages.some((page) => page.rows.some((row) => options.keyOf(row) === change.id));
      if (!held.peek() && (change.kind === "resync" || concerns())) again.current();
    });
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [path, further]);
  useEffect(() => {
    if (state.pages.length > 0 && first.data && first.next !== state.after) again.current();
  }, [first.next, state.after]);
  const next = state.pages.length > 0 ? state.pages[state.pages.length - 1].next : first.next;
  const more = async () => {
    further.value = { ...further.peek(), loading: true, error: undefined };
    try {
      const page = await get(withQuery(path ?? "", { "pagination.cursor": next }));
      const known = further.peek();
      const after = known.pages.length > 0 ? known.after : next;
      further.value = { pages: [...known.pages, { rows: page.body, next: page.next, scanned: page.rest.scanned_to }], after, loading: false, error: undefined };
    } catch (error) {
      further.value = { ...further.peek(), loading: false, error };
    }
  };
  const scanned = state.pages.length > 0 ? state.pages[state.pages.length - 1].scanned : first.rest.scanned_to;
  return { ...first, rows, scanned, more: next ? more : undefined, loadingMore: state.loading, moreError: state.error };
}
