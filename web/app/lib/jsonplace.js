// Where in a JSON text the value of a JSON pointer stands. Pure; reads as far as the text is right.

/** @typedef {{from: number, to: number}} Place offsets of the value, or of its key when `ofKey` */

const SPACE = /[ \t\n\r]/;
const DEPTH_MAX = 100;

class Reader {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  space() {
    while (SPACE.test(this.text[this.at] ?? "")) this.at += 1;
  }

  /** @param {string} mark */
  take(mark) {
    this.space();
    if (this.text[this.at] !== mark) return false;
    this.at += 1;
    return true;
  }

  /** A string with its quotes; `undefined` when there is none. */
  string() {
    this.space();
    const from = this.at;
    if (this.text[from] !== '"') return undefined;
    for (let at = from + 1; at < this.text.length; at += 1) {
      if (this.text[at] === "\\") at += 1;
      else if (this.text[at] === '"') {
        this.at = at + 1;
        return { from, to: this.at };
      }
    }
    return undefined;
  }

  /**
   * Passes a value and notes all places in it.
   * @param {string} pointer @param {Map<string, Place>} places @param {number} depth
   */
  value(pointer, places, depth) {
    this.space();
    const from = this.at;
    const mark = this.text[from];
    if (depth > DEPTH_MAX || mark === undefined) return false;
    let good = true;
    if (mark === "{") good = this.members(pointer, places, depth);
    else if (mark === "[") good = this.items(pointer, places, depth);
    else if (mark === '"') good = this.string() !== undefined;
    else {
      const word = /^[-+0-9.eEa-z]+/.exec(this.text.slice(from, from + 64))?.[0] ?? "";
      this.at += word.length;
      good = word !== "";
    }
    places.set(pointer, { from, to: this.at });
    return good;
  }

  members(pointer, places, depth) {
    this.at += 1;
    if (this.take("}")) return true;
    do {
      const key = this.string();
      if (!key || !this.take(":")) return false;
      let name;
      try {
        name = JSON.parse(this.text.slice(key.from, key.to));
      } catch {
        return false;
      }
      if (!this.value(`${pointer}/${escape(name)}`, places, depth + 1)) return false;
    } while (this.take(","));
    return this.take("}");
  }

  items(pointer, places, depth) {
    this.at += 1;
    if (this.take("]")) return true;
    let index = 0;
    do {
      if (!this.value(`${pointer}/${index}`, places, depth + 1)) return false;
      index += 1;
    } while (this.take(","));
    return this.take("]");
  }
}

/** @param {string} name */
const escape = (name) => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** All places of a text by their pointers; "" is the whole. @param {string} text */
export function placesOf(text) {
  const places = new Map();
  new Reader(text).value("", places, 0);
  return places;
}

/**
 * Where a fault is: its value, else the nearest thing around it that is there.
 * @param {Map<string, Place>} places @param {string} pointer @returns {Place | undefined}
 */
export function placeOf(places, pointer) {
  for (let at = pointer; ; at = at.slice(0, at.lastIndexOf("/"))) {
    const place = places.get(at);
    if (place || at === "") return place;
  }
}

/** The line of an offset, from 1. @param {string} text @param {number} offset */
export const lineAt = (text, offset) => text.slice(0, offset).split("\n").length;

/**
 * Why a text is no JSON, with its line where the browser says it; `undefined` when it is.
 * @param {string} text @returns {{message: string, at?: number} | undefined}
 */
export function notJson(text) {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    const offset = /position (\d+)/.exec(error.message);
    const spot = /line (\d+) column (\d+)/.exec(error.message);
    const at = offset ? Number(offset[1]) : spot ? text.split("\n").slice(0, Number(spot[1]) - 1).join("\n").length + Number(spot[2]) : undefined;
    return { message: error.message.replace(/ in JSON at position.*$/, "").replace(/^JSON\.parse: /, ""), at };
  }
}
