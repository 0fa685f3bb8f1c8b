// Run.
import { html } from "../lib/dom.js";
import { useQuery } from "../lib/store.js";
import { LogView } from "../ui/log.js";
import { PageHead } from "../ui/parts.js";

export function Run({ id }) {
  const { data } = useQuery(`/api/runs/${id}`, { topics: ["runs"] });
  const step = data?.steps?.[0];
  return html`<${PageHead} title=${id} />${step && html`<${LogView} runId=${id} step=${step.ref} attempt=${step.attempt} live=${data.state === "running"} />`}`;
}
