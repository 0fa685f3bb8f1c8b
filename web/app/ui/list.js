// Tables that are cards on a narrow screen, walked with j and k.
import { html, signal, useEffect, useRef } from "../lib/dom.js";
import { bind } from "../lib/keys.js";
import { go } from "../lib/route.js";
import { number } from "../lib/format.js";

/**
 * @template T
 * @typedef {{key: string, title: any, cell: (row: T) => any, number?: boolean, lead?: boolean, className?: string}} Column
 */

/**
 * @template T
 * @param {{rows: T[], columns: Column<T>[], keyOf: (row: T) => string, hrefOf?: (row: T) => string, label: string,
 *   picked?: {value: Set<string>}, onPick?: (key: string, on: boolean) => void, onPickAll?: (on: boolean) => void,
 *   nameOf?: (row: T) => string, onPoint?: (key: string | undefined) => void}} props
 *   `nameOf`: what a row is called beside its box; `onPoint`: which row is pointed at
 */
export function List({ rows, columns, keyOf, hrefOf, label, picked, onPick, onPickAll, nameOf = keyOf, onPoint }) {
  const cursor = useRef(signal(undefined)).current;
  const body = useRef(null);
  const at = rows.findIndex((row) => keyOf(row) === cursor.value);
  const latest = useRef({ rows, at });
  latest.current = { rows, at };
  // Keys are bound once; what they call is that of the last drawing.
  const acts = useRef(/** @type {any} */ ({})).current;
  Object.assign(acts, { onPick, onPoint, nameOf, hrefOf, picked });
  useEffect(() => {
    const step = (by) => () => {
      const { rows: all, at: from } = latest.current;
      if (all.length === 0) return;
      const next = Math.min(Math.max(from + by, 0), all.length - 1);
      cursor.value = keyOf(all[next]);
      const row = body.current?.rows[next];
      row?.scrollIntoView({ block: "nearest" });
      row?.querySelector("a")?.focus({ preventScroll: true });
    };
    const ends = [bind("j", "Next row", step(1), "Lists"), bind("k", "Row before", step(-1), "Lists")];
    if (hrefOf) {
      ends.push(bind("Enter", "Open the row", () => {
        const { rows: all, at: from } = latest.current;
        if (from >= 0) go(acts.hrefOf(all[from]));
      }, "Lists"));
    }
    if (onPick) {
      ends.push(bind("x", "Select the row", () => {
        const { rows: all, at: from } = latest.current;
        if (from >= 0) acts.onPick(keyOf(all[from]), !acts.picked?.value.has(keyOf(all[from])));
      }, "Lists"));
    }
    return () => ends.forEach((end) => end());
  }, []);
  return html`<div class="scroll-x" role="region" aria-label=${label} tabindex="-1"><table class="list as-cards">
    <thead><tr>${onPick && html`<th scope="col" class="pick">${onPickAll && rows.length > 0 ? html`<input type="checkbox" aria-label="Select all that are shown" checked=${rows.every((row) => picked?.value.has(keyOf(row)))} onChange=${(event) => onPickAll(event.currentTarget.checked)} />` : html`<span class="unseen">Selected</span>`}</th>`}${columns.map(({ key, title, number: isNumber, className }) => html`<th key=${key} scope="col" class=${`${isNumber ? "number" : ""} ${className ?? ""}`}>${title}</th>`)}</tr></thead>
    <tbody ref=${body}>${rows.map((row, index) => html`<${Row} key=${keyOf(row)} row=${row} columns=${columns} keyOf=${keyOf} isAt=${index === at} picked=${picked} acts=${acts} />`)}</tbody>
  </table></div>`;
}

/** A row is drawn anew only when it, or a signal that it reads, has changed: functions come in one object that stays. */
function Row({ row, columns, keyOf, isAt, picked, acts }) {
  const key = keyOf(row);
  const isPicked = picked?.value.has(key);
  return html`<tr class=${isAt ? "at" : ""} onMouseEnter=${() => acts.onPoint?.(key)} onMouseLeave=${() => acts.onPoint?.(undefined)}>
    ${acts.onPick && html`<td class="lead pick"><input type="checkbox" aria-label=${`Select ${acts.nameOf(row)}`} checked=${isPicked} onChange=${(event) => acts.onPick(key, event.currentTarget.checked)} /></td>`}
    ${columns.map((column) => html`<td key=${column.key} class=${`${column.number ? "number" : ""} ${column.lead ? "lead" : ""} ${column.className ?? ""}`} data-label=${typeof column.title === "string" ? column.title : column.key}>${column.cell(row)}</td>`)}
  </tr>`;
}

/**
 * What is loaded, and the way to more.
 * @param {{count: number, what: string, more?: () => void, loading?: boolean, total?: number, children?: any}} props
 */
export const ListFoot = ({ count, what, more, loading, total, children }) => html`<div class="list-foot">
  <span>${number(count)} ${what} shown${total !== undefined && total > count ? ` of ${number(total)}` : more ? ", more to load" : ""}${children}</span>
  ${more && html`<button type="button" class="button" disabled=${loading} onClick=${more}>${loading ? "Loading…" : "Load more"}</button>`}
</div>`;
