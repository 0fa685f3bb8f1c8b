// Reads a log for somebody who looks at a part of it: jumps, further bytes at both edges, following its end while it grows.
// What is held is a LogWindow; whoever draws it listens to `version` and says what is in view.
import { signal } from "./dom.js";
import { REACH } from "./logrecords.js";
import { LogWindow } from "./logwindow.js";

const POLL_MS = 2000;
/** New bytes that are read to count lines while somebody reads elsewhere; beyond that only bytes are told. */
const COUNTED_MAX = 512 * 1024;
/** Bytes of growth within a second that are shown one by one; a log that is faster is shown at its end only. */
const RUSH = 1024 * 1024;
const RUSH_REST_MS = 700;
const PAUSES_MS = [500, 1000, 2000, 4000];
const LINE_END = 10;
const encoder = new TextEncoder();

/** @typedef {{at: number, align: "top" | "third" | "end"}} Place where to look after a jump */

export class LogReader {
  /** @param {import("./logsource.js").LogSource} source @param {{live: boolean}} options */
  constructor(source, { live }) {
    this.source = source;
    this.window = new LogWindow();
    this.version = signal(0);
    this.size = signal(0);
    this.done = signal(!live);
    /** What is asked for at a jump: nothing true can be shown until it is there. */
    this.loading = signal(true);
    this.error = signal(undefined);
    this.following = signal(false);
    /** Nobody answers while the end is followed: whether more has come is not known. */
    this.lost = signal(false);
    /** What came since the end was left. @type {{value: {lines: number, bytes: number}, peek: () => any}} */
    this.since = signal({ lines: 0, bytes: 0 });
    /** @type {Place | undefined} */
    this.place = undefined;
    /** What is in view: the first row, and behind the last one. */
    this.seen = signal({ from: 0, to: 0 });
    this.jumps = new AbortController();
    this.edges = { up: false, down: false };
    this.counted = 0;
    this.awake = true;
    this.ended = new AbortController();
    this.catching = false;
    /** @type {AbortController | undefined} */
    this.tail = undefined;
    this.timer = undefined;
  }

  /** @param {number | undefined} at an offset, or the end */
  begin(at) {
    if (at === undefined) this.toEnd();
    else this.jump(at, "third");
    this.timer ??= setInterval(() => this.poll(), POLL_MS);
  }

  /** After a failure: the same place again. @param {number | undefined} at where to begin if nothing is here yet */
  again(at) {
    if (this.window.chunks.length === 0) this.begin(at);
    else {
      this.error.value = undefined;
      this.jump(this.seen.peek().from);
    }
  }

  end() {
    clearInterval(this.timer);
    this.ended.abort();
    this.jumps.abort();
    this.tail?.abort();
  }

  /** Not while nobody looks. @param {boolean} awake */
  wake(awake) {
    if (awake === this.awake) return;
    this.awake = awake;
    if (!awake) this.tail?.abort();
    else if (this.following.peek()) this.toEnd();
  }

  know(range) {
    if (range.size > this.size.peek()) this.size.value = range.size;
    if (range.done) this.done.value = true;
  }

  isWhole(range) {
    return range.done && range.start + range.bytes.length >= range.size;
  }

  get atEnd() {
    return this.window.to >= this.size.peek();
  }

  changed() {
    this.version.value += 1;
  }

  /** Shows another place. @param {number} offset @param {Place["align"]} [align] */
  async jump(offset, align = "top") {
    this.leaveEnd();
    const held = offset >= this.window.from && offset < this.window.to;
    if (held) {
      this.jumps.abort();
      this.jumps = new AbortController();
      this.loading.value = false;
      this.place = { at: offset, align };
      this.changed();
      return;
    }
    await this.load(Math.max(0, offset - REACH), 2 * REACH, () => ({ at: offset, align }));
  }

  /** Shows the end, and follows it while the log grows. */
  async toEnd() {
    this.since.value = { lines: 0, bytes: 0 };
    this.following.value = true;
    this.tail?.abort();
    const ok = await this.load(-REACH, REACH, () => ({ at: this.window.to, align: "end" }));
    if (ok && this.following.peek()) this.follow();
  }

  async load(offset, limit, place) {
    this.jumps.abort();
    const jump = new AbortController();
    this.jumps = jump;
    this.loading.value = true;
    try {
      const range = await this.source.read(offset, limit, jump.signal);
      if (jump.signal.aborted) return false;
      this.know(range);
      this.window.replace(range.start, range.bytes, this.isWhole(range));
      this.place = place();
      this.error.value = undefined;
      this.loading.value = false;
      this.changed();
      return true;
    } catch (error) {
      if (!jump.signal.aborted) {
        this.error.value = error;
        this.loading.value = false;
      }
      return false;
    }
  }

  leaveEnd() {
    if (!this.following.peek()) return;
    this.following.value = false;
    this.tail?.abort();
    this.counted = this.window.to;
    this.since.value = { lines: 0, bytes: 0 };
  }

  /** The person has scrolled to the very end of what there is. */
  arrived() {
    if (this.following.peek() || !this.atEnd || this.loading.peek()) return;
    this.following.value = true;
    this.since.value = { lines: 0, bytes: 0 };
    this.follow();
  }

  /** More rows before or behind what is held. @param {"up" | "down"} edge */
  async more(edge) {
    const isDone = edge === "up" ? this.window.from === 0 : this.atEnd;
    if (this.edges[edge] || isDone || this.loading.peek() || this.window.chunks.length === 0) return;
    this.edges[edge] = true;
    const { signal: stop } = this.jumps;
    try {
      const [from, limit] = edge === "up" ? [Math.max(0, this.window.from - REACH), Math.min(REACH, this.window.from)] : [this.window.to, REACH];
      const range = await this.source.read(from, limit, stop);
      this.know(range);
      // Meanwhile a trim may have moved the edge: bytes that no longer fit are dropped.
      const fits = edge === "up" ? range.start + range.bytes.length === this.window.from : range.start === this.window.to;
      if (!stop.aborted && fits) {
        if (edge === "up") this.window.prepend(range.start, range.bytes);
        else this.window.append(range.bytes, this.isWhole(range));
        this.window.trim(this.seen.peek().from, this.seen.peek().to);
        this.error.value = undefined;
        this.changed();
      }
    } catch (error) {
      if (!stop.aborted) this.error.value = error;
    } finally {
      this.edges[edge] = false;
    }
  }

  /** Shows what comes as it comes. */
  async follow() {
    this.tail?.abort();
    const tail = new AbortController();
    this.tail = tail;
    const gone = () => tail.signal.aborted || this.ended.signal.aborted || !this.following.peek();
    let failures = 0;
    while (!gone() && this.awake && !(this.done.peek() && this.atEnd)) {
      try {
        const rush = { since: Date.now(), bytes: 0, over: false };
        const complete = await this.source.follow(this.window.to, tail.signal, (piece) => {
          if (gone()) return;
          this.take(piece, rush, tail);
        }, () => {
          failures = 0;
          this.lost.value = false;
        });
        if (gone()) return;
        if (complete) {
          this.done.value = true;
          await this.catchUp(tail.signal);
          return;
        }
      } catch {
        if (gone()) return;
        failures += 1;
        this.lost.value = true;
      }
      await pause(PAUSES_MS[Math.min(failures, PAUSES_MS.length - 1)]);
    }
  }

  take(piece, rush, tail) {
    const now = Date.now();
    if (now - rush.since > 1000) Object.assign(rush, { since: now, bytes: 0 });
    rush.bytes += piece.to - piece.offset;
    if (rush.bytes > RUSH) {
      // Nobody can read that fast: the end is shown, and shown again.
      tail.abort();
      pause(RUSH_REST_MS).then(() => {
        if (this.following.peek() && this.awake && !this.ended.signal.aborted) this.toEnd();
      });
      return;
    }
    const bytes = encoder.encode(piece.text);
    const isExact = bytes.length === piece.to - piece.offset && !piece.text.includes("\ufffd");
    if (piece.to > this.size.peek()) this.size.value = piece.to;
    if (!isExact) this.catchUp(tail.signal);
    else if (piece.offset <= this.window.to && piece.to > this.window.to) this.grow(bytes.subarray(this.window.to - piece.offset), false);
  }

  grow(bytes, final) {
    this.window.append(bytes, final);
    this.window.trim(this.window.to, this.window.to);
    this.changed();
  }

  /** Reads the rest as bytes: text cannot say which bytes were not UTF-8. @param {AbortSignal} stop */
  async catchUp(stop) {
    if (this.catching) return;
    this.catching = true;
    try {
      while (!stop.aborted && this.following.peek()) {
        const range = await this.source.read(this.window.to, REACH, stop);
        this.know(range);
        if (stop.aborted || range.start !== this.window.to || range.bytes.length === 0) break;
        this.grow(range.bytes, this.isWhole(range));
        if (range.start + range.bytes.length >= range.size) break;
      }
    } catch {
      // The stream comes again, and this with it.
    } finally {
      this.catching = false;
    }
  }

  /** How much has come, while somebody reads elsewhere. */
  async poll() {
    if (!this.awake || this.following.peek() || this.done.peek() || this.loading.peek()) return;
    const counts = this.counted > 0 && this.size.peek() - this.counted < COUNTED_MAX;
    try {
      const range = await this.source.read(counts ? this.counted : -1, counts ? COUNTED_MAX : 1, this.ended.signal);
      const grown = range.size - this.size.peek();
      this.know(range);
      if (this.following.peek()) return;
      const { lines, bytes } = this.since.peek();
      const exact = counts && range.start + range.bytes.length >= range.size;
      this.since.value = { lines: exact ? lines + linesIn(range.bytes) : NaN, bytes: bytes + Math.max(grown, 0) };
      if (counts) this.counted = range.start + range.bytes.length;
    } catch (error) {
      if (error?.status === 404) this.done.value = true;
    }
  }
}

/** @param {Uint8Array} bytes */
function linesIn(bytes) {
  let count = 0;
  for (let at = bytes.indexOf(LINE_END); at >= 0; at = bytes.indexOf(LINE_END, at + 1)) count += 1;
  return count;
}

const pause = (time) => new Promise((go) => setTimeout(go, time));
