// Small parts that every page uses: commands to copy, empty and error states, tabs, cards, notes.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { copy } from "../lib/clip.js";
import { Icon } from "./icons.js";
import { say } from "./toast.js";

/** @param {{text: string, label?: string, tiny?: boolean}} props */
export function CopyButton({ text, label = "Copy", tiny = true }) {
  const [done, setDone] = useState(false);
  const onClick = async () => {
    try {
      await copy(text);
      setDone(true);
      say("Copied");
      setTimeout(() => setDone(false), 1500);
    } catch {
      say("The browser did not allow copying");
    }
  };
  return html`<button type="button" class=${`button ghost ${tiny ? "tiny" : ""}`} onClick=${onClick} title=${text}>
    <${Icon} of=${done ? "check" : "copy"} />${done ? "Copied" : label}
  </button>`;
}

/** One command to copy. @param {{text: string}} props */
export const Command = ({ text }) => html`<div class="command"><code>${text}</code><${CopyButton} text=${text} /></div>`;

/** Nothing there yet: one sentence and what to do. @param {{children?: any, command?: string, title: string}} props */
export const Nothing = ({ title, command, children }) => html`<div class="nothing">
  <p>${title}</p>${command && html`<${Command} text=${command} />`}${children}
</div>`;

/** A request that failed, by its name, with a way to try again. @param {{error: any, again?: () => void}} props */
export function Fault({ error, again }) {
  const isProblem = error && "detail" in error;
  return html`<div class="fault-box" role="alert">
    <div class="row"><span class="state of-bad"><${Icon} of="cross" /></span><strong>${isProblem ? error.detail : String(error)}</strong></div>
    ${isProblem && html`<p class="what small"><code>${error.method} ${error.path}</code>${error.status ? html` answered ${error.status} ${error.code}` : ""}${error.requestId ? html`, request <code>${error.requestId}</code>` : ""}</p>`}
    ${error?.errors?.length > 0 && html`<ul class="what small stack">${error.errors.map((each) => html`<li><code>${each.pointer}</code> ${each.detail}</li>`)}</ul>`}
    ${again && html`<div><button type="button" class="button" onClick=${again}>Try again</button></div>`}
  </div>`;
}

/** @param {{lines?: number}} props */
export const Skeleton = ({ lines = 4 }) => html`<div class="skeleton" aria-hidden="true">${Array.from({ length: lines }, () => html`<i />`)}</div>`;

/**
 * What a query shows: its answer once there is one; before that a skeleton or why not. An old answer stays while a newer
 * one cannot be had, with a word about it.
 * @param {{query: any, lines?: number, children: (data: any) => any}} props
 */
export function Loaded({ query, lines, children }) {
  if (query.data === undefined) {
    return query.error ? html`<div class="body"><${Fault} error=${query.error} again=${query.reload} /></div>` : html`<${Skeleton} lines=${lines} />`;
  }
  const old = query.error && query.error.code !== "UNREACHABLE";
  return html`${old && html`<div class="body"><${Fault} error=${query.error} again=${query.reload} /></div>`}${children(query.data)}`;
}

/** @param {{title: any, more?: any, flush?: boolean, children?: any, className?: string, id?: string, icon?: string}} props */
export const Card = ({ title, more, flush, children, className = "", id, icon }) => html`<section class=${`card ${flush ? "flush" : ""} ${className}`} id=${id}>
  <header>${icon && html`<${Icon} of=${icon} />`}<h2>${title}</h2>${more && html`<div class="more row wrap">${more}</div>`}</header>
  <div class="body">${children}</div>
</section>`;

/** @param {{of?: string, icon?: string, children?: any}} props */
export const Note = ({ of = "calm", icon = "info", children }) => html`<div class=${`note of-${of}`}><${Icon} of=${icon} /><div class="grow">${children}</div></div>`;

/**
 * Tabs that live in the address.
 * @param {{tabs: {key: string, title: any}[], at: string, onPick: (key: string) => void, label: string}} props
 */
export function Tabs({ tabs, at, onPick, label }) {
  const list = useRef(null);
  // On a narrow screen the row of tabs scrolls; the one that is shown stays in sight.
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [at]);
  const onKeyDown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const index = tabs.findIndex(({ key }) => key === at);
    const next = tabs[(index + step + tabs.length) % tabs.length];
    onPick(next.key);
    requestAnimationFrame(() => list.current?.querySelector(`[data-key="${next.key}"]`)?.focus());
  };
  return html`<div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${onKeyDown}>
    ${tabs.map(({ key, title }) => html`<button type="button" role="tab" key=${key} data-key=${key} id=${`tab-${key}`} aria-controls=${`panel-${key}`}
      aria-selected=${key === at ? "true" : "false"} tabindex=${key === at ? 0 : -1} onClick=${() => onPick(key)}>${title}</button>`)}
  </div>`;
}

/** What a tab shows. @param {{of: string, children?: any}} props */
export const Panel = ({ of, children }) => html`<div role="tabpanel" id=${`panel-${of}`} aria-labelledby=${`tab-${of}`} tabindex="-1">${children}</div>`;

/** Pairs of a name and a value; what is undefined is left out. @param {{of: [any, any][]}} props */
export const Facts = ({ of }) => html`<dl class="facts">${of
  .filter(([, value]) => value !== undefined && value !== null && value !== "")
  .map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`;

/** The head of a page: its title, what stands beside it, and what can be done. @param {{title: any, beside?: any, children?: any}} props */
export const PageHead = ({ title, beside, children }) => html`<div class="page-head"><h1>${title}</h1>${beside}${children && html`<div class="actions">${children}</div>`}</div>`;
