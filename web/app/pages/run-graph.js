// The graph of a run as it stands, and beside it the step that is picked.
import { html } from "../lib/dom.js";
import { param, setParams } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { Graph } from "../ui/graph.js";
import { Card, Loaded } from "../ui/parts.js";

const pick = (ref) => setParams({ step: param("step") === ref ? "" : ref }, { replace: true });

/** @param {{run: any}} props */
export function RunGraph({ run }) {
  const query = useQuery(`/api/runs/${encodeURIComponent(run.id)}/graph`, { topics: ["runs", "slots"], touches: (change) => change.id === run.id });
  return html`<${Card} title="Graph"><${Loaded} query=${query} lines=${6}>${(graph) => html`<${Graph} graph=${graph} label=${`The steps of ${run.job}`} picked=${param("step")} onPick=${pick} />`}<//><//>`;
}
