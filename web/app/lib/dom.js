// The one door to the vendored libraries: markup, rendering, hooks, signals.
import { Fragment, h, render } from "../../vendor/preact.js";
import htm from "../../vendor/htm.js";

export const html = htm.bind(h);
export { Fragment, h, render };
export {
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../../vendor/hooks.js";
export { batch, computed, effect, signal, untracked } from "../../vendor/signals.js";
