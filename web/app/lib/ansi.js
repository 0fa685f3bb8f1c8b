// Colour codes of terminals as spans with classes. Pure: text in, parts out; never HTML.

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]+[0-~]|[0-Z\\^-~])/g;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

/** @typedef {{bold?: boolean, dim?: boolean, italic?: boolean, underline?: boolean, inverse?: boolean, fg?: string, bg?: string}} Style */

/** Red, green and blue of one of the 256 colours. @param {number} index @returns {[number, number, number]} */
function colourOf(index) {
  if (index < 16) {
    const full = index > 7 ? 255 : 170;
    return [index & 1 ? full : index > 7 ? 85 : 0, index & 2 ? full : index > 7 ? 85 : 0, index & 4 ? full : index > 7 ? 85 : 0];
  }
  const grey = 8 + (index - 232) * 10;
  if (index > 231) return [grey, grey, grey];
  const part = (value) => (value === 0 ? 0 : 55 + value * 40);
  return [part(Math.floor((index - 16) / 36)), part(Math.floor((index - 16) / 6) % 6), part((index - 16) % 6)];
}

/** The nearest of the sixteen, by hue first: a pale red is a bright red. @param {number} red @param {number} green @param {number} blue */
function nameOf(red, green, blue) {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 48) return most < 64 ? "black" : most < 144 ? "bright-black" : most < 216 ? "white" : "bright-white";
  const middle = (most + least) / 2;
  const index = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return (most > 212 ? "bright-" : "") + NAMES[index];
}

/**
 * The numbers of a sequence. What colons bind together is one code with its details: a colour may name its space, which
 * nobody does otherwise, and a kind of underline is an underline.
 * @param {string} text @returns {number[]}
 */
function codesOf(text) {
  return text.split(";").flatMap((group) => {
    const [code, ...details] = group.split(":").map((part) => Number(part) || 0);
    if (details.length === 0) return [code];
    if (code === 4) return [details[0] === 0 ? 24 : 4];
    if (details[0] === 5) return [code, 5, details[1] ?? 0];
    if (details[0] === 2) return [code, 2, ...details.slice(1).slice(-3)];
    return [];
  });
}

/** @param {Style} style @param {number[]} codes */
function apply(style, codes) {
  let next = { ...style };
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at];
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 22) next = { ...next, bold: false, dim: false };
    else if (code === 23) next.italic = false;
    else if (code === 24) next.underline = false;
    else if (code === 27) next.inverse = false;
    else if (code >= 30 && code <= 37) next.fg = NAMES[code - 30];
    else if (code >= 90 && code <= 97) next.fg = `bright-${NAMES[code - 90]}`;
    else if (code >= 40 && code <= 47) next.bg = NAMES[code - 40];
    else if (code >= 100 && code <= 107) next.bg = `bright-${NAMES[code - 100]}`;
    else if (code === 39) delete next.fg;
    else if (code === 49) delete next.bg;
    else if (code === 58) at += codes[at + 1] === 5 ? 2 : codes[at + 1] === 2 ? 4 : 0;
    else if (code === 38 || code === 48) {
      // 256 and true colours become the nearest of the sixteen, which can be read on both papers.
      const field = code === 38 ? "fg" : "bg";
      if (codes[at + 1] === 5) {
        next[field] = nameOf(...colourOf(codes[at + 2] ?? 7));
        at += 2;
      } else if (codes[at + 1] === 2) {
        next[field] = nameOf(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0);
        at += 4;
      }
    }
  }
  return next;
}

/** @param {Style} style */
function classes(style) {
  const found = [];
  for (const name of ["bold", "dim", "italic", "underline", "inverse"]) if (style[name]) found.push(`a-${name}`);
  if (style.fg) found.push(`a-fg-${style.fg}`);
  if (style.bg) found.push(`a-bg-${style.bg}`);
  return found.join(" ");
}

/**
 * One line in parts of the same look. The style at its end is handed to the next line.
 * @param {string} line @param {Style} [before]
 * @returns {{parts: {text: string, className: string}[], after: Style}}
 */
export function parse(line, before = {}) {
  const parts = [];
  let style = before;
  let from = 0;
  const add = (raw) => {
    // A carriage return begins the line anew, as on a terminal: progress bars show their last state.
    const text = raw.replace(CONTROL, "");
    if (text) parts.push({ text, className: classes(style) });
  };
  const shown = lastOverwrite(line);
  SEQUENCE.lastIndex = 0;
  for (let match = SEQUENCE.exec(shown); match; match = SEQUENCE.exec(shown)) {
    add(shown.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === "m" && /^[0-9;:]*$/.test(match[1])) style = apply(style, codesOf(match[1]));
  }
  add(shown.slice(from));
  return { parts, after: style };
}

/** @param {string} line */
function lastOverwrite(line) {
  const text = line.replace(/\r+$/, "");
  const at = text.lastIndexOf("\r");
  return at < 0 ? text : text.slice(at + 1);
}
