// One operation of the API: what it takes, what it answers, how it refuses, and an example.
import { html } from "../lib/dom.js";
import { asCurl } from "../lib/clip.js";
import { filled, typeText } from "../lib/openapi.js";
import { Json } from "../ui/json.js";
import { Command, CopyButton } from "../ui/parts.js";
import { Prose, Schema } from "./api_schema.js";
import { Try } from "./api_try.js";

/** @param {{of: string}} props */
export const Method = ({ of }) => html`<span class=${`method of-${of.toLowerCase()}`}>${of}</span>`;

/** A path with its holes set apart. @param {{of: string}} props */
export const Path = ({ of }) => html`<code class="path">${of.split(/(\{[^}]+\})/).map((part) => (part.startsWith("{") ? html`<em>${part}</em>` : part))}</code>`;

const PLACES = { path: "path", query: "query", header: "header" };

/** @param {{doc: any, operation: import("../lib/openapi.js").Operation}} props */
function Parameters({ doc, operation }) {
  if (operation.parameters.length === 0) return null;
  return html`<section class="card flush"><header><h3>Parameters</h3></header><div class="body scroll-x"><table class="list as-cards">
    <thead><tr><th scope="col">Name</th><th scope="col">In</th><th scope="col">Type</th><th scope="col">What it does</th></tr></thead>
    <tbody>${operation.parameters.map((each) => html`<tr key=${`${each.in} ${each.name}`}>
      <td class="lead nowrap"><code class="strong">${each.name}</code>${each.required && html` <span class="s-must">needed</span>`}</td>
      <td data-label="In" class="nowrap">${PLACES[each.in] ?? each.in}</td>
      <td data-label="Type"><span class="small">${typeText(doc, each.schema)}</span></td>
      <td data-label="What it does"><span class="soft"><${Prose} text=${each.about} /></span></td>
    </tr>`)}</tbody></table></div></section>`;
}

/** @param {{value: any, label: string}} props */
function Example({ value, label }) {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return html`<div class="example"><div class="row apart"><h4>${label}</h4><${CopyButton} text=${text} /></div>${typeof value === "string" ? html`<pre class="answer-text" tabindex="0" aria-label=${label}>${value}</pre>` : html`<${Json} value=${value} label=${label} />`}</div>`;
}

/** @param {{doc: any, reply: import("../lib/openapi.js").Reply}} props */
const Reply = ({ doc, reply }) => html`<section class="card"><header><h3>Answer ${reply.status}</h3>${reply.about !== "Done." && html`<span class="small soft">${reply.about}</span>`}${reply.media && html`<span class="more quiet">${reply.media}</span>`}</header>
  ${(reply.schema || reply.headers.length > 0) && html`<div class="body reply">
    <div class="stack">${reply.schema && html`<${Schema} doc=${doc} schema=${reply.schema} />`}
      ${reply.headers.length > 0 && html`<h4>Headers</h4><ul class="s-tree">${reply.headers.map(({ name, about }) => html`<li class="s-leaf" key=${name}><code class="s-name">${name}</code><span class="s-about"><${Prose} text=${about} /></span></li>`)}</ul>`}</div>
    ${reply.example !== undefined && html`<${Example} value=${reply.example} label="Example" />`}
  </div>`}</section>`;

/** @param {{doc: any, operation: import("../lib/openapi.js").Operation}} props */
export function OperationPage({ doc, operation }) {
  const isGet = operation.method === "GET";
  const curl = asCurl({ method: operation.method, path: filled(operation, {}), body: operation.body?.example }, location.origin);
  return html`<article class="stack wide operation" aria-labelledby="operation">
    <div class="stack">
      <h2 id="operation" tabindex="-1"><${Method} of=${operation.method} /> <${Path} of=${operation.path} /></h2>
      <p><${Prose} text=${operation.summary} /></p>${operation.about && html`<p class="soft"><${Prose} text=${operation.about} /></p>`}
      <p class="row wrap small"><span class="tag">${operation.id}</span>${operation.scope && html`<span class="tag">scope ${operation.scope}</span>`}${!isGet && html`<span class="tag">changes something</span>`}</p>
    </div>
    ${isGet ? html`<${Try} key=${operation.id} operation=${operation} />` : html`<${Command} text=${curl} />`}
    <${Parameters} doc=${doc} operation=${operation} />
    ${operation.body && html`<section class="card"><header><h3>Body</h3><span class="small soft">${operation.body.required ? "needed" : "may be left out"}</span><span class="more quiet">application/json</span></header><div class="body reply"><${Schema} doc=${doc} schema=${operation.body.schema} />${operation.body.example !== undefined && html`<${Example} value=${operation.body.example} label="Example" />`}</div></section>`}
    ${operation.replies.map((reply) => html`<${Reply} key=${reply.status} doc=${doc} reply=${reply} />`)}
    ${operation.problems.length > 0 && html`<section class="card"><header><h3>Refusals</h3><a class="more" href="?#problem">What a refusal looks like</a></header><div class="body"><ul class="problems">${operation.problems.map(({ status, about }) => html`<li key=${status}><code>${status}</code><span class="soft"><${Prose} text=${about} /></span></li>`)}</ul></div></section>`}
  </article>`;
}
