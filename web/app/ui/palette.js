// Ctrl-K: go anywhere, do anything, by name.
import { html, signal, useEffect, useRef, useState } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { fits } from "../lib/fits.js";
import { go, to } from "../lib/route.js";
import { Modal } from "./dialog.js";
import { Icon } from "./icons.js";

const open = signal(false);
export const openPalette = () => {
  open.value = true;
};

/** @typedef {{text: string, kind: string, icon: string, run: () => void, also?: string}} Entry */

/** @type {{value: Entry[]}} */
const offered = signal([]);
/** Entries of the frame: pages and actions that are always there. @param {Entry[]} entries */
export const offer = (entries) => {
  offered.value = entries;
};

/** @returns {Promise<Entry[]>} */
async function names() {
  const [jobs, slots] = await Promise.all([get("/api/jobs?pagination.page_size=500"), get("/pools?entries=none")]);
  return [
    ...jobs.body.map(({ name }) => ({ text: name, kind: "job", icon: "calendar", run: () => go(to.job(name)) })),
    ...slots.body.map(({ name }) => ({ text: name, kind: "slot pool", icon: "slots", run: () => go(to.slots(name)) })),
  ];
}

function Palette() {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [things, setThings] = useState(/** @type {Entry[]} */ ([]));
  const input = useRef(null);
  useEffect(() => {
    input.current?.focus();
    names().then(setThings, () => {});
  }, []);
  const run = /^r_|^[0-9a-f]{8}-|^run_/.test(text.trim()) ? [{ text: text.trim(), kind: "open run", icon: "runs", run: () => go(to.run(text.trim())) }] : [];
  const found = [...run, ...[...offered.value, ...things]
    .map((entry) => ({ entry, score: text.trim() ? fits(`${entry.text} ${entry.also ?? ""}`, text.trim()) : 0 }))
    .filter(({ score }) => score >= 0)
    .sort((one, other) => one.score - other.score)
    .map(({ entry }) => entry)].slice(0, 40);
  const close = () => {
    open.value = false;
  };
  const take = (entry) => {
    close();
    entry?.run();
  };
  const onKeyDown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      setAt((at + step + found.length) % Math.max(found.length, 1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(found[at]);
    }
  };
  useEffect(() => {
    document.getElementById(`palette-${at}`)?.scrollIntoView({ block: "nearest" });
  }, [at]);
  return html`<${Modal} label="Go to or do" className="palette" onClose=${close}>
    <input ref=${input} type="text" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${`palette-${at}`} aria-label="Pages, names, actions"
      placeholder="Page, job, slot pool, run id or action" value=${text} autocomplete="off" spellcheck=${false}
      onInput=${(event) => { setText(event.currentTarget.value); setAt(0); }} onKeyDown=${onKeyDown} />
    <ul id="palette-list" role="listbox" aria-label="Found">${found.map((entry, index) => html`<li key=${`${entry.kind} ${entry.text}`} id=${`palette-${index}`} role="option" aria-selected=${index === at ? "true" : "false"}
      onMouseEnter=${() => setAt(index)} onClick=${() => take(entry)}><${Icon} of=${entry.icon} /><span>${entry.text}</span><span class="kind">${entry.kind}</span></li>`)}</ul>
    ${found.length === 0 && html`<p class="nothing">Nothing is called like that.</p>`}
  <//>`;
}

export const PaletteHost = () => open.value && html`<${Palette} />`;
