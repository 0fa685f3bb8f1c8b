// The states of things: one shape, one word, one colour family for each.
import { html } from "../lib/dom.js";
import { Icon } from "./icons.js";

/** @typedef {"good" | "bad" | "wait" | "busy" | "calm"} Family */
/** @type {Record<string, [keyof typeof import("./icons.js"), Family, string] | [string, Family, string]>} */
const STATES = {
  pending: ["dots", "calm", "pending"],
  ready: ["dots", "wait", "ready"],
  queued: ["wait", "wait", "queued"],
  waiting: ["wait", "wait", "waiting"],
  running: ["turn", "busy", "running"],
  retrying: ["again", "wait", "retrying"],
  paused: ["pause", "wait", "paused"],
  succeeded: ["check", "good", "succeeded"],
  failed: ["cross", "bad", "failed"],
  timed_out: ["clock", "bad", "timed out"],
  lost: ["gone", "bad", "lost"],
  cancelled: ["stop", "calm", "cancelled"],
  skipped: ["skip", "calm", "skipped"],
  upstream_failed: ["blocked", "bad", "upstream failed"],
  continued: ["next", "good", "continued"],
  expired: ["clock", "bad", "expired"],
  finished: ["check", "good", "finished"],
  unreadable: ["late", "bad", "unreadable"],
  late: ["late", "bad", "late"],
  failing: ["cross", "bad", "failing"],
  fine: ["check", "good", "fine"],
  blocked: ["blocked", "bad", "blocked"],
  disabled: ["off", "calm", "disabled"],
  draining: ["down", "wait", "draining"],
  drained: ["off", "calm", "drained"],
  full: ["slots", "wait", "full"],
  free: ["check", "good", "free"],
  live: ["check", "good", "live"],
  gone: ["gone", "calm", "gone"],
  good: ["check", "good", "good"],
  warning: ["late", "wait", "warning"],
  bad: ["cross", "bad", "bad"],
  run: ["check", "good", "ran"],
  caught_up: ["again", "good", "caught up"],
  owed: ["wait", "wait", "owed"],
  delivered: ["check", "good", "delivered"],
  valid: ["check", "good", "valid"],
  revoked: ["cross", "calm", "revoked"],
  synced: ["check", "good", "in force"],
  drifted: ["late", "wait", "changed by hand"],
  dead: ["cross", "bad", "given up"],
};

/** @param {string} state @returns {Family} */
export const familyOf = (state) => /** @type {Family} */ (STATES[state]?.[1] ?? "calm");
/** @param {string} state */
export const iconOf = (state) => STATES[state]?.[0] ?? "dots";
/** @param {string} state */
export const wordOf = (state) => STATES[state]?.[2] ?? state.replaceAll("_", " ");

/**
 * @param {{of: string, word?: string, chip?: boolean, iconOnly?: boolean, title?: string}} props
 */
export function State({ of, word, chip, iconOnly, title }) {
  const [icon, family] = STATES[of] ?? ["dots", "calm"];
  const text = word ?? wordOf(of);
  return html`<span class=${`state of-${family} ${chip ? "chip" : ""}`} title=${title ?? (iconOnly ? text : undefined)}>
    <${Icon} of=${icon} />${iconOnly ? html`<span class="unseen">${text}</span>` : text}
  </span>`;
}
