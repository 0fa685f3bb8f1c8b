// A graph of steps, drawn where the daemon laid it out: it can be moved, zoomed and walked with keys; a table says the same.
// What happens in a run changes classes and words, never a place.
import { effect, html, signal, useEffect, useRef, useState } from "../lib/dom.js";
import { branchWords, curve, edgeKind, firstView, fit, held, labelAt, roomFor, seesEdge, seesNode, shown, stepBy, typeWord, windowKey, windowOf, zoomed } from "../lib/graph.js";
import { GraphTwin } from "./graphtwin.js";
import { Icon } from "./icons.js";
import { familyOf, iconOf, wordOf } from "./state.js";

const PAN_STEP = 64;
const ZOOM_STEP = 1.25;
/** Further than this and a press is no click. */
const DRAG_PX = 4;
const HEIGHT_MIN = 150;
const TYPE_ICONS = { DATAFLOW: "api", SWITCH: "fork", WAIT: "clock", SCATTER: "grow", GATHER: "shrink", SUBWORKFLOW: "runs", CHECKPOINT: "flag", APPROVAL: "person", FAIL: "cross", SUCCEED: "check", COMMAND: "log", SENSOR: "search", HTTP: "globe", TASK: "play", ROUTE: "person" };
/** @param {string} type */
export const typeIcon = (type) => TYPE_ICONS[type.replace(/^STEP_TYPE_/, "")] ?? "dots";

/** Only what it shows is given, so that a node is drawn anew only when that changes. @param {any} props */
function Node({ of, title, type, x, y, width, height, state, words, total, good, bad, busy, folded, isBox, isBare, isPicked, isStop, onPick }) {
  const family = state ? familyOf(state) : "none";
  const sub = [typeWord(type), words || (state && wordOf(state)), folded > 0 && `${folded} steps`].filter(Boolean).join(" · ");
  const part = (count) => ({ width: `${(100 * count) / Math.max(total, 1)}%` });
  return html`<button type="button" class=${`g-node of-${family} ${isBox ? "g-box" : ""} ${isBare ? "g-bare" : ""} ${isPicked ? "picked" : ""}`} data-ref=${of} tabindex=${isStop ? 0 : -1} aria-pressed=${isPicked ? "true" : "false"}
    title=${title} style=${{ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` }} onClick=${() => onPick(of)}>
    ${isBare ? html`<span class="unseen">, ${sub}</span>` : html`<span class="g-face"><span class=${`g-icon of-${family}`}><${Icon} of=${state ? iconOf(state) : typeIcon(type)} /></span>
      <span class="g-text"><span class="g-title">${title}</span><span class="unseen">, </span><span class="g-sub">${sub}${words && state && html`<span class="unseen">, ${wordOf(state)}</span>`}</span></span></span>`}
    ${total > 0 && html`<span class="g-bar"><i class="of-good" style=${part(good)}></i><i class="of-bad" style=${part(bad)}></i><i class="of-busy" style=${part(busy)}></i></span>`}
  </button>`;
}

/** @param {{path: string, tipX: number, tipY: number, type: string, taken?: boolean | null, isLit: boolean, wordX: number, wordY: number}} props */
function Edge({ path, tipX, tipY, type, taken, isLit, wordX, wordY }) {
  const { kind, word } = edgeKind(type);
  const took = taken === true ? "taken" : taken === false ? "left-out" : "";
  return html`<g class=${`g-edge k-${kind} ${took} ${isLit ? "lit" : ""}`}><path d=${path} /><path class="tip" d=${`M${tipX - 8} ${tipY - 4.5}L${tipX} ${tipY}L${tipX - 8} ${tipY + 4.5}Z`} />${word && html`<text x=${wordX} y=${wordY + 3.5} text-anchor="middle">${word}</text>`}</g>`;
}

/** What the lines mean that are drawn. @param {{graph: import("../lib/graph.js").Graph}} props */
function Legend({ graph }) {
  const kinds = [...new Set(graph.edges.map((edge) => edge.type))].filter((type) => edgeKind(type).word);
  if (kinds.length === 0) return null;
  return html`<ul class="g-legend" aria-hidden="true">${["EDGE_TYPE_SUCCESS", ...kinds].map((type) => html`<li key=${type}><svg viewBox="0 0 32 8" class=${`g-edge k-${edgeKind(type).kind}`}><path d="M0 4H32" /></svg>${edgeKind(type).word || "on success"}</li>`)}</ul>`;
}

/** The part that is seen, moved by hand, wheel and keys. @param {{current: any}} latest */
function useView(latest) {
  const view = useRef(signal({ x: 0, y: 0, zoom: 1 })).current;
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const world = useRef(/** @type {HTMLElement | null} */ (null));
  const moved = useRef(false);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const set = (next, byHand = true) => {
    view.value = held(next, size, latest.current.graph);
    if (byHand) moved.current = true;
  };
  const by = (factor, about = { x: size.width / 2, y: size.height / 2 }) => set(zoomed(view.peek(), factor, about));
  const act = { view, box, world, moved, size, set, by, whole: () => set(fit(latest.current.graph, size)) };
  const acts = useRef(act);
  acts.current = act;
  useEffect(() => effect(() => {
    const { x, y, zoom } = view.value;
    if (world.current) world.current.style.transform = `translate(${x}px, ${y}px) scale(${zoom})`;
  }), []);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const watcher = new ResizeObserver(() => setSize((now) => (now.width === element.clientWidth && now.height === element.clientHeight ? now : { width: element.clientWidth, height: element.clientHeight })));
    watcher.observe(element);
    const onWheel = (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        const place = element.getBoundingClientRect();
        acts.current.by(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0025)), { x: event.clientX - place.left, y: event.clientY - place.top });
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        const now = view.peek();
        acts.current.set({ ...now, x: now.x - (event.deltaX || event.deltaY) });
      }
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => {
      watcher.disconnect();
      element.removeEventListener("wheel", onWheel);
    };
  }, []);
  return act;
}

/** The part of a large graph that is drawn. @param {any} view @param {{width: number, height: number}} size @param {{current: any}} latest */
function useWindow(view, size, latest) {
  const [key, setKey] = useState("");
  const now = useRef(size);
  now.current = size;
  useEffect(() => effect(() => setKey(windowKey(latest.current.graph, view.value, now.current))), [size.width, size.height, latest.current.graph.nodes.length]);
  // Before its size is known nothing of a large one is drawn.
  return key || (size.width === 0 ? windowKey(latest.current.graph, { x: 0, y: 0, zoom: 1 }, size) : "");
}

/** Moving by pointer; a press that did not move stays a click. */
function useDrag({ view, box, set }) {
  const from = useRef(/** @type {any} */ (undefined));
  const swallows = useRef(false);
  const onPointerDown = (event) => {
    if (event.button === 0) from.current = { x: event.clientX, y: event.clientY, view: view.peek(), id: event.pointerId, drags: false };
  };
  const onPointerMove = (event) => {
    const begun = from.current;
    if (!begun || begun.id !== event.pointerId) return;
    const [x, y] = [event.clientX - begun.x, event.clientY - begun.y];
    if (!begun.drags && Math.hypot(x, y) < DRAG_PX) return;
    if (!begun.drags) {
      begun.drags = true;
      box.current?.setPointerCapture(event.pointerId);
    }
    set({ ...begun.view, x: begun.view.x + x, y: begun.view.y + y });
  };
  const end = () => {
    const drags = from.current?.drags;
    from.current = undefined;
    swallows.current = Boolean(drags);
    setTimeout(() => { swallows.current = false; }, 0);
  };
  const onClickCapture = (event) => {
    if (swallows.current) event.stopPropagation();
  };
  return { onPointerDown, onPointerMove, onPointerUp: end, onPointerCancel: () => { from.current = undefined; }, onClickCapture };
}

/**
 * @param {{graph: import("../lib/graph.js").Graph, label: string, picked?: string, onPick: (ref: string) => void}} props
 */
export function Graph({ graph, label, picked, onPick }) {
  const latest = useRef({ graph, picked });
  latest.current = { graph, picked };
  const look = useView(latest);
  const { view, size, set, by } = look;
  const part = windowOf(useWindow(view, size, latest));
  const [stop, setStop] = useState(/** @type {string | undefined} */ (undefined));
  const pick = useRef(onPick);
  pick.current = onPick;
  const onNode = useRef((ref) => pick.current(ref)).current;
  const shape = `${graph.width} ${graph.height} ${graph.nodes.length}`;
  const drawn = useRef("");
  useEffect(() => {
    if (size.width === 0) return;
    if (drawn.current !== shape) look.moved.current = false;
    drawn.current = shape;
    if (look.moved.current) set(view.peek());
    else set(firstView(graph, size, picked), false);
  }, [shape, size.width, size.height]);
  const onFocus = (event) => {
    const ref = event.target.dataset?.ref;
    const node = ref && graph.nodes.find((each) => each.ref === ref);
    if (!node) return;
    setStop(ref);
    if (event.target.matches(":focus-visible")) set(shown(view.peek(), { ...node, height: Math.min(node.height, 64) }, size, graph), false);
  };
  const boxOf = (ref) => /** @type {HTMLElement | null | undefined} */ (look.box.current?.querySelector(`[data-ref="${CSS.escape(ref)}"]`));
  const focusOn = (ref) => {
    const known = boxOf(ref);
    if (known) return known.focus({ preventScroll: true });
    // It lies outside of what is drawn: it is drawn first.
    const node = graph.nodes.find((each) => each.ref === ref);
    if (node) set(shown(view.peek(), node, size, graph));
    return requestAnimationFrame(() => requestAnimationFrame(() => boxOf(ref)?.focus({ preventScroll: true })));
  };
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const ref = event.target.dataset?.ref;
    const pan = { ArrowLeft: [1, 0], ArrowRight: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    const zoom = { "+": ZOOM_STEP, "=": ZOOM_STEP, "-": 1 / ZOOM_STEP }[event.key];
    if (pan && ref && !event.shiftKey) {
      const next = stepBy(graph, ref, event.key);
      if (next) focusOn(next);
    } else if (pan) {
      const now = view.peek();
      set({ ...now, x: now.x + pan[0] * PAN_STEP, y: now.y + pan[1] * PAN_STEP });
    } else if (zoom) by(zoom);
    else if (event.key === "0") look.whole();
    else return;
    event.preventDefault();
  };
  const first = stop && graph.nodes.some((node) => node.ref === stop) ? stop : (picked ?? graph.nodes[0]?.ref);
  const boxes = new Set(graph.nodes.map((node) => node.parent).filter(Boolean));
  const height = Math.max(HEIGHT_MIN, roomFor(graph, size.width));
  const drag = useDrag(look);
  const fits = graph.height + 48 <= size.height;
  return html`<div class="graph">
    <div class=${`g-view ${fits ? "g-low" : ""}`} ref=${look.box} role="group" tabindex="0" aria-label=${`${label}. Arrow keys move the picture, or from step to step; plus, minus and 0 zoom.`} style=${{ height: `min(${height}px, 68vh)` }}
      onKeyDown=${onKeyDown} onFocusIn=${onFocus} ...${drag}>
      <div class="g-world" ref=${look.world} style=${{ width: `${graph.width}px`, height: `${graph.height}px` }}>
        ${graph.nodes.filter((node) => boxes.has(node.ref) && seesNode(part, node)).map(nodeOf)}
        <svg class="g-edges" width=${graph.width} height=${graph.height} aria-hidden="true">${graph.edges.filter((edge) => seesEdge(part, edge.points)).map((edge) => {
          const [x, y] = edge.points[edge.points.length - 1];
          const word = labelAt(edge.points);
          return html`<${Edge} key=${`${edge.source_ref} ${edge.target_ref} ${edge.type}`} path=${curve(edge.points)} tipX=${x} tipY=${y} type=${edge.type} taken=${edge.taken} isLit=${edge.source_ref === picked || edge.target_ref === picked} wordX=${word.x} wordY=${word.y} />`;
        })}</svg>
        ${graph.nodes.filter((node) => !boxes.has(node.ref) && (node.ref === first || seesNode(part, node))).map(nodeOf)}
      </div>
    </div>
    <div class="g-below"><${Legend} graph=${graph} /><${Tools} view=${view} by=${by} whole=${look.whole} /><${GraphTwin} graph=${graph} onPick=${onNode} /></div>
  </div>`;

  function nodeOf(node) {
    const { branches } = node;
    return html`<${Node} key=${node.ref} of=${node.ref} title=${node.title || node.ref} type=${node.type} x=${node.x} y=${node.y} width=${node.width} height=${node.height} state=${node.state ?? ""}
      words=${branchWords(branches)} total=${branches?.total ?? 0} good=${branches?.succeeded ?? 0} bad=${branches?.failed ?? 0} busy=${branches?.running ?? 0} folded=${node.folded ?? 0}
      isBox=${boxes.has(node.ref)} isBare=${part?.isBare ?? false} isPicked=${node.ref === picked} isStop=${node.ref === first} onPick=${onNode} />`;
  }
}

/** @param {{view: {value: {zoom: number}}, by: (factor: number) => void, whole: () => void}} props */
function Tools({ view, by, whole }) {
  return html`<div class="g-tools">
    <button type="button" class="button icon ghost" aria-label="Smaller" title="Smaller (-)" onClick=${() => by(1 / ZOOM_STEP)}><${Icon} of="minus" /></button>
    <span class="tiny g-zoom">${Math.round(view.value.zoom * 100)} %</span>
    <button type="button" class="button icon ghost" aria-label="Larger" title="Larger (+)" onClick=${() => by(ZOOM_STEP)}><${Icon} of="plus" /></button>
    <button type="button" class="button icon ghost" aria-label="All of it" title="All of it (0)" onClick=${whole}><${Icon} of="frame" /></button>
  </div>`;
}
