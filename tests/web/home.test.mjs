// What the home page says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bySorrow, day, hourFilter, hourWords, listed, niceTop, progress, rich, verdict, waitWords } from "../../web/app/lib/home.js";

const RUN = "run_01m8mkpq69exbrk7xf3n14zqhg";
const status = (changes = {}) => ({
  ready: true, draining: false, verdict: "", counts: { running: 1 }, pools: [], late_jobs: [], poisoned_runs: [], dead_letters: 0,
  configuration: { warnings: [], rejected: null }, ...changes,
});
const hour = (changes = {}) => ({ from: "2025-11-29T18:00:00.000Z", succeeded: 0, failed: 0, timed_out: 0, cancelled: 0, skipped: 0, ...changes });
const overview = (changes = {}) => ({ first_steps: false, failing: { total: 0, causes: 0, groups: [] }, hours: [hour({ succeeded: 5 })], ...changes });
const group = (example, names) => ({ example, cause: example, since: "2025-11-29T17:00:00.000Z", count: names.length, jobs: names.map((name) => ({ name, run: RUN })) });
const words = (parts) => parts.map((part) => part.text ?? `[${part.at}]`).join("");

test("all is well only when nothing is wrong", () => {
  const well = verdict(status(), overview());
  assert.equal(well.of, "good");
  assert.equal(words(well.parts), "All is well: 5 runs in 24 hours, none failed.");
  assert.ok(well.quiet);
  const healed = verdict(status(), overview({ hours: [hour({ succeeded: 5, failed: 1, timed_out: 1 })] }));
  assert.equal(words(healed.parts), "All is well: no job fails now; 2 of 7 runs in 24 hours did.");
  assert.equal(healed.parts[2].href, "/ui/runs?filter=state%3Afailed%20since%3A24h");
  assert.equal(words(verdict(status(), overview({ hours: [hour()] })).parts), "All is well: nothing fails, and no run ended in 24 hours.");
  assert.equal(verdict(status(), overview({ first_steps: true })).of, "pending");
});

test("the worst comes first and nothing is left out", () => {
  const bad = status({
    pools: [{ name: "a", readable: false }, { name: "b", readable: true, paused: true, queued: 2 }, { name: "c", readable: true, paused: true, queued: 0 }],
    late_jobs: [{ job: "x", reason: `${RUN} has been running since 2025-11-29T17:00:00.000Z, the limit is 30s` }],
    dead_letters: 1,
    configuration: { warnings: [{ severity: "warning" }, { severity: "note" }], rejected: { errors: [{}, {}] } },
  });
  const { of, parts, also, quiet } = verdict(bad, overview({ failing: { total: 1, causes: 1, groups: [group("exit code 1", ["sync"])] } }));
  assert.equal(of, "bad");
  assert.equal(quiet, false);
  assert.equal(words(parts), "Slot pool a cannot be read.");
  assert.deepEqual(also.map((each) => words(each.parts)), [
    "sync fails: exit code 1, since [2025-11-29T17:00:00.000Z].",
    "Job x is late: run …n14zqhg has been running since [2025-11-29T17:00:00.000Z], the limit is 30s.".replace("n14zqhg", RUN.slice(-8)),
    "The configuration on disk is refused (2 faults); the one before it stays in force.",
    "Slot pool b is paused: 2 runs wait for it.",
    "1 dead letter waits: what was given up and somebody should look at.",
    "1 warning about the configuration.",
  ]);
});

test("failures of several causes name one job of each", () => {
  const two = { total: 5, causes: 2, groups: [group("exit code 1", ["a", "b", "c"]), group("timed out", ["d", "e"])] };
  assert.equal(words(verdict(status(), overview({ failing: two })).parts), "5 jobs fail: a (exit code 1), d (timed out) and 3 others.");
  const one = { total: 2, causes: 1, groups: [group("exit code 1", ["a", "b"])] };
  assert.equal(words(verdict(status(), overview({ failing: one })).parts), "2 jobs fail of one cause, exit code 1: a and b, since [2025-11-29T17:00:00.000Z].");
});

test("a daemon that drains says so, and one that is not ready says what the daemon says", () => {
  assert.equal(words(verdict(status({ draining: true, ready: false }), overview()).parts), "This daemon is draining: 1 still running, nothing new starts.");
  const unready = verdict(status({ ready: false, verdict: "Not ready: disk." }), overview());
  assert.equal(words(unready.parts), "Not ready: disk.");
  assert.equal(unready.parts[0].href, "/ui/settings?tab=health");
});

test("lists of names", () => {
  const things = ["a", "b", "c"].map((name) => ({ name, href: name }));
  assert.equal(words(listed(things.slice(0, 1), 1, "")), "a");
  assert.equal(words(listed(things.slice(0, 2), 2, "")), "a and b");
  assert.equal(words(listed(things, 3, "")), "a, b and 1 other");
});

test("runs and instants in a sentence", () => {
  assert.deepEqual(rich("nothing here"), [{ text: "nothing here", href: undefined }]);
  const parts = rich(`until 2025-11-29T17:00:00Z: ${RUN}`);
  assert.deepEqual(parts[1], { at: "2025-11-29T17:00:00Z" });
  assert.equal(parts[3].href, `/ui/runs/${RUN}`);
});

test("hours", () => {
  const one = hour({ succeeded: 1200, timed_out: 2 });
  assert.equal(hourWords(one), "1,200 succeeded, 2 timed out");
  assert.equal(hourWords(hour()), "no run ended");
  assert.deepEqual(day([one, hour({ failed: 1 })]), { ended: 1203, failed: 3 });
  assert.equal(hourFilter(one), "since:2025-11-29T18:00:00Z until:2025-11-29T19:00:00Z");
  assert.deepEqual([0, 4, 5, 61, 80, 81, 950, 11_453].map(niceTop), [4, 4, 5, 80, 80, 100, 1000, 12_000]);
});

test("progress against what is typical", () => {
  assert.equal(progress(1000, null), undefined);
  assert.deepEqual(progress(500, 1000), { within: 0.5, over: 0, factor: 0.5, tooLong: false });
  assert.deepEqual(progress(4000, 1000), { within: 0.25, over: 0.75, factor: 4, tooLong: false });
  assert.equal(progress(40_000, 10_000).tooLong, true);
});

test("what waits, in words", () => {
  const slots = waitWords({ code: "slots", count: 1, pool: "p", text: "Needs 1 slot(s); 0 available" });
  assert.equal(words(slots.parts), "1 run waits for p");
  assert.equal(words(slots.reason), "Needs 1 slot; 0 available");
  assert.equal(words(waitWords({ code: "slots", count: 2, pool: "p", text: "Needs 2 slot(s); 1 available" }).reason), "Needs 2 slots; 1 available");
  assert.equal(words(waitWords({ code: "backoff", count: 2, pool: null, text: "x" }).parts), "2 runs wait to be tried again");
  assert.equal(words(waitWords({ code: "paused", count: 2, pool: "p", text: "x" }).parts), "2 runs wait: slot pool p is paused");
});

test("slot pools that cannot be read or are held come first", () => {
  const pools = [{ name: "z", readable: true }, { name: "b", readable: true, paused: true }, { name: "a", readable: true }, { name: "u", readable: false }];
  assert.deepEqual(bySorrow(pools, 9).map(({ name }) => name), ["u", "b", "a", "z"]);
  const many = [..."123456789"].map((name) => ({ name: `p${name}`, readable: true })).concat({ name: "p10", readable: true, queued: 1 }, { name: "p11", readable: true, used: 1 });
  assert.deepEqual(bySorrow(many, 3).map(({ name }) => name), ["p1", "p10", "p11"]);
});

test("a bundle that cannot be applied is no peace", () => {
  const failed = verdict(status({ failing_bundles: ["desk.yaml"] }), overview({ first_steps: true }));
  assert.equal(failed.of, "warning");
  assert.match(words(failed.parts), /^The bundle desk\.yaml cannot be applied; what was declared before stays\.$/);
  assert.equal(failed.parts.find((part) => part.href)?.href, "/ui/routing");
});
