// What the card of a slot pool and its page have in common: sentences, countdowns, the backlog, what went out lately.
import { html } from "../lib/dom.js";
import { number, shortId } from "../lib/format.js";
import { to } from "../lib/route.js";
import { at, backlog, blocker, condition, drainSentence, outcomes, parts, why } from "../lib/slots.js";
import { useQuery } from "../lib/store.js";
import * as time from "../lib/time.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Note } from "../ui/parts.js";
import { State, wordOf } from "../ui/state.js";
import { daemonNow, Span, Time } from "../ui/time.js";
import { pauseWish, resumeWish } from "./slots_actions.js";

/** @param {{pool: import("../lib/slots.js").Pool}} props */
export function Condition({ pool }) {
  const { state, word } = condition(pool);
  return html`<${State} of=${state} word=${word} chip />`;
}

/** Pause, or the end of a pause. @param {{pool: import("../lib/slots.js").Pool, ghost?: boolean}} props */
export const PauseButton = ({ pool, ghost }) => pool.paused
  ? html`<${AskButton} wish=${() => resumeWish(pool)}><${Icon} of="play" />Resume<span class="unseen"> ${pool.name}</span><//>`
  : html`<${AskButton} wish=${() => pauseWish(pool)} className=${ghost ? "ghost" : ""}><${Icon} of="pause" />Pause<span class="unseen"> ${pool.name}</span><//>`;

/** A span until something; ticks. @param {{at: number, late?: string}} props */
export function Until({ at: moment, late = "now" }) {
  const left = moment - daemonNow();
  return html`<span class="nowrap">${left < 1500 ? late : time.whole(left)}</span>`;
}

/** When an entry gives up: the countdown with the instant in the tooltip. @param {{entry: import("../lib/slots.js").Entry}} props */
export function Deadline({ entry }) {
  const moment = at(entry.expiresAt);
  const left = moment - daemonNow();
  const tone = left < 60_000 ? "bad" : left < 300_000 ? "wait" : "";
  return html`<time class=${`nowrap ${tone}`} datetime=${entry.expiresAt} title=${`gives up at ${time.long(moment, "UTC")}`}>${left <= 0 ? "now" : time.whole(left)}</time>`;
}

/** The guess when an entry begins. @param {{start: number | undefined, entry: import("../lib/slots.js").Entry}} props */
export function Guess({ start, entry }) {
  if (start === undefined) return html`<span class="quiet" title="Not enough is known about how long the work before it takes.">unknown</span>`;
  const away = start - daemonNow();
  if (start > at(entry.expiresAt)) return html`<span class="bad" title="As the last runs went, its deadline passes before its turn.">expires before its turn</span>`;
  return html`<span class="nowrap" title="A guess from how long these jobs held their slots lately.">${away < 2000 ? "any moment" : `≈ ${time.whole(away)}`}</span>`;
}

/** A claim’s lease: quiet while it is renewed, loud when it is not. @param {{entry: import("../lib/slots.js").Entry, brief?: boolean}} props */
export function Lease({ entry, brief }) {
  const moment = at(entry.claim?.leaseUntil);
  if (!moment) return html`<span class="quiet">—</span>`;
  const left = moment - daemonNow();
  const unsure = left < 12_000;
  return html`<span class=${unsure ? "bad" : ""} title=${unsure ? "This lease has not been renewed lately: its daemon may be gone, or cannot write." : "Renewed every 5 seconds while the daemon is well."}><${Time} at=${moment} form="clock" bare />${unsure && brief ? html`<span class="unseen"> not renewed</span>!` : unsure ? html` <span class="tiny">${left <= 0 ? "lapsed" : `not renewed, ${time.whole(left)} left`}</span>` : ""}</span>`;
}

/** How full the queue is. @param {{pool: import("../lib/slots.js").Pool}} props */
export function Backlog({ pool }) {
  const { part, tone, text } = backlog(pool);
  return html`<div class="backlog">
    <span class="small"><strong>${number(pool.queued)}</strong> of ${number(pool.maxQueued)} waiting</span>
    <div class="meter" role="img" aria-label=${`Queue of ${pool.name}: ${pool.queued} of ${pool.maxQueued}`}>${part > 0 && html`<span class=${`part of-${tone}`} style=${{ width: `${part * 100}%` }}></span>`}</div>
    <span class=${`tiny ${tone === "calm" ? "quiet" : tone}`}>${text}</span>
  </div>`;
}

/** Whether a node is there. @param {{name: string | null}} props */
function NodeNow({ name }) {
  const status = useQuery("/api/status", { topics: ["runs", "slots", "jobs", "nodes", "config"], every: 15_000 });
  const node = status.data?.nodes?.find((each) => each.name === name);
  if (node?.state === "live") return html`<${State} of="live" word=${`${name} is live`} /> and takes it when it can.`;
  if (node && node.state !== "gone") return html`<${State} of=${node.state} word=${`${name} is drained`} />: it begins nothing more. Undrain it or cancel the entry; otherwise it waits until its deadline.`;
  return html`${node ? html`<${State} of="gone" word=${`${name} is gone`} />, last seen <${Time} at=${node.last_seen} />. ` : ""}Start that daemon again or cancel the entry; otherwise it waits until its deadline.`;
}

/** Why the head waits, a drain, a pause: in sentences. @param {{pool: import("../lib/slots.js").Pool, start?: number}} props */
export function Reasons({ pool, start }) {
  const reason = why(pool);
  const drain = drainSentence(pool);
  const before = blocker(pool);
  return html`
    ${pool.paused && html`<${Note} of="wait" icon="pause"><strong>Paused</strong>${pool.paused.until ? html` until <${Time} at=${pool.paused.until} />, <${Until} at=${at(pool.paused.until)} late="ends now" /> to go` : ", until somebody resumes it"}${pool.paused.note ? html`: ‘${pool.paused.note}’` : ""} <span class="nowrap">(by ${pool.paused.by})</span>. Nothing is admitted; what runs goes on.<//>`}
    ${drain && html`<${Note} of="wait" icon="down">${drain}<//>`}
    ${reason && reason.kind !== "pool_paused" && html`<${Note} of=${reason.kind === "none" || reason.kind === "slots" ? "busy" : "wait"} icon="wait">
      <span class="first">The head <a href=${to.run(reason.head.runId)}><strong>${reason.head.job}</strong></a> ${reason.text}</span>
      ${before && html` The run before is <a href=${to.run(before.runId)}><code>${shortId(before.runId)}</code></a>, running for <${Span} from=${before.claim?.claimedAt} />.`}
      ${start !== undefined && (reason.kind === "slots" || reason.kind === "forbid") && html` <span class="first">It begins in <strong>about <${Until} at=${start} late="a moment" /></strong>, as the last runs went.</span>`}
      ${reason.kind === "node" && html` <${NodeNow} name=${reason.head.node} />`}
      ${reason.behind && html` ${reason.behind}`}${reason.remedy && html` ${reason.remedy}`}
      ${reason.since && reason.kind !== "none" && html` <span class="tiny">So since <${Time} at=${reason.since} form="clock" />, <${Span} from=${reason.since} />.</span>`}<//>`}`;
}

/** The last entries that went out, as marks, and their number. @param {{pool: import("../lib/slots.js").Pool, marks?: number}} props */
export function Lately({ pool, marks = 24 }) {
  const { ended } = parts(pool);
  if (ended.length === 0) return html`<span class="small quiet">Nothing has gone through yet.</span>`;
  const count = outcomes(ended);
  const words = [
    `${number(count.finished)} finished`,
    ...(count.expired ? [html`<span class="bad">${number(count.expired)} expired</span>`] : []),
    ...(count.cancelled ? [`${number(count.cancelled)} cancelled`] : []),
  ];
  return html`<span class="marks" role="img" aria-label=${`The last ${Math.min(marks, ended.length)} entries that ended`}>${ended.slice(0, marks).reverse().map((entry) => html`<i key=${entry.id} class=${entry.state} title=${`${entry.job}: ${wordOf(entry.state)}${entry.reason ? `, ${entry.reason}` : ""}`}></i>`)}</span>
    <span class="small">${words.map((word, index) => html`${index > 0 ? ", " : ""}${word}`)} <span class="quiet">of the last ${ended.length}</span></span>`;
}

/** `bound to node n`, when only that one may claim it. @param {{entry: import("../lib/slots.js").Entry}} props */
export const Bound = ({ entry }) => entry.node
  ? html`<span class="tag" title=${`Only ${entry.node} can claim this entry; it waits for that node until its deadline.`}>only ${entry.node}</span>`
  : null;

/** A mark in a holder’s colour. @param {{hue?: number}} props */
export const Swatch = ({ hue }) => html`<i class=${`swatch hue-${hue}`} aria-hidden="true"></i>`;
