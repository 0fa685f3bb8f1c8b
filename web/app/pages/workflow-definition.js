// The document of a workflow: as it is, or as a draft that is being written.
import { html, useState } from "../lib/dom.js";
import { notJson } from "../lib/jsonplace.js";
import { isOfConfiguration, pretty } from "../lib/workflow.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Json } from "../ui/json.js";
import { CopyButton, Note } from "../ui/parts.js";
import { saveDraft } from "./workflow-actions.js";
import { DocumentEdit } from "./workflow-edit.js";

/** @param {{workflow: any}} props */
const Fixed = ({ workflow }) => html`<section class="card" aria-label="The document"><header><h2>Version ${workflow.newest_version}</h2><div class="more row wrap"><${CopyButton} text=${pretty(workflow.document)} /></div></header>
    <div class="body stack"><p class="small soft">What the configuration says of it, as a document.</p><${Json} value=${workflow.document} label="The document as JSON" /></div></section>`;

/** @param {{workflow: any}} props */
export function Definition({ workflow }) {
  return isOfConfiguration(workflow) ? html`<${Fixed} workflow=${workflow} />` : html`<${Editable} workflow=${workflow} />`;
}

/** @param {{workflow: any}} props */
function Editable({ workflow }) {
  const stored = pretty(workflow.document);
  // What is typed belongs to the document it began with; a newer one is told, never put over it.
  const [edit, setEdit] = useState({ of: stored, text: stored });
  const isChanged = edit.text !== edit.of;
  const isOld = edit.of !== stored;
  if (isOld && !isChanged) setEdit({ of: stored, text: stored });
  const isBroken = notJson(edit.text) !== undefined;
  const isSaved = edit.text === stored;
  return html`<section class="card" aria-label="The document"><header><h2>${workflow.draft ? "Draft" : `Version ${workflow.newest_version}`}</h2>
      <div class="more row wrap">
        <${CopyButton} text=${edit.text} />
        ${isChanged && !isSaved && html`<button type="button" class="button ghost" onClick=${() => setEdit({ of: stored, text: stored })}>Undo the changes</button>`}
        <button type="button" class="button main" disabled=${isBroken || isSaved} onClick=${() => ask(saveDraft(workflow, JSON.parse(edit.text)))}><${Icon} of="check" />Save as draft…</button>
      </div></header>
    <div class="body stack">
      ${isOld && isChanged && !isSaved && html`<${Note} of="wait" icon="info">The stored document has changed since you began to write. <button type="button" class="link" onClick=${() => setEdit({ of: stored, text: stored })}>Show the newer one</button> or go on with yours.<//>`}
      <${DocumentEdit} id="document" text=${edit.text} set=${(text) => setEdit({ ...edit, text })} check=${`/api/workflows/${encodeURIComponent(workflow.family_slug)}:validate`} />
    </div></section>`;
}
