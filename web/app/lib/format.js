// Numbers and words as people read them. Pure.

/** @param {number} count @param {string} one @param {string} [many] */
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

const grouped = new Intl.NumberFormat("en-US");
/** @param {number} value */
export const number = (value) => grouped.format(value);

/** @param {number} value */
export function bytes(value) {
  if (!Number.isFinite(value)) return "—";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let at = 0;
  while (size >= 1024 && at < units.length - 1) {
    size /= 1024;
    at += 1;
  }
  return `${at === 0 || size >= 100 ? Math.round(size) : size.toFixed(1)} ${units[at]}`;
}

/** A part of one as a percentage that is 100 only when it is all. @param {number} part */
export function percent(part) {
  if (part >= 1) return "100 %";
  if (part <= 0) return "0 %";
  return part > 0.99 ? `${(Math.floor(part * 1000) / 10).toFixed(1)} %` : `${Math.round(part * 100)} %`;
}

/** The end of an id, enough to tell it from its neighbours; the whole id is in the tooltip. @param {string} id */
export const shortId = (id) => (id.length > 14 ? `…${id.slice(-8)}` : id);

/** @param {string | string[]} command */
export const commandText = (command) => (Array.isArray(command) ? command.map(quote).join(" ") : command);

/** A word as a shell takes it. @param {string} word */
export const quote = (word) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

/** @param {string} text */
export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** An instant of the API in milliseconds, or undefined. @param {string | null | undefined} text */
export const instant = (text) => {
  const at = text ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? undefined : at;
};
