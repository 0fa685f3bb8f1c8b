// A button that opens a short list of actions. Escape closes it and gives the focus back.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { Icon } from "./icons.js";

/**
 * @typedef {{title: string, icon: string, run?: () => void, href?: string, download?: boolean, danger?: boolean}} Item
 * @param {{label: string, items: Item[]}} props
 */
export function Menu({ label, items }) {
  const [open, setOpen] = useState(false);
  const whole = useRef(null);
  const list = () => [...(whole.current?.querySelectorAll("[role=menuitem]") ?? [])];
  useEffect(() => {
    if (open) list()[0]?.focus();
  }, [open]);
  const close = () => {
    setOpen(false);
    whole.current?.querySelector("button")?.focus();
  };
  const onKeyDown = (event) => {
    if (!open) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") {
      event.stopPropagation();
      event.preventDefault();
      close();
    } else if (step) {
      event.preventDefault();
      const all = list();
      all[(all.indexOf(document.activeElement) + step + all.length) % all.length]?.focus();
    }
  };
  const onFocusOut = (event) => {
    if (!event.currentTarget.contains(event.relatedTarget)) setOpen(false);
  };
  /** @param {Item} one */
  const item = ({ title, icon, run, href, download, danger }) => {
    const inner = html`<${Icon} of=${icon} />${title}`;
    const look = danger ? "danger" : "";
    if (href) return html`<a role="menuitem" class=${look} href=${href} download=${download} onClick=${() => setOpen(false)}>${inner}</a>`;
    return html`<button type="button" role="menuitem" class=${look} onClick=${() => { close(); run?.(); }}>${inner}</button>`;
  };
  return html`<div class="menu" ref=${whole} onKeyDown=${onKeyDown} onFocusOut=${onFocusOut}>
    <button type="button" class="button" aria-haspopup="menu" aria-expanded=${open ? "true" : "false"} onClick=${() => setOpen(!open)}>${label}<${Icon} of="more" /></button>
    ${open && html`<div role="menu" aria-label=${label}>${items.map((each) => html`<div role="none" key=${each.title}>${item(each)}</div>`)}</div>`}
  </div>`;
}
