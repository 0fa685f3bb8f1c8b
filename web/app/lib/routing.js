// What the answers of routing mean: how a recipient pool stands, why a recipient did not get the work. Pure.
import { number, plural } from "./format.js";

/**
 * @typedef {{id: string, name: string, description?: string, status: string, strategy?: string, config: Record<string, any>, recipient_ids: string[],
 *   rule_ids: string[], record_version: number}} RecipientPool
 * @typedef {{id: string, name: string, type?: string, pool_id: string | null, status: string, state: string, weight?: number, tags?: string[], external_id?: string,
 *   capacity: {current: number, max_concurrent: number, daily_limit: number, daily_count: number, daily_reset_at?: string}, record_version: number}} Recipient
 * @typedef {{code: string, [name: string]: any}} Reason
 * @typedef {{recipient: string, recipient_id?: string, verdict: string, stage: number, reason?: Reason, numbers?: Record<string, any>, also?: Reason[]}} Candidate
 */

/** `RECIPIENT_STATE_BUSY` as `busy`. @param {string | undefined} word */
export const plainWord = (word) => (word ?? "").replace(/^(RECIPIENT_STATE|STATUS)_/, "").toLowerCase().replaceAll("_", " ");

/** The state of a recipient as a known shape and a word. @param {Recipient} recipient */
export function standing(recipient) {
  const status = plainWord(recipient.status);
  if (status && status !== "active") return { state: status === "paused" ? "paused" : "disabled", word: status };
  const word = plainWord(recipient.state);
  return { state: { available: "free", busy: "running", offline: "gone", paused: "paused" }[word] ?? "bad", word };
}

/** A recipient pool by the worst thing that is true of it. @param {RecipientPool} pool */
export function condition(pool) {
  if (pool.config?.kill_switch) return { state: "blocked", word: "kill-switch engaged" };
  const status = plainWord(pool.status);
  if (status === "paused") return { state: "paused", word: "paused" };
  if (status === "disabled") return { state: "disabled", word: "disabled" };
  return { state: "good", word: "routes" };
}

/** What picks. @param {RecipientPool} pool */
export function strategyOf(pool) {
  const config = pool.config ?? {};
  if (config.routing_mode === "claim") return "claimed from a queue";
  const pipeline = config.default_strategy_pipeline ? `pipeline:${config.default_strategy_pipeline}` : undefined;
  return pool.strategy || config.default_recipe || pipeline || config.default_strategy || "smooth_weighted_round_robin";
}

/** Whether its recipients take work themselves. @param {RecipientPool} pool */
export const offers = (pool) => pool.config?.routing_mode === "claim" || strategyOf(pool).startsWith("shark_tank");

/** What becomes of work that nobody takes, in words. @param {RecipientPool} pool @param {(id: string) => string} nameOf */
export function fallbackOf(pool, nameOf) {
  const config = pool.config ?? {};
  const { fallback = "queue" } = config;
  if (fallback === "overflow") return `goes to ${nameOf(config.overflow_pool_id)}`;
  if (fallback === "catchall") return `waits ${config.catchall_delay ?? "0s"}, then goes to ${nameOf(config.catchall_pool_id)}`;
  return fallback === "drop" ? "is dropped" : "waits in the queue";
}

/** How full a recipient is. @param {Recipient["capacity"] | undefined} capacity */
export function fullness(capacity) {
  const { current = 0, max_concurrent: max = 10, daily_limit: limit = 0, daily_count: count = 0 } = capacity ?? {};
  const part = max > 0 ? current / max : 1;
  const day = limit > 0 ? `${number(count)} of ${number(limit)} today` : "";
  const full = current >= max || (limit > 0 && count >= limit);
  return { part: Math.min(part, 1), over: current > max, full, text: `${number(current)} of ${number(max)}`, day };
}

const list = (value) => (Array.isArray(value) ? value.join(", ") || "nothing" : String(value ?? "nothing"));

/** A reason in words. Codes that are not known are shown as they are. @type {Record<string, (reason: Reason) => string>} */
const WORDS = {
  "status.paused": () => "paused by its administration",
  "status.disabled": () => "disabled by its administration",
  "state.offline": () => "is offline",
  "state.paused": () => "was taken out of rotation",
  "state.busy": () => "is busy",
  "tried.before": () => "had this work before",
  excluded: () => "was excluded by the request",
  cooldown: (reason) => `rests until ${reason.until}`,
  "capacity.concurrent": (reason) => `is full: ${reason.current} of ${reason.max}`,
  "capacity.daily": (reason) => `has had ${reason.count} of ${reason.limit} today`,
  "capacity.over_budget": (reason) => `is ${reason.over} over capacity, and the budget is ${reason.budget}`,
  "schedule.closed": (reason) => `is closed: ${reason.local} in ${reason.zone}${reason.opens_at ? `, opens ${reason.opens_at}` : ""}`,
  "trait.missing": (reason) => `has no ${reason.trait}; wanted is ${list(reason.want)}`,
  "trait.mismatch": (reason) => `${reason.trait} is ${list(reason.have)}; wanted is ${list(reason.want)}`,
  "rule.false": (reason) => `rule ${reason.rule} is false for it`,
  "rule.error": (reason) => `rule ${reason.rule} failed: ${reason.error}`,
  "dedup.recent": () => "this work was seen a moment ago",
  "flow.limited": (reason) => `the rate of ${reason.rate} in ${reason.per} is used up`,
  "pacing.ahead": (reason) => `is ahead of its pace: ${reason.delivered}, target ${reason.target}`,
  "distance.outside": (reason) => `is ${reason.meters} m away; at most ${reason.max_meters}`,
  "distance.unknown": () => "has no location",
  "bid.none": () => "has no bid",
  "bid.expired": () => "its bid has expired",
  "bid.below_reserve": (reason) => `bids ${reason.bid}; the reserve is ${reason.reserve}`,
  "claim.budget": (reason) => `has claimed ${reason.used} of ${reason.limit}`,
  "sla.cannot_meet": () => "cannot meet the deadline",
  "weight.zero": () => "has a weight of 0",
  "lost.score": (reason) => `scores ${reason.score}${reason.winner === undefined ? "" : `, the winner ${reason.winner}`}`,
  "lost.turn": () => "is not its turn",
  "lost.sample": () => "was not drawn",
  "lost.tie": (reason) => `was equal, and lost by ${reason.on}`,
  "lost.claim": () => "another one claimed it first",
  "score.below_min": (reason) => `scores ${reason.score}; at least ${reason.min}`,
};

/** @param {Reason | undefined} reason */
export const inWords = (reason) => (reason ? (WORDS[reason.code]?.(reason) ?? reason.code) : "");

/** What was missing, behind a name. @param {string} text */
export const wouldWin = (text) => (/^(one|\d+) more pick/.test(text) ? `would win after ${text}` : `would have won if ${text}`);

/** Winners first, then who was eligible, then the others; each group by name. @param {Candidate[]} candidates */
export function inOrder(candidates) {
  const rank = { won: 0, lost: 1, rejected: 2 };
  return [...candidates].sort((one, other) => (rank[one.verdict] ?? 3) - (rank[other.verdict] ?? 3) || one.recipient.localeCompare(other.recipient));
}

/** The histogram in words, most first. @param {Record<string, number> | undefined} histogram */
export const reasonsOf = (histogram) =>
  Object.entries(histogram ?? {}).sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]))
    .map(([code, count]) => `${number(count)} × ${code}`);

/** What so many recipients are, by the code that rejected them. @type {Record<string, string>} */
const MANY = {
  "status.paused": "paused by administration", "status.disabled": "disabled", "state.offline": "offline", "state.paused": "out of rotation", "state.busy": "busy",
  "tried.before": "had it before", excluded: "excluded by the request", cooldown: "resting", "capacity.concurrent": "full", "capacity.daily": "done for today",
  "capacity.over_budget": "over capacity", "schedule.closed": "closed", "trait.missing": "without a trait that it wants", "trait.mismatch": "with another trait than it wants",
  "rule.false": "ruled out", "rule.error": "with a rule that failed", "flow.limited": "at the rate of the pool", "weight.zero": "with a weight of 0",
  "distance.outside": "too far away", "distance.unknown": "without a location", "claim.budget": "out of claims", "sla.cannot_meet": "too late for the deadline",
};

/**
 * Why work waits, and what would change that.
 * @param {any} item @param {RecipientPool} [pool]
 */
export function whyWaits(item, pool) {
  if (pool?.config?.kill_switch) return "the pool is stopped: let it route again";
  const status = plainWord(pool?.status) || "active";
  if (status !== "active") return `the pool is ${status}`;
  if (item.kind === "again") return "it came back, and is being routed anew";
  const counted = Object.entries(item.histogram ?? {}).sort((one, other) => other[1] - one[1] || one[0].localeCompare(other[0]));
  if (counted.length === 0) return pool && pool.recipient_ids.length === 0 ? "nobody belongs to this pool: add a recipient" : "nobody was eligible";
  return counted.map(([code, count]) => `${number(count)} ${MANY[code] ?? code}`).join(", ");
}

/** A family for an outcome. @param {string} outcome */
export function outcomeState(outcome) {
  if (["assigned", "broadcast", "duplicate"].includes(outcome)) return "good";
  if (["assigned_over_capacity"].includes(outcome)) return "warning";
  if (["queued", "queued_for_claim", "offered", "overflowed", "deferred_catchall", "escalated"].includes(outcome)) return "waiting";
  return "bad";
}

/** @param {RecipientPool} pool */
export const membersOf = (pool) => plural(pool.recipient_ids?.length ?? 0, "recipient");

/** What a rule does, in words. @param {any} rule @param {(id: string) => string} nameOf */
export function deedOf(rule, nameOf) {
  const { type, pool_id: target, boost } = rule.action ?? {};
  if (type === "select_pool") return `goes to ${nameOf(target)}`;
  if (type === "redirect") return `goes on to ${nameOf(target)}`;
  if (type === "filter") return "keeps the recipient";
  if (type === "boost") return `weighs ${boost >= 0 ? "+" : ""}${boost}`;
  return "drops the work";
}
