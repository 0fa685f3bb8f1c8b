// What the home page says, worked out from what the daemon answers. Pure: tested without a browser.
import { instant, number, plural, shortId } from "./format.js";
import { to } from "./to.js";

/**
 * A piece of a sentence: words, words that lead somewhere, or a moment.
 * @typedef {{text: string, href?: string, strong?: boolean} | {at: string, ofJob?: string}} Part
 * @typedef {{of: string, parts: Part[]}} Verdict
 */

const DAY = "since:24h";
/** Names that a sentence lists before it says ‘and others’. */
const NAMED_MAX = 2;

/** @param {string} text @param {string} [href] @returns {Part} */
const say = (text, href) => ({ text, href });

/**
 * `a`, `a and b`, `a, b and 3 others`, each with its link.
 * @param {{name: string, href: string, why?: string}[]} things @param {number} total @param {string} rest where all of them are
 * @returns {Part[]}
 */
export function listed(things, total, rest) {
  const shown = things.slice(0, NAMED_MAX);
  const others = total - shown.length;
  /** @type {Part[]} */
  const parts = [];
  shown.forEach(({ name, href, why }, index) => {
    if (index > 0) parts.push(say(index === shown.length - 1 && others === 0 ? " and " : ", "));
    parts.push({ text: name, href, strong: true });
    if (why) parts.push(say(` (${why})`));
  });
  if (others > 0) parts.push(say(" and "), say(plural(others, "other"), rest));
  return parts;
}

/** @param {any} failing @returns {Part[]} */
function failingParts(failing) {
  const { total, causes, groups } = failing;
  const since = groups.map((group) => group.since).sort()[0];
  const jobs = groups.flatMap((group) => group.jobs.map((job) => ({ name: job.name, href: to.job(job.name), why: causes > 1 ? group.example : undefined })));
  // One of each cause comes first: two names of one cause would hide the other.
  const firsts = groups.map((group) => ({ name: group.jobs[0].name, href: to.job(group.jobs[0].name), why: short(group.example) }));
  const all = "#failing";
  if (total === 1) return [{ text: jobs[0].name, href: jobs[0].href, strong: true }, say(` fails: ${short(groups[0].example)}, since `), { at: since }, say(".")];
  if (causes === 1) return [say(`${number(total)} jobs`, all), say(` fail of one cause, ${short(groups[0].example)}: `), ...listed(jobs, total, all), say(", since "), { at: since }, say(".")];
  return [say(`${number(total)} jobs`, all), say(" fail: "), ...listed(firsts, total, all), say(".")];
}

const MARKED = /(run_[0-9a-z]{26})|(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/g;

/**
 * A sentence of the daemon with its runs as links and its instants as times.
 * @param {string} text @returns {Part[]}
 */
export function rich(text) {
  /** @type {Part[]} */
  const parts = [];
  let from = 0;
  for (const match of text.matchAll(MARKED)) {
    if (match.index > from) parts.push(say(text.slice(from, match.index)));
    parts.push(match[1] ? say(`run ${shortId(match[1])}`, to.run(match[1])) : { at: match[2] });
    from = match.index + match[0].length;
  }
  if (from < text.length) parts.push(say(text.slice(from)));
  return parts;
}

const EXAMPLE_CHARS = 60;
/** @param {string} text */
const short = (text) => (text.length > EXAMPLE_CHARS ? `${text.slice(0, EXAMPLE_CHARS - 1)}…` : text);

/**
 * All that is wrong, the worst first.
 * @param {any} status @param {any} overview
 * @returns {Verdict[]}
 */
export function troubles(status, overview) {
  /** @type {Verdict[]} */
  const found = [];
  const add = (of, parts) => found.push({ of, parts });
  const configuration = status.configuration ?? {};
  if (status.draining) {
    add("draining", [say("This daemon is draining", to.settings("health")), say(`: ${number(status.counts.running)} still running, nothing new starts.`)]);
  } else if (!status.ready) add("bad", [say(status.verdict, to.settings("health"))]);
  const unreadable = status.pools.filter((pool) => !pool.readable);
  if (unreadable.length > 0) {
    const names = unreadable.map(({ name }) => ({ name, href: to.slots(name) }));
    add("bad", [say(unreadable.length === 1 ? "Slot pool " : "Slot pools "), ...listed(names, names.length, to.slots()), say(" cannot be read.")]);
  }
  if (overview.failing.total > 0) add("bad", failingParts(overview.failing));
  const poisoned = status.poisoned_runs;
  if (poisoned.length > 0) {
    const names = poisoned.map((run) => ({ name: run.job, href: to.run(run.run_id) }));
    add("bad", [say(`${plural(poisoned.length, "run")} ${poisoned.length === 1 ? "was" : "were"} given up because daemons died with ${poisoned.length === 1 ? "it" : "them"}: `), ...listed(names, names.length, "#failing"), say(".")]);
  }
  const late = status.late_jobs;
  if (late.length === 1) add("late", [say("Job "), { text: late[0].job, href: to.job(late[0].job), strong: true }, say(" is late: "), ...rich(late[0].reason), say(".")]);
  else if (late.length > 1) {
    const names = late.map(({ job }) => ({ name: job, href: to.job(job) }));
    add("late", [say(plural(late.length, "job"), "#late"), say(" are late: "), ...listed(names, names.length, "#late"), say(".")]);
  }
  if (configuration.rejected) {
    const faults = configuration.rejected.errors.length;
    add("warning", [say("The configuration on disk is refused", to.settings("configuration")), say(` (${plural(faults, "fault")}); the one before it stays in force.`)]);
  }
  const bundles = status.failing_bundles ?? [];
  if (bundles.length > 0) {
    add("warning", [say(bundles.length === 1 ? "The bundle " : "The bundles "), ...listed(bundles.map((name) => ({ name, href: to.routing() })), bundles.length, to.routing()), say(" cannot be applied; what was declared before stays.")]);
  }
  const drift = [...(status.drift?.pools ?? []).map((each) => ({ ...each, href: to.slots(each.name) })), ...(status.drift?.jobs ?? []).map((each) => ({ ...each, href: to.job(each.name) }))];
  if (drift.length > 0) {
    add("warning", [say(`Node ${drift[0].node} has loaded another configuration of `), ...listed(drift, drift.length, to.settings("configuration")), say(": this daemon leaves that to it. Reload one of the two.")]);
  }
  for (const pool of status.pools.filter((each) => each.paused && each.queued > 0)) {
    add("paused", [say("Slot pool "), { text: pool.name, href: to.slots(pool.name), strong: true }, say(` is paused: ${plural(pool.queued, "run")} ${pool.queued === 1 ? "waits" : "wait"} for it.`)]);
  }
  if (status.dead_letters > 0) add("warning", [say(plural(status.dead_letters, "dead letter"), to.settings("health")), say(` ${status.dead_letters === 1 ? "waits" : "wait"}: what was given up and somebody should look at.`)]);
  const faulty = (configuration.warnings ?? []).filter((each) => each.severity === "warning");
  if (faulty.length > 0) add("warning", [say(plural(faulty.length, "warning"), to.settings("configuration")), say(" about the configuration.")]);
  return found;
}

/**
 * The sentence at the top, and what else is wrong.
 * @param {any} status @param {any} overview
 * @returns {Verdict & {also: Verdict[], quiet: boolean}}
 */
export function verdict(status, overview) {
  const [worst, ...also] = troubles(status, overview);
  if (worst) return { ...worst, also, quiet: false };
  if (overview.first_steps) return { of: "pending", parts: [say("Ready. Nothing has run here yet.")], also: [], quiet: true };
  const { ended, failed } = day(overview.hours);
  const parts = [say("All is well: ")];
  if (ended === 0) parts.push(say("nothing fails, and no run ended in 24 hours."));
  else if (failed === 0) parts.push(say(plural(ended, "run"), to.runs(DAY)), say(" in 24 hours, none failed."));
  else parts.push(say("no job fails now; "), say(`${number(failed)} of ${plural(ended, "run")}`, to.runs(`state:failed ${DAY}`)), say(" in 24 hours did."));
  return { of: "good", parts, also: [], quiet: true };
}

/** The parts of a bar, from its foot. What failed stands on the ground, where heights can be compared. */
export const LAYERS = [
  { key: "failed", of: "failed" },
  { key: "timed_out", of: "timed_out" },
  { key: "cancelled", of: "cancelled" },
  { key: "skipped", of: "skipped" },
  { key: "succeeded", of: "succeeded" },
];

/** @param {any} hour */
export const endedIn = (hour) => LAYERS.reduce((sum, { key }) => sum + hour[key], 0);
/** @param {any} hour */
export const failedIn = (hour) => hour.failed + hour.timed_out;

/** Sums of the last day. @param {any[]} hours */
export function day(hours) {
  return { ended: hours.reduce((sum, hour) => sum + endedIn(hour), 0), failed: hours.reduce((sum, hour) => sum + failedIn(hour), 0) };
}

/** `12 succeeded, 1 failed`, or that none ended. @param {any} hour */
export function hourWords(hour) {
  const words = [...LAYERS].reverse().filter(({ key }) => hour[key] > 0).map(({ key }) => `${number(hour[key])} ${key.replace("_", " ")}`);
  return words.length > 0 ? words.join(", ") : "no run ended";
}

/** The filter of the runs of an hour. @param {any} hour @param {string} [state] */
export function hourFilter(hour, state) {
  const from = instant(hour.from) ?? 0;
  const plain = (at) => new Date(at).toISOString().replace(".000", "");
  return `${state ? `state:${state} ` : ""}since:${plain(from)} until:${plain(from + 3_600_000)}`;
}

/** A round number at or above `most`, where an axis can end. @param {number} most */
export function niceTop(most) {
  if (most <= 4) return 4;
  const size = 10 ** Math.floor(Math.log10(most));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((step) => Math.round(step * size)).find((top) => top >= most) ?? most;
}

/** A run that takes so many times what is typical, and so much longer, is called out. */
const OVER_FACTOR = 1.5;
const OVER_MS = 5000;

/**
 * How far a run is, against what is typical: parts of a track whose end is the longer of both.
 * @param {number} elapsed @param {number | null} typical
 * @returns {{within: number, over: number, factor: number, tooLong: boolean} | undefined}
 */
export function progress(elapsed, typical) {
  if (!typical) return undefined;
  const track = Math.max(elapsed, typical);
  return { within: Math.min(elapsed, typical) / track, over: Math.max(elapsed - typical, 0) / track, factor: elapsed / typical, tooLong: elapsed >= typical * OVER_FACTOR && elapsed - typical >= OVER_MS };
}


/**
 * What a group waits for, in words; the reason of the daemon stands beside it where it says more.
 * @param {any} group
 * @returns {{of: string, parts: Part[], reason: Part[]}}
 */
export function waitWords(group) {
  const { code, count, pool, text } = group;
  const runs = plural(count, "run");
  const verb = count === 1 ? "waits" : "wait";
  const list = say(runs, to.runs(code === "backoff" ? "state:running" : `${pool ? `pool:${pool} ` : ""}state:pending`));
  const thePool = pool ? { text: pool, href: to.slots(pool), strong: true } : say("");
  const reason = rich(text.replace(/\b1 slot\(s\)/g, "1 slot").replace(/slot\(s\)/g, "slots"));
  if (code === "backoff") return { of: "retrying", parts: [list, say(` ${verb} to be tried again`)], reason: [] };
  if (code === "paused") return { of: "paused", parts: [list, say(` ${verb}: slot pool `), thePool, say(" is paused")], reason: /^pool is paused\.?$/i.test(text) ? [] : reason };
  if (pool) return { of: code === "ready" ? "ready" : "queued", parts: [list, say(` ${verb} for `), thePool], reason };
  if (code === "node") return { of: "waiting", parts: [list, say(` ${verb} for a node`)], reason };
  return { of: "ready", parts: [list, say(` ${verb} to begin`)], reason };
}

const numeric = new Intl.Collator("en", { numeric: true });

/**
 * The slot pools that a person wants to see: what is wrong and what is held first, the others by name, so that they keep
 * their places. Of many, those with a queue or with work are shown.
 * @param {any[]} pools @param {number} max
 */
export function bySorrow(pools, max) {
  const rank = (pool) => (!pool.readable ? 0 : pool.paused || pool.draining ? 1 : 2);
  const weight = (pool) => (pool.queued > 0 ? 2 : pool.used > 0 ? 1 : 0);
  const byName = (one, other) => numeric.compare(one.name, other.name);
  const wanted = [...pools].sort((one, other) => rank(one) - rank(other) || weight(other) - weight(one) || byName(one, other)).slice(0, max);
  return wanted.sort((one, other) => rank(one) - rank(other) || byName(one, other));
}
