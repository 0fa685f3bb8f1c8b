// The configuration as lines that fold and can be searched. Pure: values in, lines out.
import { bytes, number } from "./format.js";
import { span } from "./time.js";
import { to } from "./to.js";

/**
 * @typedef {{path: string, depth: number, key: string, kind: "fold" | "leaf", value?: string, type?: string, hint?: string, count?: string,
 *   open?: boolean, found?: boolean, href?: string}} Line
 */

const isBranch = (value) => value !== null && typeof value === "object";
const isNothing = (value) => value === null || (Array.isArray(value) && value.length === 0) || (isBranch(value) && Object.values(value).every(isNothing));

/** The children of a value by name; things of a list are called by their own name where they have one. @param {any} value @returns {[string, any][]} */
function children(value) {
  if (Array.isArray(value)) return value.map((each, index) => [typeof each?.name === "string" ? each.name : String(index + 1), each]);
  return Object.entries(value);
}

/** Settings first, then what there may be a thousand of. */
const LAST = ["pools", "crontabs", "jobs"];

/** @param {any} config @returns {[string, any][]} */
const sections = (config) => Object.entries(config).sort(([one], [other]) => LAST.indexOf(one) - LAST.indexOf(other));

/** What a number means that only says milliseconds or bytes. @param {string} key @param {any} value */
function hintOf(key, value) {
  if (typeof value !== "number") return undefined;
  if (/Ms$/.test(key) && value >= 1000) return span(value);
  if (/bytes$/i.test(key) && value >= 1024) return bytes(value);
  return undefined;
}

function text(value) {
  if (value === null) return { value: "—", type: "null" };
  if (Array.isArray(value)) return { value: "[]", type: "null" };
  if (isBranch(value)) return { value: "{}", type: "null" };
  if (typeof value === "string") return { value: value === "" ? "\"\"" : value, type: "text" };
  return { value: String(value), type: typeof value };
}

const HOMES = { jobs: to.job, pools: to.slots };

/** Whether a value says it, by key or content, anywhere below. */
function says(key, value, wanted) {
  if (key.toLowerCase().includes(wanted)) return true;
  if (isBranch(value)) return children(value).some(([name, each]) => says(name, each, wanted));
  return value !== null && String(value).toLowerCase().includes(wanted);
}

/**
 * @param {any} config
 * @param {{find?: string, folded?: Set<string>, all?: boolean, max?: number}} [options]
 *   `folded`: paths whose state differs from how they begin; `all`: also what is not set
 * @returns {{lines: Line[], more: number, found: number}}
 */
export function configLines(config, { find = "", folded = new Set(), all = false, max = 300 } = {}) {
  const wanted = find.trim().toLowerCase();
  /** @type {Line[]} */
  const lines = [];
  let more = 0;
  let found = 0;
  const push = (line) => {
    if (lines.length < max) lines.push(line);
    else more += 1;
  };
  /** `shown`: a name above was found, so that everything here is of interest. `named`: its name stands above already. */
  const walk = (value, path, depth, shown, named) => {
    for (const [key, each] of path ? children(value) : sections(value)) {
      if (named && key === "name") continue;
      if (!all && isNothing(each)) continue;
      const here = path ? `${path}.${key}` : key;
      const itself = wanted !== "" && key.toLowerCase().includes(wanted);
      if (wanted && !shown && !itself && !says(key, each, wanted)) continue;
      const home = path && Array.isArray(value) ? HOMES[path] : undefined;
      if (isBranch(each) && !isNothing(each)) {
        const kids = children(each);
        // Sections begin open, things of a list closed; what a search found deeper is opened.
        const first = wanted ? !itself && !shown : !Array.isArray(value);
        const open = folded.has(here) ? !first : first;
        if (itself) found += 1;
        push({ path: here, depth, key, kind: "fold", open, found: itself, count: Array.isArray(each) ? number(kids.length) : undefined, href: home?.(key) });
        if (open) walk(each, here, depth + 1, shown || itself, Array.isArray(value) && typeof each.name === "string");
      } else {
        const { value: words, type } = text(each);
        const hit = wanted !== "" && (itself || (type !== "null" && words.toLowerCase().includes(wanted)));
        if (hit) found += 1;
        push({ path: here, depth, key, kind: "leaf", value: words, type, hint: hintOf(key, each), found: hit });
      }
    }
  };
  walk(config, "", 0, false, false);
  return { lines, more, found };
}

/**
 * What a reload did, one sentence for each kind; empty if nothing differs.
 * @param {any} answer
 * @returns {{what: string, names: string[], of: string}[]}
 */
export function reloadWords(answer) {
  const found = [];
  const add = (what, names, of) => names.length > 0 && found.push({ what, names, of });
  for (const [field, one] of [["jobs", "job"], ["pools", "slot pool"]]) {
    const { added, changed, removed } = answer[field];
    const head = (names) => `${number(names.length)} ${names.length === 1 ? one : `${one}s`}`;
    add(`${head(added)} added`, added, "good");
    add(`${head(changed)} changed`, changed.map(({ name, keys }) => `${name} (${keys.join(", ")})`), "busy");
    add(`${head(removed)} removed`, removed, "wait");
  }
  const setting = ({ key, from, to: next }) => `${key}: ${plain(from)} → ${plain(next)}`;
  add(`${number(answer.settings.length)} ${answer.settings.length === 1 ? "setting is" : "settings are"} in force now`, answer.settings.map(setting), "busy");
  add(`${number(answer.needs_restart.length)} ${answer.needs_restart.length === 1 ? "setting needs" : "settings need"} a restart`, answer.needs_restart.map(setting), "wait");
  if (answer.cancelled_entries > 0) {
    found.push({ what: `${number(answer.cancelled_entries)} waiting ${answer.cancelled_entries === 1 ? "entry was" : "entries were"} cancelled: the job was changed, disabled or removed`, names: [], of: "wait" });
  }
  return found;
}

/** A value of a setting as text. @param {any} value */
export const plain = (value) => (value === null ? "not set" : typeof value === "string" ? value : JSON.stringify(value));
