// The versions of a workflow, and what differs between two of them or a version and the draft.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { shortId } from "../lib/format.js";
import { usePages } from "../lib/pages.js";
import { param, setParams } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { diffGroups, diffSentence, inLine, isOfConfiguration } from "../lib/workflow.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Command, Loaded, Nothing } from "../ui/parts.js";
import { Time } from "../ui/time.js";
import { deprecate } from "./workflow-actions.js";

const SIGNS = { "+": ["good", "added"], "-": ["bad", "removed"], "~": ["wait", "changed"] };

/** @param {{field: {pointer: string, before: any, after: any}, named: boolean}} props */
const Field = ({ field, named }) => html`<li>${named && html`<code class="quiet">${field.pointer}</code>`}<span class="diff-values"><del>${inLine(field.before)}</del><span class="quiet" aria-hidden="true">→</span><span class="unseen">became</span><ins>${inLine(field.after)}</ins></span></li>`;

/** @param {{diff: any}} props */
function Difference({ diff }) {
  return html`<div class="stack wide"><p><strong>${diffSentence(diff)}</strong></p>${diffGroups(diff).map(({ head, lines }) => html`<section key=${head} class="diff"><h3>${head}</h3><ul>${lines.map(({ sign, text, fields }) => {
    const [family, word] = SIGNS[sign];
    return html`<li key=${`${sign}${text}`} class=${`of-${family}`}><p><span class=${`sign ${family}`} aria-hidden="true">${sign}</span><span class="unseen">${word}: </span><code>${text}</code></p>${fields.length > 0 && html`<ul>${fields.map((field) => html`<${Field} key=${field.pointer} field=${field} named=${field.pointer !== text} />`)}</ul>`}</li>`;
  })}</ul></section>`)}</div>`;
}

/** @param {{workflow: any, names: string[]}} props */
function Compare({ workflow, names }) {
  const newest = names.filter((name) => name !== "draft");
  const from = names.includes(param("from")) ? param("from") : workflow.draft ? newest[0] : (newest[1] ?? newest[0]);
  const other = names.includes(param("to")) ? param("to") : names[0];
  const differ = from !== other;
  const query = useQuery(differ ? withQuery(`/api/workflows/${encodeURIComponent(workflow.family_slug)}:diff`, { from, to: other }) : null, { topics: ["workflows"], touches: (change) => change.id === workflow.family_slug });
  const choice = (name, label, value) => html`<label class="row small" for=${`diff-${name}`}><span>${label}</span><select class="input" id=${`diff-${name}`} value=${value} onChange=${(event) => setParams({ [name]: event.currentTarget.value }, { replace: true })}>${names.map((each) => html`<option key=${each} value=${each}>${each === "draft" ? "the draft" : `version ${each}`}</option>`)}</select></label>`;
  return html`<${Card} title="What differs" more=${html`${choice("from", "from", from)}${choice("to", "to", other)}`}>
    ${differ ? html`<${Loaded} query=${query} lines=${4}>${(diff) => html`<${Difference} diff=${diff} />`}<//>` : html`<p class="quiet">Choose two different ones.</p>`}
    ${differ && from !== "draft" && other !== "draft" && html`<div class="diff-cli"><${Command} text=${`ductor workflow diff ${workflow.family_slug} ${from} ${other}`} /></div>`}
  <//>`;
}

/** @param {{workflow: any}} props */
export function Versions({ workflow }) {
  const list = usePages(`/api/workflows/${encodeURIComponent(workflow.family_slug)}/versions`, { topics: ["workflows"], touches: (/** @type {any} */ change) => change.id === workflow.family_slug, keyOf: (row) => String(row.version) });
  const columns = [
    { key: "version", title: "Version", lead: true, cell: (row) => html`<strong>${row.version}</strong>${row.version === workflow.current_version && html` <span class="tag">new runs use it</span>`}` },
    { key: "state", title: "State", cell: (row) => (row.deprecated_at ? html`<span class="state of-calm"><${Icon} of="off" />deprecated</span> <${Time} at=${row.deprecated_at} />` : html`<span class="state of-good"><${Icon} of="check" />${isOfConfiguration(workflow) ? "loaded" : "published"}</span>`) },
    { key: "at", title: "Published", cell: (row) => html`<${Time} at=${row.published_at} />` },
    { key: "by", title: "By", cell: (row) => row.published_by },
    { key: "sha", title: "SHA-256", cell: (row) => html`<code class="quiet" title=${row.sha256}>${shortId(row.sha256)}</code>` },
    { key: "do", title: html`<span class="unseen">Actions</span>`, className: "of-actions", cell: (row) => !row.deprecated_at && !isOfConfiguration(workflow) && html`<button type="button" class="button ghost tiny" onClick=${() => ask(deprecate(workflow, row.version))}>Deprecate…</button>` },
  ];
  const names = [...(workflow.draft ? ["draft"] : []), ...list.rows.map((row) => String(row.version))];
  return html`<div class="stack wide"><section class="card flush" aria-label="All versions"><div class="body"><${Loaded} query=${list} lines=${3}>${() => (list.rows.length === 0
    ? html`<${Nothing} title="No version is published yet." command=${`ductor workflow publish ${workflow.family_slug}`} />`
    : html`<${List} rows=${list.rows} columns=${columns} keyOf=${(row) => String(row.version)} label="Versions" /><${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "version" : "versions"} more=${list.more} loading=${list.loadingMore} />`)}<//></div></section>
    ${names.length > 1 && html`<${Compare} workflow=${workflow} names=${names} />`}</div>`;
}
