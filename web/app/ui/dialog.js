// Asking before something is done: what it will do, a reason where one is wanted, and the same as a command.
import { html, signal, useEffect, useRef, useState } from "../lib/dom.js";
import { act, freshKey } from "../lib/api.js";
import { asCli, asCurl } from "../lib/clip.js";
import { refresh } from "../lib/store.js";
import { CopyButton, Fault } from "./parts.js";
import { say } from "./toast.js";

/** Requests under way together, when there is one for each thing. */
const AT_ONCE = 4;

/**
 * @typedef {{method: string, path: string, body?: unknown, ifMatch?: string}} Request
 * @typedef {{name: string, label: string, type?: "text" | "choice" | "moment", choices?: [string, string][], value?: string,
 *   hint?: string, required?: boolean, when?: (values: Record<string, string>) => boolean}} Field `when`: asked only then
 * @typedef {{
 *   title: string,
 *   will: any,
 *   verb: string,
 *   danger?: boolean,
 *   fields?: Field[],
 *   request?: (values: Record<string, string>) => Request,
 *   requests?: (values: Record<string, string>) => Request[],
 *   cli?: (values: Record<string, string>) => string[] | string[][],
 *   done?: (answer: any) => any,
 *   refused?: (problem: any) => Promise<Wish | undefined>,
 * }} Wish `refused`: what to ask instead, when things have moved on since
 */

/** @type {{value: Wish | undefined}} */
const asked = signal(undefined);
let before;

/** @param {Wish} wish */
export function ask(wish) {
  before = document.activeElement;
  asked.value = wish;
}

function close() {
  // While a modal is open, nothing outside of it takes the focus.
  /** @type {HTMLDialogElement | null} */ (document.querySelector("dialog[open]"))?.close();
  asked.value = undefined;
  // The control that asked may have gone with what it acted on.
  if (before instanceof HTMLElement && before.isConnected) before.focus();
  else document.querySelector("main")?.focus();
}

/** A modal that opens when it is made and closes with Escape. @param {{label: string, className?: string, onClose: () => void, children?: any}} props */
export function Modal({ label, className = "", onClose, children }) {
  const element = useRef(null);
  useEffect(() => {
    const dialog = element.current;
    const from = document.activeElement;
    if (dialog && !dialog.open) dialog.showModal();
    return () => {
      // While a modal is open, nothing outside of it takes the focus.
      dialog?.close();
      if (document.activeElement === document.body && from instanceof HTMLElement && from.isConnected) from.focus();
    };
  }, []);
  const onCancel = (event) => {
    event.preventDefault();
    onClose();
  };
  const onClick = (event) => {
    if (event.target === element.current) onClose();
  };
  return html`<dialog ref=${element} class=${className} aria-label=${label} onCancel=${onCancel} onMouseDown=${onClick}>${children}</dialog>`;
}

/** @param {{field: Field, value: string, set: (value: string) => void}} props */
function Input({ field, value, set }) {
  const onInput = (event) => set(event.currentTarget.value);
  const id = `ask-${field.name}`;
  const control =
    field.type === "choice"
      ? html`<select class="input" id=${id} value=${value} onChange=${onInput}>${(field.choices ?? []).map(([key, text]) => html`<option value=${key}>${text}</option>`)}</select>`
      : html`<input class="input" id=${id} type=${field.type === "moment" ? "datetime-local" : "text"} value=${value} onInput=${onInput} required=${field.required} autocomplete="off" maxlength="500" />`;
  return html`<label class="field" for=${id}><span>${field.label}</span>${control}${field.hint && html`<span class="quiet tiny">${field.hint}</span>`}</label>`;
}

/** Sends the requests, a few at a time, each under its own key; of several some may be refused. @param {Request[]} requests @param {string} key */
async function each(requests, key) {
  const answers = [];
  for (let from = 0; from < requests.length; from += AT_ONCE) {
    const sent = requests.slice(from, from + AT_ONCE).map(({ method, path, body, ifMatch }, index) =>
      act(method, path, { body, ifMatch, key: requests.length === 1 ? key : `${key}-${from + index}` }));
    const told = await Promise.allSettled(sent);
    answers.push(...told.map((one) => (one.status === "fulfilled" ? { answer: one.value } : { problem: one.reason })));
  }
  if (answers.length === 1 && answers[0].problem) throw answers[0].problem;
  return answers;
}

/** @param {{wish: Wish}} props */
function Ask({ wish }) {
  const first = Object.fromEntries((wish.fields ?? []).map((field) => [field.name, field.value ?? ""]));
  const [values, setValues] = useState(first);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(undefined);
  // The same wish sent again carries the same key, and is done once.
  const key = useRef(freshKey());
  const sent = useRef("");
  const all = (now) => wish.requests?.(now) ?? (wish.request ? [wish.request(now)] : []);
  const onSubmit = async (event) => {
    event.preventDefault();
    const requests = all(values);
    const text = JSON.stringify(requests);
    if (sent.current && sent.current !== text) key.current = freshKey();
    sent.current = text;
    setBusy(true);
    setError(undefined);
    try {
      const answers = await each(requests, key.current);
      const answer = wish.requests ? answers : answers[0].answer;
      const told = wish.done?.(answer) ?? "Done";
      close();
      const [said, options] = Array.isArray(told) ? told : [told];
      if (said) say(said, options);
      refresh();
    } catch (problem) {
      const instead = await wish.refused?.(problem).catch(() => undefined);
      if (instead) asked.value = instead;
      else setError(problem);
      setBusy(false);
    }
  };
  const clis = wish.cli?.(values);
  const lines = clis && (Array.isArray(clis[0]) ? clis : [clis]).map((words) => asCli(words, location.origin)).join("\n");
  const curls = all(values).map((request) => asCurl(request, location.origin)).join("\n");
  return html`<${Modal} label=${wish.title} onClose=${close}>
    <form class="dialog" onSubmit=${onSubmit}>
      <h2>${wish.title}</h2>
      <div class="will small">${wish.will}</div>
      ${(wish.fields ?? []).filter((field) => field.when?.(values) ?? true).map((field) => html`<${Input} key=${field.name} field=${field} value=${values[field.name]} set=${(value) => setValues({ ...values, [field.name]: value })} />`)}
      ${error && html`<${Fault} error=${error} />`}
      <div class="buttons">
        <div class="copies">
          ${lines && html`<${CopyButton} label="Copy as CLI" text=${lines} />`}
          <${CopyButton} label="Copy as curl" text=${curls} />
        </div>
        <button type="button" class="button" autofocus=${!wish.fields?.length} onClick=${close}>Back</button>
        <button type="submit" class=${`button main ${wish.danger ? "danger" : ""}`} disabled=${busy}>${busy ? "Working…" : wish.verb}</button>
      </div>
    </form>
  <//>`;
}

export const Dialogs = () => asked.value && html`<${Ask} wish=${asked.value} />`;

/**
 * A button that asks.
 * @param {{wish: () => Wish, children?: any, className?: string, disabled?: boolean, title?: string}} props
 */
export const AskButton = ({ wish, children, className = "", disabled, title }) =>
  html`<button type="button" class=${`button ${className}`} disabled=${disabled} title=${title} onClick=${() => ask(wish())}>${children}</button>`;
