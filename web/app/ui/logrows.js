// Rows of a log as they are drawn: where they came from, their text in its colours, what was searched for, the rest of long ones.
import { html, useMemo } from "../lib/dom.js";
import { bytes } from "../lib/format.js";
import { OPEN, RAW, REMARK, STDERR } from "../lib/logrecords.js";
import { mark, readRow } from "../lib/logtext.js";
import { Icon } from "./icons.js";

const PLAIN = {};

/** @param {import("../lib/logtext.js").Part[]} parts */
const spans = (parts) => parts.map(({ text, className, mark: marked }) => {
  if (marked) return html`<mark class=${`${className} ${marked}`}>${text}</mark>`;
  return className ? html`<span class=${className}>${text}</span>` : text;
});

/**
 * @typedef {{word: string, exact: boolean, hit?: import("../lib/logsearch.js").Hit, marked?: number, opened: Set<number>,
 *   href: (at: number) => string}} Look
 */

/** @param {import("../lib/logwindow.js").Chunk} chunk @param {number} row @param {Look} look */
function drawRow(chunk, row, look) {
  const begin = chunk.starts[row];
  const at = chunk.from + begin;
  const stop = chunk.from + chunk.starts[row + 1];
  const stream = chunk.kinds[row] & 3;
  const holds = (offset) => offset !== undefined && offset >= at && offset < stop;
  const hit = holds(look.hit?.at) ? look.hit : undefined;
  const joins = chunk.joins.has(row);
  const isOpened = look.opened.has(at) || (hit !== undefined && hit.at - at > chunk.cutOf(row) / 2);
  // Of rows that follow each other one may hold the end of the other's last letter.
  const goesOn = (first) => (chunk.kinds[first] & OPEN) !== 0 && (chunk.kinds[first] & 3) === (chunk.kinds[first + 1] & 3);
  const next = row + 1 < chunk.rows && goesOn(row) ? chunk.payload(row + 1).subarray(0, 3) : undefined;
  const { parts, more } = readRow(chunk.payload(row), chunk.styles.get(row) ?? PLAIN, { cut: isOpened ? undefined : chunk.cutOf(row), joins: joins && (row === 0 || goesOn(row - 1)), after: next });
  const classes = ["log-row", ["", "err", "remark", "raw"][stream], joins ? "joins" : "", chunk.isLong(row) ? "long" : "", holds(look.marked) ? "marked" : "", hit ? "hit" : ""];
  const tag = stream === STDERR ? "err" : stream === RAW ? "raw" : "";
  return html`<div key=${at} class=${classes.filter(Boolean).join(" ")} data-at=${at}>
    <a class="log-at" href=${look.href(at)} tabindex="-1" aria-label=${`${tag ? `${tag}, ` : ""}link to byte ${at}`} title=${`byte ${at}`}>${tag}</a>
    <span class="log-text">${stream === REMARK && html`<${Icon} of="info" />`}${spans(mark(parts, look.word, { fold: !look.exact, at: hit?.nth }))}</span>
    ${more > 0 && html`<button type="button" class="log-more" data-more=${at}>show ${bytes(more)} more</button>`}
  </div>`;
}

/** Drawn anew only if its rows or their look have changed. @param {{slab: import("../lib/logwindow.js").Slab, look: Look}} props */
export function Slab({ slab, look }) {
  const within = (offset) => (offset !== undefined && offset >= slab.at && offset < slab.to ? offset : undefined);
  const opened = [...look.opened].filter((at) => within(at) !== undefined).join();
  const hit = within(look.hit?.at);
  return useMemo(() => {
    const rows = [];
    for (let row = slab.first; row < slab.end; row += 1) rows.push(drawRow(slab.chunk, row, look));
    return html`<div class="log-slab">${rows}</div>`;
  }, [slab.at, slab.look, look.word, look.exact, hit, look.hit?.nth, within(look.marked), opened]);
}
