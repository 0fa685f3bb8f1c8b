// Sentences of the daemon with instants in them, cut so that a page can show those in the chosen zone. Pure.

const INSTANT = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g;

/**
 * @param {string} text
 * @returns {{text: string, at?: number}[]}
 */
export function cutInstants(text) {
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(INSTANT)) {
    if (match.index > from) parts.push({ text: text.slice(from, match.index) });
    parts.push({ text: match[0], at: Date.parse(match[0]) });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push({ text: text.slice(from) });
  return parts;
}
