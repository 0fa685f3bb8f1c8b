// Bundles that the configuration keeps in force: whether they are, why one cannot be, what somebody has changed by hand.
import { html } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { changeLine, faultLine, mark } from "../lib/bundles.js";
import { useQuery } from "../lib/store.js";
import { Card, Fault } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";

const SHOWN_MAX = 20;

/** @typedef {{path: string, name: string | null, status: string, since: string, enforce: boolean, errors: any[], differing: number, changes: any[], newer: {node: string} | null, node: string}} Bundle */

/** @param {{of: Bundle}} props */
function Why({ of: bundle }) {
  if (bundle.status === "failed") {
    return html`<p class="small bad">It cannot be applied; what was declared before stays.</p>
      <ul class="small plain">${bundle.errors.map((fault) => html`<li key=${faultLine(fault)}><code class="breaks">${faultLine(fault)}</code></li>`)}</ul>`;
  }
  if (bundle.status !== "drifted") return null;
  const left = bundle.differing - Math.min(bundle.changes.length, SHOWN_MAX);
  return html`<p class="small">${bundle.newer
    ? html`The daemon <strong>${bundle.newer.node}</strong> has applied another file of this name since; here stands another one than what is in force.`
    : "Somebody has changed what it declares. Applying it again, a reload, or routing.enforce puts this back:"}</p>
    <ul class="small plain">${bundle.changes.slice(0, SHOWN_MAX).map((change) => html`<li key=${`${change.kind} ${change.name}`}><code>${mark(change)} ${change.kind} ${change.name}</code>
      ${change.fields.length > 0 && html`<ul>${change.fields.map((field) => html`<li key=${field.pointer}><code class="breaks">${changeLine(field)}</code></li>`)}</ul>`}</li>`)}</ul>
    ${left > 0 && html`<p class="small quiet">and ${left} more</p>`}`;
}

/** Nothing where the configuration names none: bundles are applied by hand then, or not at all. */
export function Bundles() {
  const bundles = useQuery("/api/routing/bundles", { topics: ["routing"], every: 5000, rest: 1000 });
  if (bundles.error && !bundles.data) return html`<${Card} title="Bundles"><${Fault} error=${bundles.error} again=${bundles.reload} /><//>`;
  /** @type {Bundle[]} */
  const all = bundles.data ?? [];
  if (all.length === 0) return null;
  const enforced = all.some((one) => one.enforce);
  return html`<${Card} title="Bundles" more=${html`<span class="small quiet">${plural(all.length, "file")} kept in force by ${all[0].node}${enforced ? ", changes by hand are put back" : ""}</span>`}>
    <div class="stack">${all.map((one) => html`<section key=${one.path} aria-label=${one.path}>
      <p><${State} of=${one.status} word=${one.newer ? "a newer file is in force" : undefined} chip /> <strong>${one.name ?? one.path}</strong> <code class="small quiet">${one.path}</code> <span class="small quiet">since <${Time} at=${one.since} form="relative" /></span></p>
      <${Why} of=${one} /></section>`)}</div>
  <//>`;
}
