// `?`: every key that is bound now.
import { html, signal } from "../lib/dom.js";
import { bound } from "../lib/keys.js";
import { Modal } from "./dialog.js";

const open = signal(false);
export const openHelp = () => {
  open.value = true;
};

export function HelpHost() {
  if (!open.value) return null;
  const close = () => {
    open.value = false;
  };
  const groups = new Map();
  for (const binding of bound()) groups.set(binding.group, [...(groups.get(binding.group) ?? []), binding]);
  return html`<${Modal} label="Keys" onClose=${close}>
    <div class="dialog">
      <h2>Keys</h2>
      <div class="keys">${[...groups].map(([group, bindings]) => html`<h3 key=${group}>${group}</h3>${bindings.map(({ keys, about }) => html`
        <span key=${keys}>${keys.split(" ").map((key) => html`<kbd>${key}</kbd> `)}</span><span>${about}</span>`)}`)}
        <h3>In dialogs</h3><span><kbd>Esc</kbd></span><span>Close</span>
      </div>
      <div class="buttons"><button type="button" class="button main" onClick=${close}>Close</button></div>
    </div>
  <//>`;
}
