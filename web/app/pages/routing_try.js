// A trial: who would get this work now, and why not the others. Nothing is stored, nobody is charged.
import { html, useState } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { notJson } from "../lib/jsonplace.js";
import { Icon } from "../ui/icons.js";
import { JsonEdit } from "../ui/jsonedit.js";
import { Card, Fault } from "../ui/parts.js";
import { Explained } from "./routing_decision.js";

const SAMPLE = `{
  "kind": "ticket",
  "attributes": {
    "skill": "billing",
    "language": "es"
  }
}`;

/** @param {{list: any}} props */
export function Try({ list }) {
  const [text, setText] = useState(SAMPLE);
  const [pool, setPool] = useState("");
  const [told, setTold] = useState(/** @type {{decision?: any, error?: any, busy?: boolean}} */ ({}));
  const onClick = async () => {
    setTold({ ...told, busy: true });
    try {
      const decision = await act("POST", "/api/route", { body: { work: JSON.parse(text), ...(pool ? { pool_id: pool } : {}), dry_run: true, explain: "all" } });
      setTold({ decision });
    } catch (error) {
      setTold({ error });
    }
  };
  const findings = (told.error?.errors ?? []).map(({ pointer, code, detail }) => ({ pointer: pointer.replace(/^\/[a-z]+/, ""), code, message: detail }));
  return html`<${Card} title="Try a piece of work"><div class="stack">
      <p class="small soft">Shows who would get it now and why each other one would not. Nothing is stored.</p>
      <${JsonEdit} id="work" label="The work" text=${text} set=${setText} findings=${findings} rows=${12} />
      <div class="row wrap"><label class="row small" for="try-pool"><span class="nowrap">In</span><select class="input try-pool" id="try-pool" value=${pool} onChange=${(event) => setPool(event.currentTarget.value)}><option value="">the pool that the rules choose</option>${list.rows.map((each) => html`<option key=${each.id} value=${each.id}>${each.name}</option>`)}</select></label>
        <button type="button" class="button main" disabled=${told.busy || Boolean(notJson(text))} onClick=${onClick}><${Icon} of="play" />${told.busy ? "Working…" : "Try"}</button></div>
      ${told.error && findings.length === 0 && html`<${Fault} error=${told.error} />`}
    </div><//>
    ${told.decision && html`<${Explained} decision=${told.decision} />`}`;
}
