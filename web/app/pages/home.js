// Home: is all well, what runs, what waits and why, what failed, what comes next.
import { html } from "../lib/dom.js";
import { useQuery } from "../lib/store.js";
import { Card, Loaded, PageHead } from "../ui/parts.js";
import { State } from "../ui/state.js";

export function Home() {
  const status = useQuery("/api/status", { topics: ["runs", "slots", "jobs", "nodes", "config"], every: 15_000 });
  return html`<${PageHead} title="Home" />
    <${Card} title="Now"><${Loaded} query=${status}>${(data) => html`<${State} of=${data.ready ? "good" : "bad"} word=${data.verdict} />`}<//><//>`;
}
