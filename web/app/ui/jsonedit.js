// A JSON document in a text field, with all that is wrong with it beside it, each at its line.
import { html, useMemo, useRef } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { lineAt, notJson, placeOf, placesOf } from "../lib/jsonplace.js";
import { Icon } from "./icons.js";

/**
 * @param {{id: string, label: string, text: string, set: (text: string) => void, findings?: {pointer: string, code?: string, message: string}[], checking?: boolean, good?: string, rows?: number, invalid?: boolean}} props
 *   `good`: what is said when nothing is wrong
 */
export function JsonEdit({ id, label, text, set, findings, checking, good, rows = 22 }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const broken = useMemo(() => notJson(text), [text]);
  const places = useMemo(() => (broken ? new Map() : placesOf(text)), [text, broken]);
  const go = (from, to) => {
    const element = field.current;
    if (!element || from === undefined) return;
    element.focus();
    element.setSelectionRange(from, to ?? from);
    const line = lineAt(text, from);
    element.scrollTop = Math.max(0, (line - 4) * (element.scrollHeight / Math.max(text.split("\n").length, 1)));
  };
  const onKeyDown = (event) => {
    // Tab leaves the field, as everywhere; two spaces are typed.
    if (event.key === "Escape") event.currentTarget.blur();
  };
  const faults = broken ? [{ pointer: "", message: `This is no JSON: ${broken.message}`, at: broken.at, to: broken.at === undefined ? undefined : broken.at + 1 }]
    : (findings ?? []).map((finding) => {
        const place = placeOf(places, finding.pointer);
        return { ...finding, at: place?.from, to: place?.to };
      });
  return html`<div class="json-edit">
    <textarea ref=${field} class="input" id=${id} aria-label=${label} aria-invalid=${faults.length > 0 ? "true" : "false"} aria-describedby=${`${id}-faults`} spellcheck=${false} autocomplete="off" autocapitalize="off" wrap="off" rows=${rows} value=${text} onInput=${(event) => set(event.currentTarget.value)} onKeyDown=${onKeyDown}></textarea>
    <div class="json-faults" id=${`${id}-faults`} aria-live="polite">
      ${faults.length === 0 ? html`<p class="small">${checking ? html`<span class="quiet">Being checked…</span>` : good && html`<span class="state of-good"><${Icon} of="check" />${good}</span>`}</p>`
        : html`<p class="small"><span class="state of-bad"><${Icon} of="cross" />${plural(faults.length, "thing is", "things are")} wrong</span></p>
          <ul>${faults.map((fault, at) => html`<li key=${`${fault.pointer} ${fault.code ?? ""} ${at}`}><button type="button" class="fault-at" onClick=${() => go(fault.at, fault.to)} disabled=${fault.at === undefined}>
            <span class="tiny quiet nowrap">${fault.at === undefined ? "" : `line ${lineAt(text, fault.at)}`}</span><span>${fault.pointer && html`<code>${fault.pointer}</code> `}${fault.message}${fault.code && html` <span class="quiet tiny">${fault.code}</span>`}</span></button></li>`)}</ul>`}
    </div>
  </div>`;
}
