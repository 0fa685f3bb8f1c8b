// The bytes of a log in rows. A record is a tag, a space, bytes, a line end (src/worker/process/record.rs); a row is what is
// shown as one line: records of one stream that follow each other, up to the one that ends its line. Pure; counts bytes.

/** Bytes of one row at most: one record of the longest kind. A longer line is several rows. */
export const ROW_MAX = 64 * 1024 + 3;
/** Bytes of a range in which a whole record always lies. */
export const REACH = 2 * ROW_MAX;

export const STDOUT = 0;
export const STDERR = 1;
export const REMARK = 2;
/** Not a record: a daemon died while it wrote. Shown as it is. */
export const RAW = 3;
/** Its stream goes on in a later row. */
export const OPEN = 4;

const LINE_END = 10;
const SPACE = 32;
/** By tag: stream, and whether the line goes on. @type {Record<number, number>} */
const TAGS = { 111: STDOUT, 101: STDERR, 79: STDOUT | OPEN, 69: STDERR | OPEN, 105: REMARK };

/** Kind of the record from `at` up to `end`. @param {Uint8Array} bytes @param {number} at @param {number} end */
function kindOf(bytes, at, end) {
  const kind = end - at >= 2 && bytes[at + 1] === SPACE ? TAGS[bytes[at]] : undefined;
  return kind ?? RAW;
}

/**
 * @typedef {{starts: number[], kinds: number[], used: number}} Rows
 *   `starts` has one place more than `kinds`: where the last row ends, which is `used`.
 */

/**
 * Rows of bytes that begin with a record. What follows the last line end is left, unless nothing will ever follow it.
 * @param {Uint8Array} bytes @param {boolean} [final]
 * @returns {Rows}
 */
export function readRows(bytes, final = false) {
  const starts = [];
  const kinds = [];
  let at = 0;
  let row = 0;
  let open = -1;
  const close = (kind, next) => {
    starts.push(row);
    kinds.push(kind);
    row = next;
  };
  while (at < bytes.length) {
    const place = bytes.indexOf(LINE_END, at);
    if (place < 0 && !final) break;
    const end = place < 0 ? bytes.length : place + 1;
    const kind = kindOf(bytes, at, end);
    const stream = kind & 3;
    if (open >= 0 && (stream !== open || end - row > ROW_MAX)) close(open | OPEN, at);
    if (kind & OPEN) open = stream;
    else {
      close(kind, end);
      open = -1;
    }
    at = end;
  }
  if (open >= 0) close(open | OPEN, at);
  starts.push(at);
  return { starts, kinds, used: at };
}

/**
 * Where the first row begins in bytes from the middle of a log: behind a line end, and not within a line that goes on if
 * that can be seen. -1: no record begins here.
 * @param {Uint8Array} bytes
 */
export function firstRow(bytes) {
  const begin = bytes.indexOf(LINE_END) + 1;
  if (begin === 0 || begin >= bytes.length) return -1;
  let before = RAW;
  for (let at = begin; at < bytes.length; ) {
    const place = bytes.indexOf(LINE_END, at);
    const end = place < 0 ? bytes.length : place + 1;
    const kind = kindOf(bytes, at, end);
    const goesOn = (before & OPEN) !== 0 && (before & 3) === (kind & 3);
    if (at > begin && !goesOn) return at;
    before = kind;
    at = end;
  }
  return begin;
}

/**
 * What the command wrote, of the row from `at` up to `end`.
 * @param {Uint8Array} bytes @param {number} at @param {number} end @param {number} kind
 * @returns {Uint8Array}
 */
export function payloadOf(bytes, at, end, kind) {
  const parts = [];
  let length = 0;
  while (at < end) {
    const place = bytes.indexOf(LINE_END, at);
    const stop = place < 0 || place >= end ? end : place;
    const part = bytes.subarray((kind & 3) === RAW ? at : Math.min(at + 2, stop), stop);
    parts.push(part);
    length += part.length;
    at = stop + 1;
  }
  if (parts.length === 1) return parts[0];
  const whole = new Uint8Array(length);
  let to = 0;
  for (const part of parts) {
    whole.set(part, to);
    to += part.length;
  }
  return whole;
}
