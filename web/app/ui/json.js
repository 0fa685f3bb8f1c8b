// JSON to look at: folded where it is deep or long, never more on the page than a person reads.
import { html, useState } from "../lib/dom.js";

const ROWS = 50;
const TEXT = 300;
const OPEN_DEPTH = 2;
const OPEN_ROWS = 30;

/** @param {{value: string}} props */
function Text({ value }) {
  const [all, setAll] = useState(false);
  const long = value.length > TEXT;
  return html`<span class="j-text">${JSON.stringify(long && !all ? value.slice(0, TEXT) : value)}</span>${long && html` <button type="button" class="button ghost tiny" onClick=${() => setAll(!all)}>${all ? "Less" : `${value.length - TEXT} more characters`}</button>`}`;
}

/** @param {{value: any, name?: string, depth: number, last: boolean}} props */
function Node({ value, name, depth, last }) {
  const isList = Array.isArray(value);
  const isDeep = value !== null && typeof value === "object";
  const entries = isDeep ? Object.entries(value) : [];
  const [open, setOpen] = useState(depth < OPEN_DEPTH || (depth < OPEN_DEPTH + 2 && entries.length <= 4));
  const [rows, setRows] = useState(depth === 0 ? ROWS : Math.min(ROWS, OPEN_ROWS));
  const key = name === undefined ? "" : html`<span class="j-key">${JSON.stringify(name)}</span>: `;
  const comma = last ? "" : ",";
  if (!isDeep || entries.length === 0) {
    const shown = isDeep ? (isList ? "[]" : "{}") : typeof value === "string" ? html`<${Text} value=${value} />` : html`<span class=${value === null ? "j-null" : "j-plain"}>${String(value)}</span>`;
    return html`<div class="j-row">${key}${shown}${comma}</div>`;
  }
  const [begin, end] = isList ? ["[", "]"] : ["{", "}"];
  const size = isList ? `${entries.length} ${entries.length === 1 ? "item" : "items"}` : `${entries.length} ${entries.length === 1 ? "field" : "fields"}`;
  return html`<div class="j-deep">
    <button type="button" class="j-fold" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}><span class="j-mark" aria-hidden="true"></span>${key}${begin}${open ? "" : html`<span class="j-size"> ${size} </span>${end}${comma}`}</button>
    ${open && html`<div class="j-in">${entries.slice(0, rows).map(([each, inner], index) => html`<${Node} key=${each} value=${inner} name=${isList ? undefined : each} depth=${depth + 1} last=${index === entries.length - 1} />`)}
      ${entries.length > rows && html`<button type="button" class="button ghost tiny" onClick=${() => setRows(rows + ROWS * 4)}>${entries.length - rows} more</button>`}</div><div class="j-row j-end">${end}${comma}</div>`}
  </div>`;
}

/** @param {{value: any, label?: string}} props */
export const Json = ({ value, label = "JSON" }) => html`<div class="json" role="group" aria-label=${label}><${Node} value=${value} depth=${0} last=${true} /></div>`;
