// Parts that several cards of the home page use.
import { Fragment, html } from "../lib/dom.js";
import { Card } from "../ui/parts.js";
import { Time } from "../ui/time.js";

/** A sentence with its links and moments. @param {{parts: import("../lib/home.js").Part[]}} props */
export const Sentence = ({ parts }) => html`<${Fragment}>${parts.map((part) => {
  if ("at" in part) return html`<${Time} at=${part.at} ofJob=${part.ofJob} />`;
  if (part.href) return html`<a href=${part.href} class=${part.strong ? "named" : ""}>${part.text}</a>`;
  return part.strong ? html`<strong>${part.text}</strong>` : part.text;
})}<//>`;

/** A card whose head counts what is in it. @param {{title: any, count?: number, more?: any, id?: string, className?: string, children?: any}} props */
export const Counted = ({ title, count, more, id, className = "", children }) => html`<${Card} id=${id} flush className=${`home-card ${className}`}
  title=${html`${title}${count !== undefined && html` <span class="quiet count">${count}</span>`}`} more=${more}>${children}<//>`;
