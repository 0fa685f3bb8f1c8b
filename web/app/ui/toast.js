// Short notices at the edge, spoken politely to screen readers.
import { html, signal } from "../lib/dom.js";
import { Icon } from "./icons.js";

const STAYS_MS = 6000;
let counter = 0;
const notices = signal([]);
const spoken = signal("");

/** Tells screen readers something that is seen anyway. @param {string} text */
export function speak(text) {
  spoken.value = text;
}

/** @param {any} text @param {{bad?: boolean, link?: {href: string, text: string}}} [options] */
export function say(text, options = {}) {
  counter += 1;
  const notice = { id: counter, text, ...options };
  notices.value = [...notices.peek().slice(-3), notice];
  setTimeout(() => dismiss(notice.id), options.bad ? STAYS_MS * 2 : STAYS_MS);
}

const dismiss = (id) => {
  notices.value = notices.peek().filter((each) => each.id !== id);
};

export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
    ${notices.value.map(({ id, text, bad, link }) => html`<div key=${id} class=${`toast ${bad ? "bad" : ""}`}>
      <div class="grow">${text}${link && html` <a href=${link.href}>${link.text}</a>`}</div>
      <button type="button" class="button ghost tiny icon" aria-label="Close this notice" onClick=${() => dismiss(id)}><${Icon} of="close" /></button>
    </div>`)}
  </div><div class="unseen" aria-live="polite">${spoken.value}</div>`;
