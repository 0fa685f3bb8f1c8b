// A new workflow: begins with the first one, is checked as it is written, and is saved as a draft.
import { html, useState } from "../lib/dom.js";
import { go, to } from "../lib/route.js";
import { notJson } from "../lib/jsonplace.js";
import { HELLO_WORLD, pretty } from "../lib/workflow.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { PageHead } from "../ui/parts.js";
import { DocumentEdit } from "./workflow-edit.js";

export function NewWorkflow() {
  const [text, setText] = useState(() => pretty(HELLO_WORLD));
  const isBroken = notJson(text) !== undefined;
  const save = () => {
    const document = JSON.parse(text);
    ask({
      title: "Save the draft",
      will: html`<p>Makes the workflow <strong>${document.family_slug ?? "?"}</strong> with this document as its draft. Nothing runs before it is published.</p>`,
      verb: "Save the draft",
      request: () => ({ method: "POST", path: "/api/workflows", body: document }),
      done: (answer) => {
        go(to.workflow(answer.family_slug, "definition"));
        return answer.valid ? `The draft of ${answer.family_slug} is saved; it can be published` : `The draft of ${answer.family_slug} is saved, with ${answer.findings.length} things to mend`;
      },
    });
  };
  return html`<nav class="crumb small" aria-label="Where this is"><a href=${to.workflows()}>Workflows</a></nav>
    <${PageHead} title="New workflow"><button type="button" class="button main" disabled=${isBroken} onClick=${save}><${Icon} of="check" />Save the draft…</button><//>
    <section class="card" aria-label="The document"><div class="body"><${DocumentEdit} id="new-document" text=${text} set=${setText} check="/api/workflows:validate" /></div></section>`;
}
