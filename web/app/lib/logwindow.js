// The part of a log that is held in memory: chunks of whole rows that follow each other without a gap. It grows at both
// ends, lets go of what is far, and is replaced by a jump. Pure: it is given bytes and never asks for any.
import { OPEN, RAW, REMARK, firstRow, payloadOf, readRows } from "./logrecords.js";
import { CUT, CUT_REST, styleAfter } from "./logtext.js";

/** Bytes of a chunk, as far as rows allow. */
export const CHUNK = 64 * 1024;
/** What all chunks may weigh together. */
export const BUDGET = 1536 * 1024;
/** Rows that are drawn together, and their bytes as shown. */
const SLAB_ROWS = 40;
const SLAB_BYTES = 24 * 1024;
const ESCAPE = 27;
const PLAIN = Object.freeze({});

/**
 * What a stream hands on from row to row: its colours, and whether its line goes on. By stream.
 * @typedef {{styles: [object, object], open: [boolean, boolean]}} Carry
 */
/** @type {Carry} */
const NOTHING = { styles: [PLAIN, PLAIN], open: [false, false] };
const same = (one, other) => one === other || JSON.stringify(one) === JSON.stringify(other);

/** Rows and their bytes. Offsets of rows count from its begin, which is `from` in the file. */
export class Chunk {
  /** @param {number} from @param {Uint8Array} bytes @param {{starts: number[], kinds: number[]}} rows */
  constructor(from, bytes, rows) {
    this.from = from;
    this.to = from + bytes.length;
    // A copy: a view would hold on to the whole answer it came in.
    this.bytes = bytes.slice();
    this.starts = Int32Array.from(rows.starts);
    this.kinds = Uint8Array.from(rows.kinds);
    this.hasColour = bytes.includes(ESCAPE);
    /** Rows that do not begin plain. @type {Map<number, object>} */
    this.styles = new Map();
    /** Rows that go on with an earlier one of their stream. @type {Set<number>} */
    this.joins = new Set();
    /** @type {Carry} */
    this.before = NOTHING;
    this.after = this.carry(NOTHING);
    this.slabs = this.divide();
  }

  get rows() {
    return this.kinds.length;
  }

  get weight() {
    return this.bytes.length + 5 * this.rows + 64 * (this.styles.size + this.joins.size);
  }

  /** @param {number} row */
  payload(row) {
    return payloadOf(this.bytes, this.starts[row], this.starts[row + 1], this.kinds[row]);
  }

  /** Its first rows. @param {number} rows */
  head(rows) {
    const end = this.starts[rows];
    return new Chunk(this.from, this.bytes.subarray(0, end), { starts: [...this.starts.slice(0, rows + 1)], kinds: [...this.kinds.slice(0, rows)] });
  }

  /** The row that holds the byte at this offset of the file. @param {number} offset */
  rowAt(offset) {
    let low = 0;
    let high = this.rows - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= offset - this.from) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Takes over what the rows before hand on; returns what is handed on from here. @param {Carry} before @returns {Carry} */
  carry(before) {
    this.before = before;
    this.styles.clear();
    this.joins.clear();
    const styles = [...before.styles];
    const open = [...before.open];
    for (let row = 0; row < this.rows; row += 1) {
      const stream = this.kinds[row] & 3;
      if (stream === REMARK || stream === RAW) continue;
      if (open[stream]) this.joins.add(row);
      open[stream] = (this.kinds[row] & OPEN) !== 0;
      if (styles[stream] !== PLAIN) this.styles.set(row, styles[stream]);
      if (!this.hasColour) continue;
      const next = styleAfter(this.payload(row), styles[stream]);
      styles[stream] = Object.values(next).some(Boolean) ? next : PLAIN;
    }
    this.after = /** @type {Carry} */ ({ styles, open });
    return this.after;
  }

  /** First rows of what is drawn together: the same for the same rows, however many follow. */
  divide() {
    const firsts = [];
    let count = SLAB_ROWS;
    let size = 0;
    for (let row = 0; row < this.rows; row += 1) {
      const shown = Math.min(this.starts[row + 1] - this.starts[row], CUT);
      if (count >= SLAB_ROWS || size + shown > SLAB_BYTES) {
        firsts.push(row);
        count = 0;
        size = 0;
      }
      count += 1;
      size += shown;
    }
    return firsts;
  }

  /** Longer than what is shown at first: wrapped in any case. @param {number} row */
  isLong(row) {
    return this.starts[row + 1] - this.starts[row] > CUT;
  }

  /** Bytes of a row that are shown at first. @param {number} row */
  cutOf(row) {
    return this.joins.has(row) && this.isLong(row) ? CUT_REST : CUT;
  }
}

/**
 * Chunks of bytes that begin with a row.
 * @param {number} from @param {Uint8Array} bytes @param {boolean} final
 * @returns {Chunk[]}
 */
function chunksOf(from, bytes, final) {
  const { starts, kinds } = readRows(bytes, final);
  const chunks = [];
  let first = 0;
  for (let row = 1; row <= kinds.length; row += 1) {
    const isFull = row < kinds.length && starts[row + 1] - starts[first] > CHUNK;
    if (!isFull && row < kinds.length) continue;
    const base = starts[first];
    chunks.push(new Chunk(from + base, bytes.subarray(base, starts[row]), {
      starts: starts.slice(first, row + 1).map((start) => start - base),
      kinds: kinds.slice(first, row),
    }));
    first = row;
  }
  return chunks;
}

/** @param {Uint8Array} one @param {Uint8Array} other */
function joined(one, other) {
  const whole = new Uint8Array(one.length + other.length);
  whole.set(one);
  whole.set(other, one.length);
  return whole;
}

/** Rows of the last chunk that more bytes do not change; a small chunk is read anew with them, so that few are small. @param {Chunk} chunk */
function rowsThatStay(chunk) {
  if (chunk.bytes.length < CHUNK / 2) return 0;
  return (chunk.kinds[chunk.rows - 1] & OPEN) !== 0 ? chunk.rows - 1 : chunk.rows;
}

export class LogWindow {
  constructor() {
    /** @type {Chunk[]} */
    this.chunks = [];
    /** Where the next byte is missing, also while nothing is held. */
    this.to = 0;
    /** Changes with what is held. */
    this.version = 0;
  }

  get from() {
    return this.chunks[0]?.from ?? this.to;
  }

  get weight() {
    return this.chunks.reduce((sum, chunk) => sum + chunk.weight, 0);
  }

  /** Forgets all and holds rows of these bytes, from the first row that begins in them. @param {number} offset @param {Uint8Array} bytes @param {boolean} [final] */
  replace(offset, bytes, final = false) {
    const begin = offset === 0 ? 0 : firstRow(bytes);
    const skipped = begin < 0 ? (final ? 0 : bytes.length) : begin;
    this.chunks = [];
    this.to = offset + skipped;
    this.append(bytes.subarray(skipped), final);
    this.version += 1;
  }

  /** Takes bytes that follow what is held; what makes no row yet is left, and asked for again from `to`. @param {Uint8Array} bytes @param {boolean} [final] */
  append(bytes, final = false) {
    const last = this.chunks.at(-1);
    const keep = last ? rowsThatStay(last) : 0;
    let from = this.to;
    let fresh = bytes;
    let first = this.chunks.length;
    if (last && keep < last.rows) {
      first -= 1;
      const base = last.starts[keep];
      from = last.from + base;
      fresh = joined(last.bytes.subarray(base), bytes);
      this.chunks.pop();
      if (keep > 0) this.chunks.push(last.head(keep));
    }
    this.chunks.push(...chunksOf(from, fresh, final));
    this.to = this.chunks.at(-1)?.to ?? this.to;
    if (first === 0 && last) this.chunks[0].carry(last.before);
    this.flow(Math.max(first, 1));
    this.version += 1;
  }

  /** Takes bytes that end where the window begins; returns whether rows were gained. @param {number} offset @param {Uint8Array} bytes */
  prepend(offset, bytes) {
    const begin = offset === 0 ? 0 : Math.max(firstRow(bytes), 0);
    const chunks = chunksOf(offset + begin, bytes.subarray(begin), true);
    if (chunks.length === 0) return false;
    this.chunks.unshift(...chunks);
    this.flow(1);
    this.version += 1;
    return true;
  }

  /** Hands colours on, from this chunk to the last one that they change. @param {number} first */
  flow(first) {
    for (let index = first; index < this.chunks.length; index += 1) {
      const before = this.chunks[index - 1].after;
      if (!same(before, this.chunks[index].before)) this.chunks[index].carry(before);
    }
  }

  /** Lets go of the farthest chunks until the rest is light; what is read now stays. @param {number} from @param {number} to @param {number} [budget] */
  trim(from, to, budget = BUDGET) {
    let weight = this.weight;
    while (weight > budget && this.chunks.length > 1) {
      const [first, last] = [this.chunks[0], this.chunks[this.chunks.length - 1]];
      const above = from - first.to;
      const below = last.from - to;
      // What lies beside the view stays: it would be asked for again at once.
      if (Math.max(above, below) < CHUNK) return;
      const gone = above >= below ? this.chunks.shift() : this.chunks.pop();
      weight -= gone?.weight ?? 0;
      this.to = this.chunks.at(-1)?.to ?? this.to;
      this.version += 1;
    }
  }

  /** @param {number} offset @returns {Chunk | undefined} */
  chunkAt(offset) {
    return this.chunks.find((chunk) => offset >= chunk.from && offset < chunk.to);
  }

  /** Everything to draw, in order. */
  slabs() {
    return this.chunks.flatMap((chunk) => chunk.slabs.map((first, index) => slab(chunk, first, chunk.slabs[index + 1] ?? chunk.rows)));
  }
}

/** @typedef {{at: number, to: number, chunk: Chunk, first: number, end: number, look: string}} Slab */

/** @param {Chunk} chunk @param {number} first @param {number} end @returns {Slab} */
function slab(chunk, first, end) {
  const [at, to] = [chunk.from + chunk.starts[first], chunk.from + chunk.starts[end]];
  return { at, to, chunk, first, end, look: `${to}${chunk.before === NOTHING ? "" : JSON.stringify(chunk.before)}` };
}
