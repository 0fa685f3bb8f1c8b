// Holds a place in a log on the screen: which rows are drawn, and where, while rows come and go above and below.
//
// Drawn rows follow each other in one block that lies somewhere on a tall empty canvas, so the browser scrolls by itself,
// and rows come at either side without a change of the scroll position. Only the true begin and end of the log, once they
// are near, are brought to those of the canvas. What was seen first before a change is seen at the same place after it.
import { signal } from "../lib/dom.js";
import { Heights } from "../lib/logheights.js";
import { BUDGET } from "../lib/logwindow.js";

/** Where on the canvas a place in the middle of a log is put, and from where it is put there again. */
const MIDDLE = 400_000;
const FAR = 3_000_000;
/** In heights of the view: drawn beyond it at least, as a rule, and at most; and loaded beyond it. */
const [LEAST, AIM, MOST, LOADED] = [0.7, 1.4, 3, 6];
/** A sixth of what may be held: the view and both sides of it always fit. */
const LOADED_BYTES = BUDGET / 6;
const SETTLES_MAX = 12;

export class LogPort {
  /** @param {import("../lib/logreader.js").LogReader} reader */
  constructor(reader) {
    this.reader = reader;
    /** What is drawn. @type {{value: {slabs: import("../lib/logwindow.js").Slab[], turn: number}, peek: () => any}} */
    this.drawn = signal({ slabs: [], turn: 0 });
    this.slabs = [];
    this.heights = new Heights();
    this.first = 0;
    this.end = 0;
    this.top = 0;
    this.known = -1;
    this.settles = 0;
    /** The first row in view and where in it: it stays there. @type {{at: number, delta: number} | undefined} */
    this.held = undefined;
    /** @type {import("../lib/logreader.js").Place | undefined} */
    this.place = undefined;
    /** The scroll position as it was last set here. @type {number | undefined} */
    this.put = undefined;
    /** @type {any} */
    this.box = undefined;
    /** @type {any} */
    this.canvas = undefined;
    /** @type {any} */
    this.block = undefined;
    this.width = 0;
    this.height = 0;
  }

  /** @param {HTMLElement} box @param {HTMLElement} canvas @param {HTMLElement} block */
  attach(box, canvas, block) {
    Object.assign(this, { box, canvas, block });
    const style = getComputedStyle(block);
    this.heights.line = parseFloat(style.lineHeight) || 20;
    const measure = new ResizeObserver(() => this.resized());
    measure.observe(box);
    return () => measure.disconnect();
  }

  /** Every height is another one: the width or the wrapping has changed. */
  resized() {
    const { clientWidth, clientHeight } = this.box;
    const wide = clientWidth !== this.width;
    if (!wide && clientHeight === this.height) return;
    Object.assign(this, { width: clientWidth, height: clientHeight });
    if (wide) this.heights.forWidth(clientWidth);
    this.box.style.setProperty("--log-width", `${clientWidth}px`);
    this.redraw();
  }

  /** @param {boolean} wrap */
  setWrap(wrap) {
    if (wrap === this.heights.wrap) return;
    this.heights.wrap = wrap;
    this.heights.forget();
    this.redraw();
  }

  indexOf(offset) {
    const index = this.slabs.findIndex((slab) => slab.to > offset);
    return index < 0 ? this.slabs.length - 1 : index;
  }

  heightOf(slab) {
    return this.heights.of(slab);
  }

  sum(from, to) {
    return this.heights.sum(this.slabs, from, to);
  }

  /** The window has other rows, or another place is wanted. */
  refresh() {
    if (!this.box) return;
    const { window, place } = this.reader;
    const drawnFrom = this.slabs[this.first]?.at;
    const drawnTo = this.slabs[this.end - 1]?.at;
    if (window.version !== this.known) {
      this.known = window.version;
      this.slabs = window.slabs();
      this.heights.keep(this.slabs);
    }
    if (place) {
      this.reader.place = undefined;
      this.place = place;
      this.first = Math.max(0, this.indexOf(place.at));
      this.end = Math.min(this.first + 1, this.slabs.length);
      this.top = window.from === 0 ? this.sum(0, this.first) : MIDDLE;
      this.held = undefined;
    } else if (drawnFrom !== undefined) {
      this.first = Math.max(0, this.indexOf(drawnFrom));
      this.end = Math.min(this.slabs.length, this.indexOf(drawnTo) + 1);
    }
    this.redraw();
  }

  redraw() {
    this.settles = 0;
    this.draw();
  }

  draw() {
    this.drawn.value = { slabs: this.slabs.slice(this.first, this.end), turn: this.drawn.peek().turn + 1 };
  }

  /** After each drawing, before it is painted. */
  settle() {
    const { box, block, reader } = this;
    if (!box || this.slabs.length === 0) return;
    const drawn = this.drawn.peek().slabs;
    for (const [index, slab] of drawn.entries()) {
      const element = block.children[index];
      if (element) this.heights.seen(slab, element.offsetHeight);
    }
    if (this.place) this.putPlace(this.place);
    else if (this.held) {
      const row = this.rowElement(this.held.at);
      if (row) this.top = box.scrollTop + this.held.delta - row.offsetTop;
    }
    this.putCanvas();
    this.bringEnds();
    if (reader.following.peek() && !this.place) this.scrollTo(this.bottom - box.clientHeight);
    this.place = undefined;
    this.look();
    this.settles += 1;
    if (this.settles < SETTLES_MAX && this.cover()) this.draw();
  }

  putPlace({ at, align }) {
    const row = this.rowElement(at);
    const view = this.box.clientHeight;
    this.putCanvas();
    const y = row ? row.offsetTop : 0;
    if (align === "end") this.scrollTo(this.bottom - view);
    else this.scrollTo(this.top + y - (align === "third" ? Math.floor(view / 3) : 0));
  }

  get bottom() {
    return this.top + this.block.offsetHeight + this.sum(this.end, this.slabs.length);
  }

  putCanvas() {
    this.block.style.top = `${this.top}px`;
    // Where more is to come there is room to scroll into.
    const room = this.reader.atEnd ? 0 : this.box.clientHeight;
    this.canvas.style.height = `${Math.ceil(this.bottom + room)}px`;
  }

  scrollTo(y) {
    const to = Math.max(0, Math.round(y));
    if (Math.abs(this.box.scrollTop - to) >= 1) this.box.scrollTop = to;
    this.put = this.box.scrollTop;
  }

  shift(by) {
    const to = this.box.scrollTop + by;
    this.top += by;
    this.putCanvas();
    this.box.scrollTop = to;
    this.put = this.box.scrollTop;
  }

  /** The begin of the log is that of the canvas; elsewhere there is room. */
  bringEnds() {
    const isBegin = this.reader.window.from === 0;
    if (isBegin && this.first === 0) {
      if (this.top !== 0) this.shift(-this.top);
    } else {
      const above = this.sum(0, this.first);
      if (this.top - above < 0 || (!isBegin && this.top < this.box.clientHeight * 4)) this.shift(isBegin ? above - this.top : MIDDLE);
      else if (this.top > FAR) this.shift(MIDDLE - this.top);
    }
  }

  /** Chooses what is drawn for what is seen; true if that is something else than now. */
  cover() {
    const { box, slabs } = this;
    const view = box.clientHeight;
    const y = box.scrollTop;
    let { first, end, top } = this;
    let bottom = top + this.sum(first, end);
    const lacks = (first > 0 && top > y - LEAST * view) || (end < slabs.length && bottom < y + (1 + LEAST) * view);
    const spare = (first < end - 1 && top + this.heightOf(slabs[first]) < y - MOST * view) || (end - 1 > first && bottom - this.heightOf(slabs[end - 1]) > y + (1 + MOST) * view);
    if (!lacks && !spare) return false;
    while (first > 0 && top > y - AIM * view) top -= this.heightOf(slabs[(first -= 1)]);
    while (end < slabs.length && bottom < y + (1 + AIM) * view) bottom += this.heightOf(slabs[(end += 1) - 1]);
    if (!this.isSelecting()) {
      while (first < end - 1 && top + this.heightOf(slabs[first]) < y - AIM * 1.2 * view) top += this.heightOf(slabs[(first += 1) - 1]);
      while (end - 1 > first && bottom - this.heightOf(slabs[end - 1]) > y + (1 + AIM * 1.2) * view) bottom -= this.heightOf(slabs[(end -= 1)]);
    }
    if (first === this.first && end === this.end) return false;
    const overlaps = first < this.end && end > this.first;
    if (!overlaps) this.held = undefined;
    Object.assign(this, { first, end, top });
    return true;
  }

  /** Rows that somebody marks stay while they do, within reason. */
  isSelecting() {
    if (this.end - this.first > 60) return false;
    const selection = getSelection();
    return selection !== null && !selection.isCollapsed && this.block.contains(selection.anchorNode);
  }

  scrolled() {
    if (!this.box || this.slabs.length === 0) return;
    const { box, reader } = this;
    const isOurs = Math.abs(box.scrollTop - (this.put ?? -1)) < 1;
    this.look();
    const left = this.bottom - box.scrollTop - box.clientHeight;
    if (left < 2) reader.arrived();
    else if (!isOurs && left > this.heights.line) reader.leaveEnd();
    this.settles = 0;
    if (this.cover()) this.draw();
  }

  /** Sees what is in view, and asks for more where little is left. */
  look() {
    const { box, reader } = this;
    const y = box.scrollTop;
    const view = box.clientHeight;
    const top = this.rowAtY(y);
    const end = this.rowAtY(y + view - 1);
    if (!top || !end) return;
    const from = Number(top.dataset.at);
    this.held = { at: from, delta: this.top + top.offsetTop - y };
    const last = this.reader.window.chunkAt(Number(end.dataset.at));
    const to = last ? last.from + last.starts[last.rowAt(Number(end.dataset.at)) + 1] : Number(end.dataset.at);
    const { from: before, to: beforeTo } = reader.seen.peek();
    if (from !== before || to !== beforeTo) reader.seen.value = { from, to };
    if (y - (this.top - this.sum(0, this.first)) < LOADED * view && from - reader.window.from < LOADED_BYTES) reader.more("up");
    if (this.bottom - y - view < LOADED * view && reader.window.to - to < LOADED_BYTES) reader.more("down");
  }

  /** The row that is drawn at a height of the canvas, or the nearest one. @returns {HTMLElement | undefined} */
  rowAtY(y) {
    const inside = y - this.top;
    const slab = pick(this.block.children, inside);
    return slab && pick(slab.children, inside);
  }

  /** @param {number} at of its begin, or of a byte in it @returns {HTMLElement | undefined} */
  rowElement(at) {
    const index = this.drawn.peek().slabs.findIndex((slab) => at >= slab.at && at < slab.to);
    const slab = this.drawn.peek().slabs[index];
    if (!slab) return undefined;
    return /** @type {HTMLElement} */ (this.block.children[index]?.children[slab.chunk.rowAt(at) - slab.first]);
  }
}

/** The last of these that begins at or above a height. */
function pick(elements, y) {
  let low = 0;
  let high = elements.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (elements[middle].offsetTop <= y) low = middle;
    else high = middle - 1;
  }
  return elements[low];
}
