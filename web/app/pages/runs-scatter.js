// Runs as marks in time: when each began and how long it took; to the right of now the fires to come. The list below says
// the same in words, so the picture is one image to a screen reader.
import { computed, html, useMemo, useState } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { leaveFor } from "../lib/leaving.js";
import { zone } from "../lib/prefs.js";
import { withTerm } from "../lib/filter.js";
import { go, param, setParams, to } from "../lib/route.js";
import { beganAt, shownState, tookMs } from "../lib/runs.js";
import { spanScale, timeTicks } from "../lib/scale.js";
import { clock, day, offsetOf, relative, span, zoneFor, zoneName } from "../lib/time.js";
import { familyOf, wordOf } from "../ui/state.js";
import { daemonNow } from "../ui/time.js";
import { useWidth } from "../ui/width.js";
import { useFires } from "./runs-fires.js";

const HEIGHT = 204;
const PAD = { left: 54, right: 14, top: 12, bottom: 24 };
const LANE = 28;
const REACH = 26;
const PAST_MIN_MS = 300_000;
const FUTURE_PART = 0.16;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const SHAPES = {
  succeeded: html`<circle r="3.6" />`,
  failed: html`<path d="M0-5.6 5.6 0 0 5.6-5.6 0z" />`,
  cancelled: html`<path d="M-3.6-3.6h7.2v7.2h-7.2z" />`,
  skipped: html`<path d="M-4.5-1.5h9v3h-9z" />`,
  running: html`<path d="M-3.6-4.8 5 0-3.6 4.8z" />`,
  retrying: html`<path d="M0-5 4.8 3.6h-9.6z" />`,
  waiting: html`<path d="M-4.2-4.6h8.4l-8.4 9.2h8.4z" />`,
  unreadable: html`<path d="M-4-4 4 4M4-4-4 4" />`,
  fire: html`<circle r="3.6" class="hollow" />`,
};
const ORDER = ["skipped", "succeeded", "cancelled", "waiting", "running", "retrying", "failed"];

/** @param {{marks: any[], from: number, to: number, now: number}} facts @param {string} shown */
function summary({ marks, from, to: until }, shown) {
  const counts = new Map();
  for (const { state } of marks) counts.set(state, (counts.get(state) ?? 0) + 1);
  const parts = [...counts].map(([state, count]) => (state === "fire" ? `${plural(count, "fire")} to come` : `${count} ${wordOf(state)}`));
  return `From ${clock(from, shown)} to ${clock(until, shown)} ${zoneName(until, shown)}: ${parts.join(", ") || "no runs"}. The list below says the same.`;
}

function marksOf(rows, fires, now, line) {
  const floor = HEIGHT - PAD.bottom - LANE / 2;
  const marks = rows.filter((run) => run.created_at).map((run) => {
    const state = shownState(run);
    const ms = tookMs(run, now);
    const y = ms === undefined ? floor : PAD.top + (1 - line.spans.part(ms)) * line.height;
    return { state, ms, x: line.x(beganAt(run)), y, run, key: run.id };
  });
  for (const { job, at, count } of fires) {
    const when = Date.parse(at);
    if (when >= now && when <= line.to) marks.push({ state: "fire", ms: undefined, x: line.x(when), y: floor, job, count, at: when, key: `${job} ${at}` });
  }
  return marks.sort((one, other) => ORDER.indexOf(one.state) - ORDER.indexOf(other.state));
}

/** @param {{mark: any, width: number, shown: string, now: number}} props */
function Tip({ mark, width, shown, now }) {
  const at = mark.at ?? beganAt(mark.run);
  const side = mark.x > width * 0.66 ? { right: `${width - mark.x + 12}px` } : { left: `${mark.x + 12}px` };
  return html`<div class="scatter-tip" style=${{ ...side, top: `${Math.max(4, Math.min(mark.y - 22, HEIGHT - 84))}px` }}>
    <strong>${mark.job ?? mark.run.job}</strong>
    <span class=${`state of-${familyOf(mark.state)}`}>${mark.state === "fire" ? (mark.count > 1 ? `${mark.count} fires in this hour` : "next fire") : wordOf(mark.state)}${mark.ms === undefined ? "" : `, ${span(mark.ms)}`}</span>
    <span class="quiet">${clock(at, shown)} ${zoneName(at, shown)}, ${relative(at, now)}</span>
    ${mark.run?.reason && html`<span class="quiet clip">${mark.run.reason}</span>`}
  </div>`;
}

/** @param {{states: string[]}} props */
const Legend = ({ states }) => html`<ul class="legend" aria-hidden="true">${states.map((state) => html`<li key=${state}>
  <svg viewBox="-8 -8 16 16" class=${`mark of-${state === "fire" ? "calm" : familyOf(state)}`}>${SHAPES[state]}</svg>${state === "fire" ? "next fire" : wordOf(state)}</li>`)}</ul>`;

/**
 * @param {{rows: any[], loading: boolean, asked: any, pointed: {value: string | undefined}}} props
 */
export function Scatter({ rows, loading, asked, pointed }) {
  const { element, width } = useWidth(900);
  const [hot, setHot] = useState(undefined);
  const [drag, setDrag] = useState(undefined);
  const shown = zoneFor(zone.value);
  const oldest = Math.min(...rows.map((run) => beganAt(run) ?? Infinity));
  const rough = Math.max(PAST_MIN_MS, Number.isFinite(oldest) ? Date.now() - oldest : 0);
  const tick = 10 ** Math.floor(Math.log10(Math.max(1000, rough / 400)));
  const coarse = useMemo(() => computed(() => Math.floor(daemonNow() / tick) * tick + tick), [tick]);
  const now = coarse.value;
  const from = Math.min(now - PAST_MIN_MS, Number.isFinite(oldest) ? oldest - rough * 0.01 : now);
  const until = now + (now - from) * FUTURE_PART;
  const inner = Math.max(60, width - PAD.left - PAD.right);
  const fires = useFires(asked, now, until);
  const { line, marks, drawn } = useMemo(() => {
    const axis = {
      to: until,
      height: HEIGHT - PAD.top - PAD.bottom - LANE,
      x: (at) => PAD.left + ((at - from) / (until - from)) * inner,
      at: (x) => from + ((x - PAD.left) / inner) * (until - from),
      spans: spanScale(rows.map((run) => tookMs(run, now))),
    };
    const all = marksOf(rows, fires, now, axis);
    return { line: axis, marks: all, drawn: all.map(({ key, state, x, y }) => html`<g key=${key} class=${`mark of-${state === "fire" ? "calm" : familyOf(state)}`} transform=${`translate(${x.toFixed(1)} ${y.toFixed(1)})`}>${SHAPES[state] ?? SHAPES.unreadable}</g>`) };
  }, [rows, fires, now, inner, from, until]);
  const ticks = timeTicks(from, until, Math.max(3, inner / 110), offsetOf(now, shown));
  const label = (at) => {
    const time = clock(at, shown, ticks.step < 60_000);
    // A day begins with its date.
    return ticks.step >= DAY_MS || (ticks.step >= HOUR_MS && time === "00:00") ? day(at, shown).slice(5) : time;
  };
  const base = HEIGHT - PAD.bottom;
  const nowX = line.x(now);
  const nearest = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best;
    for (const mark of marks) {
      const away = Math.hypot(mark.x - x, mark.y - y);
      if (away <= REACH && (!best || away <= best.away)) best = { away, mark };
    }
    return { x, mark: best?.mark };
  };
  const onPointerMove = (event) => {
    const { x, mark } = nearest(event);
    if (drag) setDrag({ ...drag, x });
    else if (mark?.key !== hot?.key) setHot(mark);
  };
  const onPointerDown = (event) => {
    if (event.pointerType === "mouse" && event.button === 0) setDrag({ from: nearest(event).x, x: nearest(event).x });
  };
  const onPointerUp = (event) => {
    const { x, mark } = nearest(event);
    const wide = drag && Math.abs(x - drag.from) > 8;
    setDrag(undefined);
    if (wide) {
      const [first, last] = [drag.from, x].sort((one, other) => one - other).map((each) => new Date(line.at(each)).toISOString().replace(/\.\d+/, ""));
      setParams({ filter: withTerm(withTerm(param("filter"), "since", first), "until", last) });
    } else if (mark?.run) {
      leaveFor(to.run(mark.run.id));
      go(to.run(mark.run.id));
    } else if (mark) go(to.job(mark.job));
  };
  // Nothing to come is in the picture, but something comes.
  const beyond = marks.some(({ state }) => state === "fire") ? undefined : fires.find(({ at }) => Date.parse(at) > until);
  const lit = marks.find((mark) => mark.key === (pointed.value ?? hot?.key));
  if (!loading && marks.length === 0) return null;
  const states = [...new Set(marks.map(({ state }) => state))].filter((state) => SHAPES[state]);
  return html`<section class="card flush scatter" aria-labelledby="scatter-title">
    <header><h2 id="scatter-title">When and how long</h2><${Legend} states=${states} /><span class="quiet tiny wide-only">drag to pick a time</span></header>
    <div class=${`body ${loading ? "loading" : ""}`} ref=${element}>
      <svg class=${hot && !drag ? "on-mark" : ""} width=${width} height=${HEIGHT} viewBox=${`0 0 ${width} ${HEIGHT}`} role="img" aria-label=${summary({ marks, from, to: until, now }, shown)}
        onPointerMove=${onPointerMove} onPointerLeave=${() => { setHot(undefined); setDrag(undefined); }} onPointerDown=${onPointerDown} onPointerUp=${onPointerUp}>
        <rect class="future" x=${nowX} y="0" width=${Math.max(0, width - nowX)} height=${base} />
        <g class="axis">${line.spans.ticks.map(({ at, text }) => {
          const y = PAD.top + (1 - at) * line.height;
          return html`<line key=${text} x1=${PAD.left} x2=${width} y1=${y} y2=${y} /><text x=${PAD.left - 8} y=${y + 3.5} text-anchor="end">${text}</text>`;
        })}
        <line class="base" x1=${PAD.left} x2=${width} y1=${base} y2=${base} />
        <text x=${PAD.left - 8} y=${base - LANE / 2 + 3.5} text-anchor="end">not run</text>
        ${ticks.ticks.map((at) => html`<line key=${at} class="base" x1=${line.x(at)} x2=${line.x(at)} y1=${base} y2=${base + 4} /><text key=${`t${at}`} x=${line.x(at)} y=${base + 16} text-anchor="middle">${label(at)}</text>`)}</g>
        <line class="now" x1=${nowX} x2=${nowX} y1="0" y2=${base} />
        ${drawn}
        ${beyond && width - nowX > 90 && html`<text class="beyond" x=${width - 8} y=${base - LANE / 2 + 3.5} text-anchor="end">${width - nowX > 160 ? "next fire " : ""}${relative(Date.parse(beyond.at), now)} →</text>`}
        ${lit && html`<circle class="lit" cx=${lit.x} cy=${lit.y} r="9" />`}
        ${drag && Math.abs(drag.x - drag.from) > 8 && html`<rect class="drag" x=${Math.min(drag.from, drag.x)} y="0" width=${Math.abs(drag.x - drag.from)} height=${base} />`}
      </svg>
      ${hot && !drag && html`<${Tip} mark=${hot} width=${width} shown=${shown} now=${now} />`}
    </div>
  </section>`;
}
