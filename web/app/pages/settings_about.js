// What this is, and who may use it.
import { html } from "../lib/dom.js";
import { useQuery } from "../lib/store.js";
import { to } from "../lib/route.js";
import { Card, Facts, Loaded } from "../ui/parts.js";
import { Span, Time } from "../ui/time.js";

/** @param {{status: any}} props */
export function About({ status }) {
  const version = useQuery("/version");
  const config = useQuery("/api/config", { topics: ["config"] });
  const server = config.data?.server;
  return html`<div class="grid">
    <${Card} title="Version"><${Loaded} query=${version}>${(data) => html`<${Facts} of=${[
      ["Program", html`<strong>${data.name} ${data.version}</strong>`],
      ["Commit", html`<code>${data.commit}</code>`],
      ["Format of the store", data.schema],
      ["Node", html`<a href=${to.settings("nodes")}>${status.data?.node}</a>`],
      ["Started", status.data && html`<${Time} at=${status.data.started_at} /> <span class="quiet">up for <${Span} from=${status.data.started_at} /></span>`],
      ["Listens on", server && html`<code>${server.listen}</code>`],
      ["Public address", server?.publicUrl && html`<code>${server.publicUrl}</code>`],
    ]} />`}<//><//>
    <${Card} title="Who may use it">
      <div class="stack prose">
        <p><strong>Open mode.</strong> There are no keys yet, so whoever reaches this address may do everything. That is why the daemon listens on the loopback
        address only: other machines cannot reach it, and pages of other sites in your browser are turned away by their origin. Other users of this machine are
        not kept out. To reach it from elsewhere, forward the port, for example with <code>ssh -L</code>.</p>
        <p class="soft">Everything on these pages is also in the <a href=${to.api()}>API</a> and in the command line.</p>
      </div>
    <//>
  </div>`;
}
