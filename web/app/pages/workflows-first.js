// No workflow yet: the first one to copy and post, or to write here.
import { html } from "../lib/dom.js";
import { to } from "../lib/route.js";
import { HELLO_WORLD, pretty } from "../lib/workflow.js";
import { Icon } from "../ui/icons.js";
import { Command, CopyButton } from "../ui/parts.js";

export function FirstWorkflow() {
  const text = pretty(HELLO_WORLD);
  const at = `${location.origin}/api/workflows`;
  return html`<div class="first-workflow">
    <p>There is no workflow yet. A workflow is a graph of steps as JSON; this one greets, waits two seconds and ends.</p>
    <figure class="document"><figcaption class="tiny row apart"><code>hello-world.json</code><${CopyButton} text=${text} /></figcaption><pre tabindex="0" aria-label="hello-world.json">${text}</pre></figure>
    <div class="stack"><p class="small soft">Post it, publish it and start a run:</p>
      <${Command} text=${`curl -sS -H 'Content-Type: application/json' -d @hello-world.json ${at}`} />
      <${Command} text=${`curl -sS -X POST ${at}/hello-world:publish`} />
      <${Command} text=${`curl -sS -X POST ${at}/hello-world/runs`} />
      <p class="small soft">Or do the same here:</p>
      <div><a class="button main" href=${to.workflows(true)}><${Icon} of="plus" />Write it here</a></div></div>
  </div>`;
}
