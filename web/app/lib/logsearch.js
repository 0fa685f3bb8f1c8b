// The search of a log: the daemon looks through the file piece by piece, and the page goes to what was found.
import { signal } from "./dom.js";
import { bytes as bytesText, plural } from "./format.js";
import { findAll } from "./logtext.js";

const encoder = new TextEncoder();
const LINE_END = 10;
const SLOW_MS = 400;

/** @typedef {{at: number, line: number, nth: number}} Hit where it is, where its record begins, which one of its row */

export class LogSearch {
  /** @param {import("./logreader.js").LogReader} reader */
  constructor(reader) {
    this.reader = reader;
    this.word = signal("");
    /** Letters A to Z and a to z must be the same too. */
    this.exact = signal(false);
    /** @type {{value: Hit | undefined, peek: () => Hit | undefined}} */
    this.hit = signal(undefined);
    this.busy = signal(false);
    /** What is told beside the box. */
    this.told = signal("");
    this.run = undefined;
  }

  /** @param {string} word */
  ask(word) {
    if (word === this.word.peek()) return;
    this.stop();
    this.word.value = word;
    this.hit.value = undefined;
    this.told.value = "";
  }

  /** @param {boolean} exact */
  setExact(exact) {
    this.stop();
    this.exact.value = exact;
    this.hit.value = undefined;
  }

  stop() {
    this.run?.abort();
    if (this.busy.peek()) this.told.value = "stopped";
    this.busy.value = false;
  }

  /** Goes to the next match, or to the one before. @param {"next" | "previous"} direction */
  async go(direction) {
    const q = this.word.peek();
    if (!q) return;
    this.run?.abort();
    const run = new AbortController();
    this.run = run;
    const hit = this.hit.peek();
    const { from: seen, to: seenTo } = this.reader.seen.peek();
    const begun = hit ? (direction === "next" ? hit.at + 1 : hit.at) : direction === "next" ? seen : seenTo;
    this.busy.value = true;
    this.told.value = "";
    // A quick answer needs no word about it.
    const slow = setTimeout(() => {
      if (this.run === run && this.busy.peek() && !this.told.peek()) this.told.value = "looking…";
    }, SLOW_MS);
    try {
      // Once to the end of the file that way, and once around to where it began.
      const found = (await this.look(q, direction, begun, run.signal, undefined)) ?? (await this.look(q, direction, undefined, run.signal, begun));
      if (run.signal.aborted) return;
      this.busy.value = false;
      if (!found) {
        this.hit.value = undefined;
        this.told.value = `‘${q}’ is nowhere in this log`;
        return;
      }
      const isOnly = hit && found.match.offset === hit.at;
      this.told.value = isOnly ? "the only match" : !found.around ? "" : direction === "next" ? "continued from the start" : "continued from the end";
      await this.show(found.match);
    } catch (error) {
      if (run.signal.aborted) return;
      this.busy.value = false;
      this.told.value = `the search failed: ${error?.detail ?? error}`;
    } finally {
      clearTimeout(slow);
    }
  }

  /** @param {string} q @param {"next" | "previous"} direction @param {number | undefined} from @param {AbortSignal} stop @param {number | undefined} until where a second round ends */
  async look(q, direction, from, stop, until) {
    let at = from;
    for (;;) {
      const answer = await this.reader.source.search({ q, direction, from: at, limit: 1, case: this.exact.peek() ? "exact" : "ignore" }, stop);
      if (stop.aborted) return undefined;
      const match = answer.matches[0];
      if (match) return { match, around: until !== undefined };
      const past = until !== undefined && (direction === "next" ? answer.searched_to >= until : answer.searched_to <= until);
      if (answer.done || past) return undefined;
      /** @type {number} */
      const to = answer.searched_to;
      at = to;
      const left = direction === "next" ? answer.size - to : to;
      this.told.value = `looking… ${bytesText(left)} to go`;
    }
  }

  /** @param {{offset: number, line_offset: number}} match */
  async show({ offset, line_offset: line }) {
    await this.reader.jump(offset, "third");
    const chunk = this.reader.window.chunkAt(offset);
    let nth = 0;
    if (chunk) {
      const row = chunk.rowAt(offset);
      const before = chunk.bytes.subarray(chunk.starts[row], offset - chunk.from);
      nth = inPayload(before, this.word.peek(), !this.exact.peek()).length;
    }
    this.hit.value = { at: offset, line, nth };
  }

  /** How many matches the part in memory holds, in words. */
  counted() {
    const q = this.word.value;
    if (!q) return "";
    const { chunks } = this.reader.window;
    const count = chunks.reduce((sum, chunk) => sum + inPayload(chunk.bytes, q, !this.exact.value).length, 0);
    return `${plural(count, "match", "matches")} nearby`;
  }
}

/** Where a word stands in records, their tags left out. @param {Uint8Array} bytes @param {string} q @param {boolean} folded */
function inPayload(bytes, q, folded) {
  return findAll(bytes, encoder.encode(q), folded).filter((at) => at > 1 && bytes[at - 1] !== LINE_END && bytes[at - 2] !== LINE_END);
}
