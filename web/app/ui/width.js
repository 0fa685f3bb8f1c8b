// How wide an element is, for drawings in whole pixels.
import { useLayoutEffect, useRef, useState } from "../lib/dom.js";

/** @param {number} first a guess before it is measured */
export function useWidth(first = 0) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    if (!element.current) return undefined;
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watcher.observe(element.current);
    return () => watcher.disconnect();
  }, []);
  return { element, width };
}
