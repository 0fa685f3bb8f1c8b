// The whole log as a rail: where the view lies in it, and the way to any other place.
import { html, useRef } from "../lib/dom.js";
import { bytes, percent } from "../lib/format.js";

const THUMB_MIN = 28;
/** Parts of the log that a key goes. */
const STEPS = { ArrowUp: -0.01, ArrowLeft: -0.01, ArrowDown: 0.01, ArrowRight: 0.01, PageUp: -0.1, PageDown: 0.1 };

/**
 * @param {{reader: import("../lib/logreader.js").LogReader, height: number, marked?: number, hit?: number}} props
 */
export function Rail({ reader, height, marked, hit }) {
  const size = reader.size.value;
  const { from, to } = reader.seen.value;
  /** `at`: where the thumb is held, as a part of its way. @type {{current: {grab: number, wanted?: number, going: boolean, at?: number}}} */
  const drag = useRef({ grab: 0, wanted: undefined, going: false, at: undefined });
  const rail = useRef(null);
  const share = size > 0 ? Math.min(1, (to - from) / size) : 1;
  const thumb = Math.min(height, Math.max(THUMB_MIN, share * height));
  const free = Math.max(1, height - thumb);
  const span = Math.max(1, size - (to - from));
  const shown = drag.current.at ?? Math.min(1, from / span);
  const go = async () => {
    const state = drag.current;
    if (state.going) return;
    state.going = true;
    while (state.wanted !== undefined) {
      const part = state.wanted;
      state.wanted = undefined;
      if (part >= 1) await reader.toEnd();
      else await reader.jump(Math.floor(part * span));
    }
    state.going = false;
  };
  const want = (part) => {
    drag.current.wanted = Math.min(1, Math.max(0, part));
    go();
  };
  const move = (event) => {
    const y = event.clientY - rail.current.getBoundingClientRect().top;
    drag.current.at = Math.min(1, Math.max(0, (y - drag.current.grab) / free));
    want(drag.current.at);
  };
  const onPointerDown = (event) => {
    if (event.button !== 0) return;
    event.preventDefault();
    rail.current.setPointerCapture(event.pointerId);
    rail.current.focus({ preventScroll: true });
    const y = event.clientY - rail.current.getBoundingClientRect().top;
    const inside = y - shown * free;
    drag.current.grab = inside >= 0 && inside <= thumb ? inside : thumb / 2;
    move(event);
  };
  const onPointerMove = (event) => rail.current.hasPointerCapture(event.pointerId) && move(event);
  const onPointerUp = () => {
    drag.current.at = undefined;
  };
  const onKeyDown = (event) => {
    const step = STEPS[event.key];
    if (step === undefined && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    want(event.key === "Home" ? 0 : event.key === "End" ? 1 : from / span + step);
  };
  const tick = (offset, name) => offset !== undefined && size > 0 && html`<i class=${name} style=${{ top: `${Math.min(1, offset / size) * (height - 2)}px` }} />`;
  const part = percent(size > 0 ? to / size : 1);
  return html`<div class="log-rail" ref=${rail} role="slider" tabindex="0" aria-orientation="vertical" aria-label="Place in the whole log" aria-valuemin="0" aria-valuemax=${size}
    aria-valuenow=${from} aria-valuetext=${`${part}, byte ${from} of ${size}`} title=${`${part} of ${bytes(size)}`}
    onPointerDown=${onPointerDown} onPointerMove=${onPointerMove} onPointerUp=${onPointerUp} onPointerCancel=${onPointerUp} onKeyDown=${onKeyDown}>
    <b style=${{ height: `${thumb}px`, transform: `translateY(${shown * free}px)` }} />${tick(marked, "mark")}${tick(hit, "hit")}
  </div>`;
}
