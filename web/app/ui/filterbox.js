// A filter as text with completions; the text lives in the address.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { completions } from "../lib/filter.js";
import { bind } from "../lib/keys.js";
import { param, setParams } from "../lib/route.js";
import { Icon } from "./icons.js";

const SETTLE_MS = 250;

/**
 * @param {{keys: import("../lib/filter.js").FilterKey[], label: string, placeholder: string, faults?: string[], name?: string}} props
 */
export function FilterBox({ keys, label, placeholder, faults = [], name = "filter" }) {
  const inUrl = param(name);
  const [text, setText] = useState(inUrl);
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const input = useRef(null);
  const timer = useRef(undefined);
  const settled = useRef(inUrl);
  useEffect(() => {
    // What comes back from here is older than what has been typed since.
    if (inUrl !== settled.current) setText(inUrl);
    settled.current = inUrl;
  }, [inUrl]);
  useEffect(() => bind("/", "Filter", () => input.current?.focus(), "Lists"), []);
  const settle = (next) => {
    clearTimeout(timer.current);
    settled.current = next.trim();
    setParams({ [name]: settled.current }, { replace: true });
  };
  const change = (next) => {
    setText(next);
    setAt(-1);
    setOpen(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => settle(next), SETTLE_MS);
  };
  const offers = open ? completions(text, keys) : [];
  const take = (offer) => {
    change(offer.insert);
    input.current?.focus();
  };
  const onKeyDown = (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      const step = event.key === "ArrowDown" ? 1 : -1;
      setAt(offers.length === 0 ? -1 : (at + step + offers.length) % offers.length);
    } else if (event.key === "Enter" || (event.key === "Tab" && at >= 0)) {
      event.preventDefault();
      if (offers[at]) take(offers[at]);
      else {
        settle(text);
        setOpen(false);
      }
    } else if (event.key === "Escape") {
      if (offers.length > 0) setOpen(false);
      else input.current?.blur();
    }
  };
  const id = `filter-${name}`;
  return html`<div class="filter" role="search">
    <${Icon} of="search" />
    <input ref=${input} class="input" type="text" role="combobox" aria-expanded=${offers.length > 0} aria-controls=${`${id}-offers`} aria-autocomplete="list"
      aria-activedescendant=${at >= 0 ? `${id}-${at}` : undefined} aria-label=${label} placeholder=${placeholder} value=${text} spellcheck=${false} autocomplete="off"
      onInput=${(event) => change(event.currentTarget.value)} onFocus=${() => setOpen(true)} onBlur=${() => setTimeout(() => setOpen(false), 120)} onKeyDown=${onKeyDown} />
    ${offers.length > 0 && html`<ul role="listbox" id=${`${id}-offers`} aria-label="Completions">${offers.map((offer, index) => html`<li key=${offer.label} id=${`${id}-${index}`} role="option" aria-selected=${index === at ? "true" : "false"}
      onMouseDown=${(event) => { event.preventDefault(); take(offer); }}><code>${offer.label}</code><span>${offer.about}</span></li>`)}</ul>`}
    ${faults.length > 0 && html`<p class="small bad" role="alert">${faults.join("; ")}</p>`}
  </div>`;
}
