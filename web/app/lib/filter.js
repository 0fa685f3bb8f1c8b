// Filters as text: `state:failed job:export since:1h` and words. Pure.

/**
 * @typedef {{key: string, about: string, values?: string[] | (() => string[])}} FilterKey
 * @typedef {{key: string, value: string, at: number, end: number}} Term a word without a key has the key ""
 */

/** @param {string} text @returns {Term[]} */
export function terms(text) {
  const found = [];
  const pattern = /(?:([a-z_]+):)?("([^"]*)"?|\S+)/g;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const value = match[3] ?? match[2];
    found.push({ key: match[1] ?? "", value, at: match.index, end: match.index + match[0].length });
  }
  return found;
}

/**
 * Reads a filter against the keys a list knows.
 * @param {string} text @param {FilterKey[]} keys
 * @returns {{query: Record<string, string[]>, words: string[], faults: string[]}}
 */
export function readFilter(text, keys) {
  const query = {};
  const words = [];
  const faults = [];
  for (const { key, value } of terms(text)) {
    if (key === "") {
      // A key of which nothing else is written yet asks for nothing.
      if (!keys.some((each) => value === `${each.key}:`)) words.push(value);
      continue;
    }
    const known = keys.find((each) => each.key === key);
    if (!known) faults.push(`there is no filter ‘${key}:’; there are ${keys.map((each) => `${each.key}:`).join(" ")}`);
    else if (value === "") faults.push(`‘${key}:’ needs a value`);
    else (query[key] ??= []).push(...value.split(",").filter(Boolean));
  }
  return { query, words, faults };
}

/** @param {string} value */
const quoted = (value) => (/\s/.test(value) ? `"${value}"` : value);

/**
 * The text with a term set to a value, or without it.
 * @param {string} text @param {string} key @param {string} value empty: taken out
 */
export function withTerm(text, key, value) {
  const rest = terms(text)
    .filter((term) => term.key !== key)
    .map((term) => text.slice(term.at, term.end));
  if (value) rest.push(`${key}:${quoted(value)}`);
  return rest.join(" ");
}

/**
 * What could be typed at the end of the text.
 * @param {string} text @param {FilterKey[]} keys
 * @returns {{insert: string, label: string, about: string}[]}
 */
export function completions(text, keys) {
  const word = /\S*$/.exec(text)?.[0] ?? "";
  const head = text.slice(0, text.length - word.length);
  const colon = word.indexOf(":");
  if (colon < 0) {
    return keys
      .filter(({ key }) => key.startsWith(word))
      .map(({ key, about }) => ({ insert: `${head}${key}:`, label: `${key}:`, about }));
  }
  const known = keys.find(({ key }) => key === word.slice(0, colon));
  const values = typeof known?.values === "function" ? known.values() : (known?.values ?? []);
  const begun = word.slice(colon + 1);
  return values
    .filter((value) => value.startsWith(begun) && value !== begun)
    .slice(0, 12)
    .map((value) => ({ insert: `${head}${known?.key}:${quoted(value)} `, label: value, about: "" }));
}
