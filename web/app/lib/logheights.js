// How high the rows of a log are drawn: as they were seen, else as they may be. Pure.

/** The width of a letter, in heights of a line, and what stands beside the text. */
const LETTER = 0.39;
const BESIDE = 72;

export class Heights {
  constructor() {
    /** By where the slab begins. @type {Map<number, number>} */
    this.known = new Map();
    this.guesses = new WeakMap();
    this.line = 20;
    this.columns = 80;
    this.wrap = true;
  }

  /** @param {number} width */
  forWidth(width) {
    this.columns = Math.max(10, Math.floor((width - BESIDE) / (this.line * LETTER)));
    this.forget();
  }

  forget() {
    this.known.clear();
    this.guesses = new WeakMap();
  }

  /** @param {import("./logwindow.js").Slab} slab @param {number} height */
  seen(slab, height) {
    this.known.set(slab.at, height);
  }

  /** Forgets the heights of all others. @param {import("./logwindow.js").Slab[]} slabs */
  keep(slabs) {
    const kept = new Set(slabs.map((slab) => slab.at));
    for (const at of this.known.keys()) if (!kept.has(at)) this.known.delete(at);
  }

  /** @param {import("./logwindow.js").Slab} slab */
  of(slab) {
    const height = this.known.get(slab.at) ?? this.guesses.get(slab);
    if (height !== undefined) return height;
    const { chunk } = slab;
    let lines = 0;
    for (let row = slab.first; row < slab.end; row += 1) {
      const length = Math.min(chunk.starts[row + 1] - chunk.starts[row] - 3, chunk.cutOf(row));
      lines += this.wrap || chunk.isLong(row) ? Math.max(1, Math.ceil(length / this.columns)) : 1;
    }
    this.guesses.set(slab, lines * this.line);
    return lines * this.line;
  }

  /** @param {import("./logwindow.js").Slab[]} slabs @param {number} from @param {number} to */
  sum(slabs, from, to) {
    let sum = 0;
    for (let index = from; index < to; index += 1) sum += this.of(slabs[index]);
    return sum;
  }
}
