// What a person chose on this browser: theme, zone, wrapping. Kept in local storage where that is allowed.
import { effect, signal } from "./dom.js";

/**
 * A signal whose value is kept under a name.
 * @template T
 * @param {string} name
 * @param {T} first
 * @param {T[]} [allowed] values that are taken from storage; others are forgotten
 */
export function kept(name, first, allowed) {
  const key = `ductor.${name}`;
  let value = first;
  try {
    const text = localStorage.getItem(key);
    if (text !== null) {
      const read = allowed ? text : JSON.parse(text);
      if (!allowed || allowed.includes(read)) value = read;
    }
  } catch {
    // Forbidden or damaged: the first value it is.
  }
  const it = signal(value);
  let begun = false;
  effect(() => {
    const text = allowed ? String(it.value) : JSON.stringify(it.value);
    if (begun) {
      try {
        localStorage.setItem(key, text);
      } catch {
        // It holds for this page only.
      }
    }
    begun = true;
  });
  return it;
}

/** `auto`, `light` or `dark`. */
export const theme = kept("theme", "auto", ["auto", "light", "dark"]);
/** In which zone times are shown: `utc`, `browser`, or `job` for the zone of each job. */
export const zone = kept("zone", "browser", ["utc", "browser", "job"]);

effect(() => {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
});

/**
 * The value after this one.
 * @template T
 * @param {T[]} values
 * @param {T} now
 */
export const after = (values, now) => values[(values.indexOf(now) + 1) % values.length];
