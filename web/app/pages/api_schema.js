// A schema as a tree that can be read: one line for each field, what is deeper is folded.
import { html } from "../lib/dom.js";
import { fields, typeText } from "../lib/openapi.js";

/** Prose of the document, in which `code` stands between back quotes. @param {{text: string}} props */
export const Prose = ({ text }) => html`${text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part))}`;

/** @param {{doc: any, field: import("../lib/openapi.js").Field, depth: number}} props */
function Row({ doc, field, depth }) {
  const under = field.again ? [] : fields(doc, field.schema, field.seen);
  const line = html`<code class="s-name">${field.name}</code> <span class="s-type">${field.type}</span>${field.required && html` <span class="s-must">always</span>`}${field.again && html` <span class="quiet small">as above</span>`}${field.about && html`<span class="s-about"><${Prose} text=${field.about} /></span>`}`;
  if (under.length === 0) return html`<li class="s-leaf">${line}</li>`;
  return html`<li><details open=${depth < 1 && under.length <= 12}><summary>${line}</summary><${Tree} doc=${doc} all=${under} depth=${depth + 1} /></details></li>`;
}

const Tree = ({ doc, all, depth }) => html`<ul class="s-tree">${all.map((field) => html`<${Row} key=${field.name} doc=${doc} field=${field} depth=${depth} />`)}</ul>`;

/** @param {{doc: any, schema: any, depth?: number}} props */
export function Schema({ doc, schema, depth = 0 }) {
  const all = fields(doc, schema);
  const type = typeText(doc, schema);
  return html`<div class="schema"><p class="small soft">${type}</p>${all.length > 0 && html`<${Tree} doc=${doc} all=${all} depth=${depth} />`}</div>`;
}
