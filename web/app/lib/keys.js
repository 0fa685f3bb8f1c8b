// Keys of the whole page. None of them fires inside a text field, and a dialog takes them for itself.

/** @typedef {{keys: string, about: string, run: (event: KeyboardEvent) => void, group?: string}} Binding */

/** @type {Map<string, Binding>} */
const bindings = new Map();
let begun = "";
let begunAt = 0;
const SEQUENCE_MS = 1200;

/**
 * @param {string} keys like `Ctrl-K`, `g h`, `/`
 * @param {string} about @param {(event: KeyboardEvent) => void} run @param {string} [group]
 * @returns {() => void} takes it away
 */
export function bind(keys, about, run, group = "Everywhere") {
  const before = bindings.get(keys);
  const binding = { keys, about, run, group };
  bindings.set(keys, binding);
  return () => {
    if (bindings.get(keys) !== binding) return;
    if (before) bindings.set(keys, before);
    else bindings.delete(keys);
  };
}

/** All that are bound now, for the help. */
export const bound = () => [...bindings.values()];

/** @param {EventTarget | null} target */
export function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.matches("textarea, select")) return true;
  return target.matches("input") && !target.matches("[type=checkbox], [type=radio], [type=button], [type=range]");
}

/** @param {KeyboardEvent} event */
function nameOf(event) {
  const key = event.key.length === 1 && (event.ctrlKey || event.metaKey) ? event.key.toUpperCase() : event.key;
  return `${event.ctrlKey || event.metaKey ? "Ctrl-" : ""}${event.altKey ? "Alt-" : ""}${key}`;
}

/** @param {KeyboardEvent} event */
export function onKey(event) {
  if (event.defaultPrevented || event.isComposing) return;
  const name = nameOf(event);
  const inDialog = document.querySelector("dialog[open]") !== null;
  const everywhere = name === "Ctrl-K";
  if (!everywhere && (isTyping(event.target) || inDialog)) return;
  const onControl = event.target instanceof Element && event.target.closest("button, a[href], summary, [role=tab]");
  if (name === "Enter" && onControl) return;
  const sequence = begun && event.timeStamp - begunAt < SEQUENCE_MS ? `${begun} ${name}` : "";
  begun = "";
  const binding = bindings.get(sequence) ?? bindings.get(name);
  if (binding) {
    event.preventDefault();
    binding.run(event);
  } else if ([...bindings.keys()].some((keys) => keys.startsWith(`${name} `))) {
    begun = name;
    begunAt = event.timeStamp;
  }
}

/** Begins; called once by the page. */
export const begin = () => document.addEventListener("keydown", onKey);
