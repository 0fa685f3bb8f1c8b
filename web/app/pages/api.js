// The reference of the API, from the document that the daemon serves: operations on one side, one of them on the other.
import { html, useEffect, useMemo } from "../lib/dom.js";
import { readFilter } from "../lib/filter.js";
import { plural } from "../lib/format.js";
import { bind } from "../lib/keys.js";
import { groups, isMeant, operations } from "../lib/openapi.js";
import { addressWith, go, here, param } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { FilterBox } from "../ui/filterbox.js";
import { Icon } from "../ui/icons.js";
import { Command, Fault, Nothing, PageHead, Skeleton } from "../ui/parts.js";
import { Method, OperationPage, Path } from "./api_operation.js";
import { Prose, Schema } from "./api_schema.js";

/** @param {{doc: any, all: import("../lib/openapi.js").Operation[]}} props */
function About({ doc, all }) {
  useEffect(() => {
    if (here.value.hash === "#problem") document.getElementById("problem")?.scrollIntoView();
  }, [here.value.hash]);
  return html`<div class="stack wide">
    <section class="card"><header><h2>How to ask</h2></header><div class="body stack wide">
      <ul class="points">${(doc.info?.description ?? "").split(/(?<=\.) /).map((sentence) => html`<li><${Prose} text=${sentence} /></li>`)}</ul>
      <${Command} text=${`curl -sS ${location.origin}/api/status`} />
      <p class="small quiet">${plural(all.length, "operation")} in version ${doc.info?.version ?? "?"}; each names the scope that a key needs. Pick one for its parameters, its answers and a try.</p>
    </div></section>
    <section class="card" id="problem"><header><h2>What a refusal looks like</h2><span class="more quiet">application/problem+json</span></header><div class="body"><${Schema} doc=${doc} schema=${{ $ref: "#/components/schemas/Problem" }} /></div></section>
  </div>`;
}

/** @param {{shown: ReturnType<typeof groups>, at: string}} props */
const Index = ({ shown, at }) => html`<nav class="api-index" aria-label="Operations">${shown.map(({ title, operations: of }) => html`<section key=${title}>
  <h2>${title} <span class="quiet">${of.length}</span></h2>
  <ul>${of.map(({ id, method, path, summary }) => html`<li key=${id}><a href=${addressWith({ operation: id })} aria-current=${id === at ? "true" : undefined}><${Method} of=${method} /><span class="grow"><${Path} of=${path} /><span class="summary"><${Prose} text=${summary} /></span></span></a></li>`)}</ul>
</section>`)}</nav>`;

/** @param {{doc: any}} props */
function Reference({ doc }) {
  const all = useMemo(() => operations(doc), [doc]);
  const keys = [
    { key: "method", about: "get or post", values: () => [...new Set(all.map(({ method }) => method.toLowerCase()))] },
    { key: "scope", about: "what a key must be allowed", values: () => [...new Set(all.map(({ scope }) => scope).filter(Boolean))] },
    { key: "tag", about: "what it is about", values: () => [...new Set(all.map(({ tag }) => tag))] },
  ];
  const filter = readFilter(param("filter"), keys);
  const shown = groups(all.filter((each) => isMeant(each, filter)));
  const wanted = param("operation");
  const operation = all.find(({ id }) => id === wanted);
  useEffect(() => {
    const step = (by) => () => {
      const ids = shown.flatMap((group) => group.operations.map(({ id }) => id));
      const next = ids[Math.min(Math.max(ids.indexOf(wanted) + by, 0), ids.length - 1)];
      if (next) go(addressWith({ operation: next }), { replace: true });
    };
    const ends = [bind("j", "Next operation", step(1), "API"), bind("k", "Operation before", step(-1), "API")];
    return () => ends.forEach((end) => end());
  }, [wanted, param("filter")]);
  useEffect(() => {
    const index = document.querySelector(".api-index");
    const row = index?.querySelector("[aria-current]");
    // Only the index scrolls, never the page.
    if (index instanceof HTMLElement && row instanceof HTMLElement) index.scrollTop = Math.max(0, row.offsetTop - index.offsetTop - index.clientHeight / 3);
    const top = document.querySelector(".api-detail");
    if (wanted && top && top.getBoundingClientRect().top < 0) scrollTo(0, 0);
    document.title = `${operation ? `${operation.id} · ` : ""}API · ductor`;
  }, [wanted]);
  let detail;
  if (operation) detail = html`<${OperationPage} key=${operation.id} doc=${doc} operation=${operation} />`;
  else if (wanted) detail = html`<div class="card"><${Nothing} title=${`There is no operation called ‘${wanted}’.`}><a class="button" href="?">All operations</a><//></div>`;
  else detail = html`<${About} doc=${doc} all=${all} />`;
  return html`<div class=${`api ${wanted ? "one" : ""}`}>
    <div class="api-side">
      <${FilterBox} keys=${keys} label="Search the operations" placeholder="pause, method:post, scope:slot" faults=${filter.faults} />
      ${shown.length === 0 ? html`<${Nothing} title="No operation matches."><a class="button" href=${addressWith({ filter: "" })}>Show all</a><//>` : html`<${Index} shown=${shown} at=${wanted} />`}
    </div>
    <div class="api-detail">${wanted && html`<a class="back small" href=${addressWith({ operation: "" })}><${Icon} of="next" />All operations</a>`}${detail}</div>
  </div>`;
}

export function Api() {
  const query = useQuery("/api/openapi.json");
  return html`<${PageHead} title="API"><a class="button" href="/api/openapi.json" download="openapi.json"><${Icon} of="down" />openapi.json</a><//>
    ${query.data ? html`<${Reference} doc=${query.data} />` : html`<div class="card">${query.error ? html`<div class="body"><${Fault} error=${query.error} again=${query.reload} /></div>` : html`<${Skeleton} lines=${10} />`}</div>`}`;
}
