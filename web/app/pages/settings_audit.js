// The audit: who did what, newest first; filtered by who, what, and since when.
import { html } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { usePages } from "../lib/pages.js";
import { param, setParams } from "../lib/route.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Fault, Skeleton } from "../ui/parts.js";
import { Time } from "../ui/time.js";

const SPANS = [["", "whenever"], ["1h", "in the last hour"], ["24h", "in the last day"], ["7d", "in the last week"], ["30d", "in the last month"]];

/** `pauseJob` as `pause job`. @param {string} what */
const words = (what) => what.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const versions = ({ before, after }) => (before === null && after === null ? "—" : before === after ? after : `${before ?? "nothing"} → ${after ?? "nothing"}`);

const COLUMNS = [
  { key: "what", title: "What", lead: true, cell: (row) => html`<span title=${row.what}>${words(row.what)}</span>` },
  { key: "thing", title: "Thing", cell: (row) => html`<code class="thing">${row.thing}</code>` },
  { key: "who", title: "Who", cell: (row) => html`<strong title=${row.key ? `Key ${row.key}` : undefined}>${row.who}</strong>` },
  { key: "at", title: "When", cell: (row) => html`<${Time} at=${row.at} />` },
  { key: "versions", title: "Version", cell: (row) => html`<span class="mono quiet">${versions(row)}</span>` },
  { key: "request", title: "Request", cell: (row) => html`<span class="mono quiet tiny">${row.request_id}</span>` },
];

/** @param {{name: string, label: string, hint: string}} props */
const Text = ({ name, label, hint }) => html`<label class="field"><span>${label}</span>
  <input class="input" type="text" value=${param(name) ?? ""} placeholder=${hint} autocomplete="off" onChange=${(event) => setParams({ [name]: event.currentTarget.value.trim() })} /></label>`;

export function Audit() {
  const query = { who: param("who"), what: param("what"), thing: param("thing"), since: param("since") };
  const rows = usePages(withQuery("/api/audit", query), { topics: ["runs", "slots", "jobs", "nodes", "config", "workflows"], rest: 3000, keyOf: (row) => String(row.number) });
  const isFiltered = Object.values(query).some(Boolean);
  return html`<form class="audit-filter" aria-label="Filter" onSubmit=${(event) => event.preventDefault()}>
      <${Text} name="who" label="Who" hint="local, key:NAME" />
      <${Text} name="what" label="What" hint="pauseJob" />
      <${Text} name="thing" label="Thing begins with" hint="/jobs/backup" />
      <label class="field"><span>When</span><select class="input" value=${param("since") ?? ""} onChange=${(event) => setParams({ since: event.currentTarget.value })}>
        ${SPANS.map(([key, text]) => html`<option value=${key}>${text}</option>`)}</select></label>
    </form>
    ${rows.error && html`<${Fault} error=${rows.error} again=${rows.reload} />`}
    <${Card} title="What was done" flush>
      ${rows.data === undefined ? !rows.error && html`<${Skeleton} lines=${5} />` : rows.rows.length === 0 ? html`<p class="soft body-pad">${isFiltered ? "Nobody has done anything of that kind." : "Nobody has done anything yet."}</p>` : html`<${List} label="Audit" rows=${rows.rows} columns=${COLUMNS} keyOf=${(row) => String(row.number)} />
      <${ListFoot} count=${rows.rows.length} what=${rows.rows.length === 1 ? "row" : "rows"} more=${rows.more} loading=${rows.loadingMore} />`}
    <//>`;
}
