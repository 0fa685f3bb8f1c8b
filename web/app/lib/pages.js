// Lists that come by pages: the first page is kept true by the feed, further ones are read once when they are asked for.
import { signal, useMemo } from "./dom.js";
import { get, withQuery } from "./api.js";
import { useQuery } from "./store.js";

/**
 * @param {string} path without cursor
 * @param {{topics?: string[], touches?: (change: object) => boolean, keyOf: (row: any) => string}} options
 */
export function usePages(path, options) {
  const first = useQuery(path, options);
  const further = useMemo(() => signal({ rows: [], next: undefined, begun: false, loading: false, error: undefined }), [path]);
  const state = further.value;
  const seen = new Set();
  const rows = [...(first.data ?? []), ...state.rows].filter((row) => {
    const key = options.keyOf(row);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
  const next = state.begun ? state.next : first.next;
  const more = async () => {
    const cursor = next;
    further.value = { ...further.peek(), loading: true, error: undefined };
    try {
      const page = await get(withQuery(path, { "pagination.cursor": cursor }));
      const known = further.peek();
      further.value = { rows: [...known.rows, ...page.body], next: page.next, begun: true, loading: false, error: undefined };
    } catch (error) {
      further.value = { ...further.peek(), loading: false, error };
    }
  };
  return { ...first, rows, more: next ? more : undefined, loadingMore: state.loading, moreError: state.error };
}
