// The life of a run on one axis: waits, attempts and back-off as pieces with their lengths; a line at now while it goes on.
import { html, useState } from "../lib/dom.js";
import { capital, plural } from "../lib/format.js";
import { go, to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { spanTicks } from "../lib/scale.js";
import { relative, span, whole } from "../lib/time.js";
import { foremost, KIND_WORDS, layout, standings, sums } from "../lib/timeline.js";
import { Icon } from "../ui/icons.js";
import { Card, Loaded } from "../ui/parts.js";
import { familyOf, State, wordOf } from "../ui/state.js";
import { daemonNow, Time } from "../ui/time.js";
import { Told } from "../ui/told.js";
import { useWidth } from "../ui/width.js";
import { logTab } from "./run-log.js";
import { zoneOf } from "./runs-names.js";

const ROWS_MAX = 8;
/** Steps that are shown before the rest is asked for. */
const STEPS_MAX = 24;
const CHAR_PX = 6.6;

/** What is computed takes no time: a moment, not a wait. */
const isMoment = (piece) => Boolean(piece.step) && piece.kind === "queued" && !piece.open && piece.to - piece.from < 50;
const lookOf = (piece) => (isMoment(piece) ? "moment" : piece.kind !== "running" ? piece.kind : `running of-${piece.open ? "busy" : familyOf(piece.outcome ?? "succeeded")}`);
const lengthOf = (piece) => (piece.open ? whole(piece.to - piece.from) : span(piece.to - piece.from));

/** What is said about a piece that is pointed at, or about all of them. */
function Words({ run, piece, all }) {
  const zone = zoneOf(run.job);
  if (!piece && all.steps.length > 0) {
    return html`<p class="tl-told"><strong>${all.isOpen ? whole(all.lived) : span(all.lived)}</strong> ${all.isOpen ? "so far" : "in all"}, ${plural(all.steps.length + all.moreSteps, "step")}: ${standings(all.steps, wordOf)}${all.moreSteps > 0 ? html`, and <a href=${to.run(run.id, "graph")}>${all.moreSteps} more</a>` : ""}.</p>`;
  }
  if (!piece) {
    const parts = sums(all.pieces).filter(({ ms }) => ms >= all.lived * 0.001);
    return html`<p class="tl-told"><strong>${all.isOpen ? whole(all.lived) : span(all.lived)}</strong> ${all.isOpen ? "so far" : "in all"}: ${parts.map(({ kind, ms }, at) => html`${at > 0 ? ", " : ""}<span class=${`key k-${kind}`}></span>${span(ms)} ${KIND_WORDS[kind] ?? kind}`)}${all.lag > 1500 ? html`. It began ${whole(all.lag)} after it was due` : ""}.</p>`;
  }
  return html`<p class="tl-told">${piece.step && html`${piece.step.title}: `}<strong>${piece.step ? piece.text : capital(piece.text)}</strong>, <span class="nowrap">${lengthOf(piece)}</span>: <${Time} at=${piece.from} ofJob=${zone} /> to ${piece.open ? "now" : html`<${Time} at=${piece.to} ofJob=${zone} />`}${piece.node ? ` on ${piece.node}` : ""}</p>`;
}

/** What a row is about: a step, or an attempt. @param {{run: any, row: any}} props */
function Name({ run, row }) {
  const { step } = row;
  if (step) return html`<span class="tl-name"><a class="plain clip" href=${stepTab(run, step.ref)} title=${step.ref}>${step.title}</a><${State} of=${step.state} iconOnly=${true} /></span>`;
  const ran = row.pieces.find(({ kind }) => kind === "running");
  return html`<span class="tl-name">${row.omitted ? "earlier" : html`<span>Attempt ${row.attempt}</span>${ran && html`<${State} of=${ran.open ? "running" : (ran.outcome ?? "succeeded")} iconOnly=${true} />`}`}</span>`;
}

const stepTab = (run, ref) => `${to.run(run.id, "graph")}&step=${encodeURIComponent(ref)}`;

/** Where a piece leads: to the log of the attempt that ran, else to its step. */
function follow(run, piece) {
  if (piece.kind === "running" && piece.node) go(logTab(run, piece.attempt, piece.step?.ref));
  else if (piece.step) go(stepTab(run, piece.step.ref));
}

/** @param {{run: any, row: any, all: any, width: number, point: (piece: any) => void}} props */
function Row({ run, row, all, width, point }) {
  return html`<li class="tl-row"><${Name} run=${run} row=${row} />
    <div class="tl-track">${row.pieces.map((piece, at) => {
      const [left, right] = [all.part(piece.from), all.part(piece.to)];
      const wide = (right - left) * width;
      const text = lengthOf(piece);
      const inside = wide > text.length * CHAR_PX + 12;
      const isLast = at === row.pieces.length - 1;
      const isNothing = row.step && piece.to === piece.from;
      const outside = !inside && isLast && !isNothing && width * (1 - right) > text.length * CHAR_PX + 12;
      const label = `${row.step ? row.step.title : `Attempt ${piece.attempt}`}, ${KIND_WORDS[piece.kind] ?? piece.kind}${piece.outcome ? `, ${wordOf(piece.outcome)}` : ""}: ${text}. ${piece.text}`;
      return html`<button type="button" key=${`${piece.kind}-${piece.from}`} class=${`tl-piece k-${lookOf(piece)} ${piece.open ? "open" : ""} ${piece.step ? "leads" : ""}`} style=${{ left: `min(calc(100% - 3px), ${left * 100}%)`, width: `max(3px, ${(right - left) * 100}%)` }} aria-label=${label}
        onMouseEnter=${() => point(piece)} onMouseLeave=${() => point(undefined)} onFocus=${() => point(piece)} onBlur=${() => point(undefined)}
        onClick=${() => follow(run, piece)}>${inside && html`<span>${text}</span>`}</button>${outside && html`<span class="tl-beside" style=${{ left: `${right * 100}%` }}>${text}</span>`}`;
    })}</div>
  </li>`;
}

/** @param {{mark: any, all: any}} props */
function Mark({ mark, all }) {
  const part = all.part(mark.at);
  return html`<div class=${`tl-mark m-${mark.kind} ${part > 0.75 ? "to-left" : ""}`} style=${{ left: `${part * 100}%` }}><span><${Icon} of=${mark.kind === "deadline" ? "flag" : "again"} />${mark.text}, ${relative(mark.at, daemonNow())}</span></div>`;
}

/** @param {{run: any, line: any}} props */
function Picture({ run, line }) {
  const { element, width } = useWidth(700);
  const [piece, point] = useState(undefined);
  const [everything, setEverything] = useState(false);
  const isOpen = line.segments.some(({ to }) => to === null || to === undefined);
  // Only what goes on reads the clock.
  const all = layout(line, isOpen ? daemonNow() : 0);
  const isOfSteps = all.steps.length > 0;
  const hidden = everything ? 0 : Math.max(0, all.rows.length - (isOfSteps ? STEPS_MAX : ROWS_MAX));
  const shown = isOfSteps ? foremost(all.rows, all.rows.length - hidden) : all.rows.slice(hidden);
  const ticks = spanTicks(all.span, Math.max(2, Math.min(9, width / 90)));
  return html`<div class=${`tl ${isOfSteps ? "of-steps" : ""}`}>
    <div class="tl-axis" aria-hidden="true"><span class="tl-name"></span><div class="tl-track" ref=${element}>${ticks.map((at) => html`<span key=${at} class=${at / all.span > 0.96 ? "end" : ""} style=${{ left: `${(at / all.span) * 100}%` }}>${at === 0 ? "0" : whole(at) === "0 s" ? span(at) : whole(at)}</span>`)}</div></div>
    ${hidden > 0 && !isOfSteps && html`<button type="button" class="button ghost tiny" onClick=${() => setEverything(true)}>Show ${hidden} earlier attempts</button>`}
    <div class="tl-rows"><ul aria-label="Timeline">${shown.map((row) => html`<${Row} key=${row.key} run=${run} row=${row} all=${all} width=${width} point=${point} />`)}</ul>
      <div class="tl-over" aria-hidden="true"><span class="tl-name"></span><div class="tl-track">
        ${all.isOpen && html`<div class="tl-now" style=${{ left: `${all.part(all.last) * 100}%` }}></div>`}
        ${all.near.map((mark) => html`<${Mark} key=${mark.kind} mark=${mark} all=${all} />`)}
      </div></div>
    </div>
    ${hidden > 0 && isOfSteps && html`<button type="button" class="button ghost tiny" onClick=${() => setEverything(true)}>Show ${plural(hidden, "more step")}</button>`}
    <${Words} run=${run} piece=${piece} all=${all} />
    ${all.far.map((mark) => html`<p key=${mark.kind} class="small soft row"><${Icon} of="flag" /><span>${mark.kind === "deadline" ? "It gives up waiting" : capital(mark.text)} ${relative(mark.at, daemonNow())}, at <${Time} at=${mark.at} ofJob=${zoneOf(run.job)} />.</span></p>`)}
    <${Twin} run=${run} all=${all} />
  </div>`;
}

/** The same as a table. @param {{run: any, all: any}} props */
function Twin({ run, all }) {
  const zone = zoneOf(run.job);
  const points = all.marks.map((mark) => ({ key: `m${mark.kind}`, at: mark.at, what: mark.kind.replace("_", " "), length: "", text: mark.text }));
  const isEnd = (row) => row.key === "mended";
  const rows = [...points.filter((row) => !isEnd(row)), ...all.pieces.map((piece) => ({ key: `p${piece.step?.ref ?? ""}-${piece.from}-${piece.kind}`, at: piece.from, step: piece.step, what: KIND_WORDS[piece.kind] ?? piece.kind, length: lengthOf(piece), text: piece.text })),
    ...points.filter(isEnd)].sort((one, other) => one.at - other.at);
  return html`<details class="twin"><summary class="small">As a table</summary><div class="scroll-x"><table class="list as-cards"><thead><tr><th scope="col">From</th><th scope="col">What</th><th scope="col" class="number">Duration</th><th scope="col">In words</th></tr></thead>
    <tbody>${rows.map((row) => html`<tr key=${row.key}><td data-label="From"><${Time} at=${row.at} ofJob=${zone} /></td><td data-label="What">${row.step ? html`${row.step.title}: ` : ""}${row.what}</td><td data-label="Duration" class="number">${row.length}</td><td data-label="In words"><${Told} text=${row.text} ofJob=${zone} /></td></tr>`)}</tbody></table></div></details>`;
}

const Legend = () => html`<ul class="tl-legend" aria-hidden="true">${["queued", "running", "backoff"].map((kind) => html`<li key=${kind}><span class=${`key k-${kind}`}></span>${KIND_WORDS[kind]}</li>`)}</ul>`;

/** @param {{run: any}} props */
export function RunTimeline({ run }) {
  const query = useQuery(`/api/runs/${encodeURIComponent(run.id)}/timeline`, { topics: ["runs", "slots"], touches: (change) => change.id === run.id || Boolean(!run.ended_at && change.topic?.startsWith("pool.")) });
  return html`<${Card} title="Timeline" more=${html`<${Legend} />`}><${Loaded} query=${query} lines=${3}>${(line) => html`<${Picture} run=${run} line=${line} />`}<//><//>`;
}
