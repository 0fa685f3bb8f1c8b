// Drawn marks, 16 by 16, in the colour of their text. A state has a shape of its own, so that colour is never alone.
import { html } from "../lib/dom.js";

const line = (content) => html`<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${content}</svg>`;
const full = (content) => html`<svg viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">${content}</svg>`;

const SHAPES = {
  check: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="m5.2 8.2 2 2 3.7-4.2" />`),
  cross: () => full(html`<path d="M5.2 1.5h5.6l3.7 3.7v5.6l-3.7 3.7H5.2l-3.7-3.7V5.2z" /><path d="m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4" stroke="var(--card)" stroke-width="1.6" stroke-linecap="round" />`),
  turn: () => line(html`<g class="turn"><path d="M8 1.8A6.2 6.2 0 1 1 1.8 8" /></g><circle cx="8" cy="8" r="1.6" fill="currentColor" stroke="none" />`),
  wait: () => line(html`<path d="M4 1.8h8M4 14.2h8M4.8 1.8c0 3.4 6.4 3.6 6.4 6.2s-6.4 2.8-6.4 6.2M11.2 1.8c0 3.4-6.4 3.6-6.4 6.2s6.4 2.8 6.4 6.2" />`),
  again: () => line(html`<path d="M13.8 8a5.8 5.8 0 1 1-1.9-4.3" /><path d="M13.9 1.6v3.2h-3.2" />`),
  pause: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="M6.3 5.6v4.8M9.7 5.6v4.8" />`),
  stop: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="m3.8 12.2 8.4-8.4" />`),
  skip: () => line(html`<path d="m3 4 4 4-4 4M8 4l4 4-4 4M13.6 4v8" />`),
  clock: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="M8 4.6V8l2.3 1.6" />`),
  late: () => line(html`<path d="M8 1.9 14.6 13.6H1.4z" /><path d="M8 6.2v3.4M8 11.7v.1" />`),
  dots: () => line(html`<circle cx="8" cy="8" r="6.2" stroke-dasharray="1.6 2.6" />`),
  off: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="M5.4 8h5.2" />`),
  gone: () => line(html`<path d="M2.5 13.5v-2M6.2 13.5V9M9.8 13.5V6" opacity=".5" /><path d="m2 2 12 12" />`),
  home: () => line(html`<path d="m2 7.6 6-5.4 6 5.4M3.6 6.4v7.2h8.8V6.4" />`),
  runs: () => line(html`<path d="M2 4h7M5 8h9M2 12h6" />`),
  calendar: () => line(html`<rect x="2" y="3" width="12" height="11" rx="1.5" /><path d="M2 6.6h12M5.2 1.6v2.6M10.8 1.6v2.6" />`),
  slots: () => line(html`<rect x="2" y="2.4" width="12" height="4.4" rx="1" /><rect x="2" y="9.2" width="5.2" height="4.4" rx="1" /><path d="M10 9.2h3a1 1 0 0 1 1 1v2.4a1 1 0 0 1-1 1h-3" stroke-dasharray="1.6 1.8" />`),
  gear: () => line(html`<circle cx="8" cy="8" r="2.2" /><path d="M8 1.6v2M8 12.4v2M1.6 8h2M12.4 8h2M3.5 3.5l1.4 1.4M11.1 11.1l1.4 1.4M3.5 12.5l1.4-1.4M11.1 4.9l1.4-1.4" />`),
  api: () => line(html`<path d="M5.2 4 1.8 8l3.4 4M10.8 4l3.4 4-3.4 4M9 2.8 7 13.2" />`),
  search: () => line(html`<circle cx="7" cy="7" r="4.6" /><path d="m10.6 10.6 3.4 3.4" />`),
  sun: () => line(html`<circle cx="8" cy="8" r="2.8" /><path d="M8 1.4v1.4M8 13.2v1.4M1.4 8h1.4M13.2 8h1.4M3.3 3.3l1 1M11.7 11.7l1 1M3.3 12.7l1-1M11.7 4.3l1-1" />`),
  moon: () => line(html`<path d="M13.6 9.6A6 6 0 0 1 6.4 2.4a6 6 0 1 0 7.2 7.2z" />`),
  contrast: () => html`<svg viewBox="0 0 16 16" aria-hidden="true"><circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.6" /><path d="M8 1.8a6.2 6.2 0 0 1 0 12.4z" fill="currentColor" /></svg>`,
  copy: () => line(html`<rect x="5.4" y="5.4" width="8.6" height="8.6" rx="1.4" /><path d="M10.6 5.4V3.2A1.2 1.2 0 0 0 9.4 2H3.2A1.2 1.2 0 0 0 2 3.2v6.2a1.2 1.2 0 0 0 1.2 1.2h2.2" />`),
  menu: () => line(html`<path d="M2 4h12M2 8h12M2 12h12" />`),
  close: () => line(html`<path d="m3.6 3.6 8.8 8.8m0-8.8-8.8 8.8" />`),
  play: () => line(html`<path d="M4.4 2.6v10.8L13 8z" />`),
  down: () => line(html`<path d="M8 2v8.4M4.4 7.2 8 10.8l3.6-3.6M2.4 14h11.2" />`),
  info: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="M8 7.2v3.8M8 4.9V5" />`),
  next: () => line(html`<path d="m6 3.4 4.6 4.6L6 12.6" />`),
  more: () => line(html`<path d="m4 6.4 4 4 4-4" />`),
  log: () => line(html`<rect x="2" y="2.4" width="12" height="11.2" rx="1.4" /><path d="M4.6 6h4.2M4.6 8.6h6.8M4.6 11.2h3" />`),
  flag: () => line(html`<path d="M4 14.4V2M4 2.8h8.4l-2 2.8 2 2.8H4" />`),
  grow: () => line(html`<path d="M9.6 2H14v4.4M14 2 9.4 6.6M6.4 14H2V9.6M2 14l4.6-4.6" />`),
  shrink: () => line(html`<path d="M13.8 6.6H9.4V2.2M9.4 6.6 14 2M2.2 9.4h4.4v4.4M6.6 9.4 2 14" />`),
  plus: () => line(html`<path d="M8 3v10M3 8h10" />`),
  minus: () => line(html`<path d="M3 8h10" />`),
  frame: () => line(html`<path d="M2 5.4V2h3.4M10.6 2H14v3.4M14 10.6V14h-3.4M5.4 14H2v-3.4" />`),
  fork: () => line(html`<path d="M2 8h4.4l3.2-4.4H14M6.4 8l3.2 4.4H14M11.8 1.6 14 3.6l-2.2 2M11.8 10.4l2.2 2-2.2 2" />`),
  person: () => line(html`<circle cx="8" cy="5" r="3" /><path d="M2.4 14.2c.6-3 2.8-4.4 5.6-4.4s5 1.4 5.6 4.4" />`),
  globe: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="M1.8 8h12.4M8 1.8c4 4 4 8.4 0 12.4-4-4-4-8.4 0-12.4z" />`),
  graph: () => line(html`<rect x="1.6" y="5.8" width="4.4" height="4.4" rx="1" /><rect x="10" y="1.8" width="4.4" height="4.4" rx="1" /><rect x="10" y="9.8" width="4.4" height="4.4" rx="1" /><path d="M6 8h1.6c1 0 .8-4 2.4-4M7.6 8c1 0 .8 4 2.4 4" />`),
  blocked: () => line(html`<circle cx="8" cy="8" r="6.2" stroke-dasharray="1.6 2.6" /><path d="m5.8 5.8 4.4 4.4m0-4.4-4.4 4.4" />`),
  help: () => line(html`<circle cx="8" cy="8" r="6.2" /><path d="M6.2 6.2a1.9 1.9 0 1 1 2.6 1.9c-.5.2-.8.6-.8 1.2M8 11.4v.1" />`),
};

/** @param {{of: keyof typeof SHAPES}} props */
export const Icon = ({ of }) => (SHAPES[of] ?? SHAPES.dots)();
