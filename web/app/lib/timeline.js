// The life of a run as rows of pieces on one axis: waits, attempts, back-off. Pure: the daemon tells the segments.
import { niceSpan } from "./scale.js";

/**
 * @typedef {{kind: string, attempt: number, from: string, to: string | null, outcome: string | null, node: string | null,
 *   text: string}} Segment
 * @typedef {{at: string, kind: string, text: string}} Mark
 * @typedef {{ref: string, title: string, state: string, from: string, to: string, segments: Segment[]}} StepLine
 * @typedef {{now: string, from: string, to: string, segments: Segment[], marks: Mark[], steps?: StepLine[], more_steps?: number}} Timeline
 * @typedef {{kind: string, attempt: number, from: number, to: number, open: boolean, outcome: string | null,
 *   node: string | null, text: string, step?: StepLine}} Piece
 */

/** How far ahead a mark may lie, in spans of what has been so far, to be drawn on the axis. */
const AHEAD_MAX = 3;
const AHEAD_MS = 30_000;
const SHORTEST_MS = 200;

/** @param {Segment} segment @param {number} now @returns {Piece} */
function pieceOf(segment, now) {
  const from = Date.parse(segment.from);
  const open = segment.to === null || segment.to === undefined;
  const to = open ? Math.max(now, from) : Math.max(from, Date.parse(/** @type {string} */ (segment.to)));
  return { kind: segment.kind, attempt: segment.attempt, from, to, open, outcome: segment.outcome ?? null, node: segment.node ?? null, text: segment.text };
}

/**
 * One row for each attempt: what it waited for, and its execution. An attempt that was lost and ran again has two.
 * @param {Piece[]} pieces
 * @returns {{key: string, attempt: number, omitted: boolean, pieces: Piece[]}[]}
 */
export function rowsOf(pieces) {
  const rows = [];
  let row;
  for (const piece of pieces) {
    const ran = row?.pieces.some(({ kind }) => kind === "running");
    if (!row || row.attempt !== piece.attempt || ran || row.omitted || piece.kind === "omitted") {
      row = { key: `${piece.attempt}-${rows.length}`, attempt: piece.attempt, omitted: piece.kind === "omitted", pieces: [] };
      rows.push(row);
    }
    row.pieces.push(piece);
  }
  return rows;
}

/** One row for each step of a workflow's run. @param {StepLine[]} steps @param {number} now */
export const rowsOfSteps = (steps, now) => steps.map((step) => ({ key: step.ref, attempt: 0, omitted: false, step, pieces: step.segments.map((segment) => ({ ...pieceOf(segment, now), step })) }));

/**
 * The rows that are shown before all are asked for: what goes on, what failed, what took longest, in the order of time.
 * @param {any[]} rows of steps @param {number} most
 */
export function foremost(rows, most) {
  if (rows.length <= most) return rows;
  const rank = (row) => (row.pieces.some(({ open }) => open) ? 0 : row.step.state === "failed" ? 1 : 2);
  const length = (row) => (row.pieces.length > 0 ? row.pieces[row.pieces.length - 1].to - row.pieces[0].from : 0);
  const kept = new Set([...rows].sort((one, other) => rank(one) - rank(other) || length(other) - length(one)).slice(0, most));
  return rows.filter((row) => kept.has(row));
}

/** How many steps stand how, in words: ‘3 succeeded, 1 failed’. @param {StepLine[]} steps @param {(state: string) => string} wordOf */
export function standings(steps, wordOf) {
  const counts = new Map();
  for (const { state } of steps) counts.set(wordOf(state), (counts.get(wordOf(state)) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]).map(([word, count]) => `${count} ${word}`).join(", ");
}

/** How much of its life a run did what. @param {Piece[]} pieces */
export function sums(pieces) {
  const totals = new Map();
  for (const { kind, from, to } of pieces) totals.set(kind, (totals.get(kind) ?? 0) + to - from);
  return [...totals].map(([kind, ms]) => ({ kind, ms })).sort((one, other) => other.ms - one.ms);
}

/**
 * What there is to draw.
 * @param {Timeline} line @param {number} now the daemon's time
 */
export function layout(line, now) {
  const from = Date.parse(line.from);
  const isOpen = line.segments.some(({ to }) => to === null || to === undefined);
  const steps = line.steps ?? [];
  const stepRows = rowsOfSteps(steps, now);
  const own = line.segments.map((segment) => pieceOf(segment, now));
  const pieces = steps.length > 0 ? stepRows.flatMap((row) => row.pieces) : own;
  const last = isOpen ? Math.max(now, from) : Math.max(Date.parse(line.to), ...own.map(({ to }) => to));
  const lived = Math.max(last - from, SHORTEST_MS);
  const marks = line.marks.map((mark) => ({ ...mark, at: Date.parse(mark.at) }));
  const ahead = isOpen ? marks.filter(({ kind }) => kind === "deadline" || kind === "retry_due") : [];
  const reach = lived * AHEAD_MAX + AHEAD_MS;
  const near = ahead.filter(({ at }) => at - from <= reach && at >= from);
  const far = ahead.filter(({ at }) => at - from > reach);
  const wanted = Math.max(lived, ...near.map(({ at }) => (at - from) * 1.04));
  const span = isOpen ? niceSpan(Math.max(wanted, lived * 1.08)) : lived;
  const scheduled = marks.find(({ kind }) => kind === "scheduled");
  return {
    from,
    last,
    span,
    isOpen,
    lived,
    pieces,
    rows: steps.length > 0 ? stepRows : rowsOf(pieces),
    steps,
    moreSteps: line.more_steps ?? 0,
    near,
    far,
    marks,
    lag: scheduled ? from - scheduled.at : 0,
    part: (at) => Math.min(1, Math.max(0, (at - from) / span)),
  };
}

/** Words for a piece, by its kind. */
export const KIND_WORDS = { queued: "waiting", running: "running", backoff: "back-off", omitted: "not shown" };
