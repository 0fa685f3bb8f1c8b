// How wide an element is, for drawings in whole pixels.
import { useCallback, useRef, useState } from "../lib/dom.js";

/**
 * `element` is given as the `ref` of what is measured, whenever that appears.
 * @param {number} first a guess before it is measured
 */
export function useWidth(first = 0) {
  const [width, setWidth] = useState(first);
  const watcher = useRef(/** @type {ResizeObserver | undefined} */ (undefined));
  const element = useCallback((/** @type {HTMLElement | null} */ node) => {
    watcher.current?.disconnect();
    if (!node) return;
    watcher.current = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watcher.current.observe(node);
  }, []);
  return { element, width };
}
