// Parts that several cards of the home page use.
import { Fragment, html, useEffect, useRef, useState } from "../lib/dom.js";
import { Card } from "../ui/parts.js";
import { Time } from "../ui/time.js";

/** A sentence with its links and moments. @param {{parts: import("../lib/home.js").Part[]}} props */
export const Sentence = ({ parts }) => html`<${Fragment}>${parts.map((part) => {
  if ("at" in part) return html`<${Time} at=${part.at} ofJob=${part.ofJob} />`;
  if (part.href) return html`<a href=${part.href} class=${part.strong ? "named" : ""}>${part.text}</a>`;
  return part.strong ? html`<strong>${part.text}</strong>` : part.text;
})}<//>`;

/** A card whose head counts what is in it. @param {{title: any, count?: number, more?: any, id?: string, className?: string, steady?: object, children?: any}} props */
export const Counted = ({ title, count, more, id, className = "", steady = {}, children }) => html`<${Card} id=${id} flush className=${`home-card ${className}`}
  title=${html`${title}${count !== undefined && html` <span class="quiet count">${count}</span>`}`} more=${more}><div class="held" ...${steady}>${children}</div><//>`;

const STEADY_MS = 4000;

/**
 * Keeps a list as it is while somebody points at it or goes through it by keys: what is read or clicked must not move.
 * @template T
 * @param {T} value
 * @returns {[T, object]} what to show, and what the element around it listens to
 */
export function useSteady(value) {
  const shown = useRef(value);
  const until = useRef(0);
  const [, again] = useState(0);
  const left = until.current - Date.now();
  if (left <= 0) shown.current = value;
  const waits = shown.current !== value;
  useEffect(() => {
    if (!waits) return undefined;
    const timer = setTimeout(() => again((count) => count + 1), Math.max(left, 50));
    return () => clearTimeout(timer);
  });
  const touch = () => {
    until.current = Date.now() + STEADY_MS;
  };
  return [shown.current, { onPointerMove: touch, onPointerDown: touch, onFocusIn: touch, onKeyDown: touch }];
}
