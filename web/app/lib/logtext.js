// What is shown of a row: its text, cut where it is long, in parts of one look, with what was searched for marked. Pure.
import { parse } from "./ansi.js";

/** Bytes shown of a long row before somebody asks for the rest; of one that only goes on with a line, fewer. */
export const CUT = 4096;
export const CUT_REST = 1024;
const RETURN = 13;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Bytes as text; what is not UTF-8 becomes replacement characters. @param {Uint8Array} bytes */
export const textOf = (bytes) => decoder.decode(bytes);

/** From where a terminal would still show it: a carriage return begins the line anew. @param {Uint8Array} payload */
function overwritten(payload) {
  let end = payload.length;
  while (end > 0 && payload[end - 1] === RETURN) end -= 1;
  return { from: payload.lastIndexOf(RETURN, Math.max(end - 1, 0)) + 1, end };
}

/** A cut that does not part a letter. @param {Uint8Array} bytes @param {number} at */
function wholeLetters(bytes, at) {
  let cut = at;
  while (cut > 0 && at - cut < 3 && (bytes[cut] & 0xc0) === 0x80) cut -= 1;
  return cut;
}

/**
 * @typedef {{text: string, className: string, mark?: "one" | "this"}} Part
 * @param {Uint8Array} payload @param {object} style at its begin
 * @param {{cut?: number, after?: Uint8Array, joins?: boolean}} [options] `after`: the first bytes of the row that goes on
 *   with this one, which may hold the end of a letter; `joins`: this row goes on with another, whose letter may end here
 * @returns {{parts: Part[], more: number, after: object}} `more`: bytes that are not shown
 */
export function readRow(payload, style, options = {}) {
  const { from, end } = overwritten(payload);
  const before = from > 0 ? parse(textOf(payload.subarray(0, from - 1)), style).after : style;
  let shown = payload.subarray(from, end);
  if (options.joins && from === 0) shown = shown.subarray(lettersRest(shown));
  const more = options.cut !== undefined && shown.length > options.cut ? shown.length - wholeLetters(shown, options.cut) : 0;
  if (more > 0) {
    const { parts } = parse(textOf(shown.subarray(0, shown.length - more)), before);
    return { parts, more, after: parse(textOf(shown), before).after };
  }
  if (options.after) shown = withEnd(shown, options.after);
  const { parts, after } = parse(textOf(shown), before);
  return { parts, more: 0, after };
}

/** Bytes at the begin that end a letter. @param {Uint8Array} bytes */
function lettersRest(bytes) {
  let count = 0;
  while (count < 3 && count < bytes.length && (bytes[count] & 0xc0) === 0x80) count += 1;
  return count;
}

/** The bytes, and of those that follow what ends their last letter. @param {Uint8Array} bytes @param {Uint8Array} next */
function withEnd(bytes, next) {
  const rest = lettersRest(next);
  if (rest === 0 || bytes.length === 0 || bytes[bytes.length - 1] < 0x80) return bytes;
  const whole = new Uint8Array(bytes.length + rest);
  whole.set(bytes);
  whole.set(next.subarray(0, rest), bytes.length);
  return whole;
}

/** The look at the end of a row, for the next one of its stream. @param {Uint8Array} payload @param {object} style */
export const styleAfter = (payload, style) => (payload.includes(27) ? parse(textOf(payload).replaceAll("\r", ""), style).after : style);

/**
 * Marks what was searched for in parts that are shown. A match may lie across parts.
 * @param {Part[]} parts @param {string} wanted @param {{fold?: boolean, at?: number}} [options] `at`: which one is the
 *   present one, counted from 0
 * @returns {Part[]}
 */
export function mark(parts, wanted, options = {}) {
  if (!wanted) return parts;
  const whole = parts.map((part) => part.text).join("");
  const [text, word] = options.fold ? [fold(whole), fold(wanted)] : [whole, wanted];
  const found = [];
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) found.push(at);
  if (found.length === 0) return parts;
  const marked = [];
  let begin = 0;
  let next = 0;
  for (const part of parts) {
    const end = begin + part.text.length;
    let at = begin;
    while (at < end) {
      while (next < found.length && found[next] + word.length <= at) next += 1;
      const hit = found[next];
      const inside = hit !== undefined && hit <= at;
      const stop = Math.min(end, inside ? hit + word.length : (hit ?? end));
      const piece = { text: part.text.slice(at - begin, stop - begin), className: part.className };
      marked.push(inside ? { ...piece, mark: next === options.at ? "this" : "one" } : piece);
      at = stop;
    }
    begin = end;
  }
  return marked;
}

/** Letters A to Z as a to z; the length stays. @param {string} text */
export const fold = (text) => text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());

/**
 * Where a word begins in bytes, up to `most` times, without overlaps.
 * @param {Uint8Array} bytes @param {Uint8Array} word @param {boolean} [folded] letters A to Z as a to z
 * @param {number} [most]
 */
export function findAll(bytes, word, folded = false, most = 10_000) {
  const found = [];
  if (word.length === 0) return found;
  const same = folded ? (one, other) => one === other || (lower(one) === lower(other)) : (one, other) => one === other;
  const last = bytes.length - word.length;
  const other = folded ? swapped(word[0]) : word[0];
  let small = bytes.indexOf(word[0]);
  let big = other === word[0] ? -1 : bytes.indexOf(other);
  while (found.length < most) {
    if (small < 0 && big < 0) return found;
    const at = small < 0 ? big : big < 0 ? small : Math.min(small, big);
    if (at > last) return found;
    let length = 1;
    while (length < word.length && same(bytes[at + length], word[length])) length += 1;
    const hit = length === word.length;
    if (hit) found.push(at);
    const from = hit ? at + word.length : at + 1;
    if (small >= 0 && small < from) small = bytes.indexOf(word[0], from);
    if (big >= 0 && big < from) big = bytes.indexOf(other, from);
  }
  return found;
}

const lower = (byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte);
const swapped = (byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte >= 97 && byte <= 122 ? byte - 32 : byte);
