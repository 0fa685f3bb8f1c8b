// What the pages of runs compute without a browser: states, filters, scales, rows that hold still, timelines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { aheadOf, attemptsOf, deedsFor, lastFailed, lastLines, meaning, place } from "../../web/app/lib/run.js";
import { deedsOf, doneWords, filterKeys, firesOf, madeAt, quickOf, readRunFilter, shownState, timeOf, tookMs, triggerOf } from "../../web/app/lib/runs.js";
import { niceSpan, spanScale, spanTicks, timeTicks } from "../../web/app/lib/scale.js";
import { bridge, holdStill, reuse } from "../../web/app/lib/still.js";
import { midnight, offsetOf } from "../../web/app/lib/time.js";
import { foremost, layout, rowsOf, standings } from "../../web/app/lib/timeline.js";
import { cutInstants } from "../../web/app/lib/told.js";

const NOW = Date.parse("2026-11-30T12:00:00Z");
const noon = (day) => midnight(day, "Europe/Berlin", NOW);

test("a run that waits is not called running", () => {
  const waits = (code) => ({ code, text: "", pool: null, queue_id: null });
  assert.equal(shownState({ id: "a", job: "j", state: "pending" }), "waiting");
  assert.equal(shownState({ id: "a", job: "j", state: "running" }), "running");
  assert.equal(shownState({ id: "a", job: "j", state: "running", waiting_reason: waits("retry") }), "retrying");
  assert.equal(shownState({ id: "a", job: "j", state: "running", waiting_reason: waits("slots") }), "waiting");
  assert.equal(shownState({ id: "a", job: "j", state: "failed", waiting_reason: waits("retry") }), "failed");
});

test("a duration is told by the daemon, or goes on, or never was", () => {
  const run = { id: "a", job: "j", state: "running", started_at: "2026-11-30T11:59:50Z" };
  assert.equal(tookMs(run, NOW), 10_000);
  assert.equal(tookMs({ ...run, state: "failed", duration_ms: 7, ended_at: "2026-11-30T11:59:51Z" }, NOW), 7);
  assert.equal(tookMs({ id: "a", job: "j", state: "skipped", started_at: null }, NOW), undefined);
});

test("a rerun is named as such, whoever began it", () => {
  const trigger = { kind: "manual", principal: "local" };
  assert.equal(triggerOf({ id: "a", job: "j", state: "pending", trigger }).word, "by hand");
  assert.equal(triggerOf({ id: "a", job: "j", state: "pending", trigger, rerun_of: "run_x" }).word, "rerun");
});

test("an id tells when it was made", () => {
  const at = madeAt("run_01m8my0t2pegvvpcxk2q2ekp6g");
  assert.equal(new Date(at).toISOString(), "2026-11-30T00:35:02.358Z");
  assert.equal(madeAt("run_short"), undefined);
  assert.equal(madeAt("nonsense"), undefined);
});

test("a filter becomes what the daemon is asked", () => {
  const read = (text) => readRunFilter(text, noon);
  assert.deepEqual(read("").query, {});
  assert.equal(read("").isEmpty, true);
  assert.deepEqual(read("state:failed job:a,b since:1h stock").query, { state: ["failed"], job: ["a", "b"], since: "1h", q: ["stock"] });
  assert.deepEqual(read("state:waiting").query, { state: ["pending"] });
  assert.deepEqual(read("since:today").query, { since: "2026-11-29T23:00:00.000Z" });
  assert.deepEqual(read("since:yesterday until:2026-11-30").query, { since: "2026-11-28T23:00:00.000Z", until: "2026-11-29T23:00:00.000Z" });
});

test("retrying runs are told apart from running ones on the page", () => {
  const { query, keep } = readRunFilter("state:retrying state:failed", noon);
  assert.deepEqual(query.state, ["running", "failed"]);
  const waiting = { code: "retry", text: "", pool: null, queue_id: null };
  assert.equal(keep({ id: "a", job: "j", state: "running" }), false);
  assert.equal(keep({ id: "a", job: "j", state: "running", waiting_reason: waiting }), true);
  assert.equal(keep({ id: "a", job: "j", state: "failed" }), true);
  assert.equal(readRunFilter("state:retrying state:running", noon).keep, undefined);
});

test("what a filter cannot mean is said", () => {
  for (const [text, fault] of [["state:broken", "no run is ‘broken’"], ["trigger:me", "‘me’"], ["since:soon", "‘soon’ is no time"], ["color:red", "no filter ‘color:’"]]) {
    assert.match(readRunFilter(text, noon).faults.join(), new RegExp(fault), text);
  }
});

test("times are lengths, days and instants", () => {
  assert.equal(timeOf("90m", noon), "90m");
  assert.equal(timeOf("2026-11-30T10:00:00+01:00", noon), "2026-11-30T09:00:00.000Z");
  assert.equal(timeOf("2026-02-31", noon), undefined);
  assert.equal(timeOf("later", noon), undefined);
});

test("days begin at midnight of the zone, also when clocks change", () => {
  assert.equal(offsetOf(NOW, "UTC"), 0);
  assert.equal(offsetOf(NOW, "Asia/Kathmandu"), 20_700_000);
  assert.equal(new Date(midnight("2026-03-29", "Europe/Berlin", NOW)).toISOString(), "2026-03-28T23:00:00.000Z");
  assert.equal(new Date(midnight("2026-03-30", "Europe/Berlin", NOW)).toISOString(), "2026-03-29T22:00:00.000Z");
});

test("quick filters are lit for what is filtered", () => {
  assert.equal(quickOf([]), "all");
  assert.equal(quickOf(["pending"]), "waiting");
  assert.equal(quickOf(["succeeded"]), "");
  assert.equal(quickOf(["failed", "running"]), "");
  assert.deepEqual(filterKeys({ jobs: () => ["a"] }).find(({ key }) => key === "job").values(), ["a"]);
});

test("fires to come are shown where a filter would let them in", () => {
  const fires = [{ job: "stock sync", at: "" }, { job: "mail", at: "" }];
  const pools = new Map([["mail", "api"]]);
  const jobs = (text) => firesOf(readRunFilter(text, noon), fires, pools).map(({ job }) => job);
  assert.deepEqual(jobs(""), ["stock sync", "mail"]);
  assert.deepEqual(jobs("state:failed"), []);
  assert.deepEqual(jobs("trigger:manual"), []);
  assert.deepEqual(jobs("pool:api"), ["mail"]);
  assert.deepEqual(jobs("STOCK"), ["stock sync"]);
});

test("what a bulk change does is said in sentences", () => {
  assert.deepEqual(deedsOf({ count: 3, cancel: 0, retry: 1, rerun: 1, collapsed: 1 }).length, 3);
  assert.match(doneWords({ cancelled: 2, ending: 1, retried: 0, rerun: 0, collapsed: 0, refused_count: 1 }), /2 runs cancelled, 1 of them still ending; 1 run left alone/);
  assert.match(deedsOf({ count: 2, cancel: 0, retry: 0, rerun: 0, retry_failed: 2, collapsed: 0 })[0], /2 workflow runs are tried again where they failed/);
  assert.match(doneWords({ cancelled: 0, ending: 0, retried: 0, rerun: 0, retried_failed: 1, collapsed: 0, refused_count: 0 }), /1 workflow run tried again where it failed/);
  assert.equal(doneWords({ cancelled: 0, ending: 0, retried: 0, rerun: 0, collapsed: 0, refused_count: 0 }), "Nothing was left to do.");
});

test("a log scale holds what it was made for, with ticks in order", () => {
  const scale = spanScale([40, 60_000, undefined]);
  assert.equal(scale.from, 10);
  assert.equal(scale.part(scale.from), 0);
  assert.equal(scale.part(scale.to), 1);
  assert.ok(scale.ticks.every(({ at }, index) => index === 0 || at > scale.ticks[index - 1].at));
  assert.ok(spanScale([]).ticks.length >= 2);
});

test("ticks of time are round in the zone", () => {
  const kathmandu = 20_700_000;
  const { step, ticks } = timeTicks(NOW, NOW + 6 * 3_600_000, 7, kathmandu);
  assert.equal(step, 3_600_000);
  for (const at of ticks) assert.equal((at + kathmandu) % step, 0);
  assert.deepEqual(spanTicks(10_000, 5), [0, 2000, 4000, 6000, 8000, 10_000]);
});

test("a span grows in steps", () => {
  assert.equal(niceSpan(41_000), 50_000);
  assert.equal(niceSpan(60_000), 60_000);
  assert.equal(niceSpan(61_000), 90_000);
  for (let ms = 1; ms < 1e9; ms *= 1.7) assert.ok(niceSpan(ms) >= ms * 0.999 && niceSpan(ms) <= ms * 2.1, `${ms} ${niceSpan(ms)}`);
});

test("rows hold still while new ones wait outside", () => {
  const row = (id, state = "running") => ({ id, state });
  const known = new Map([["c", row("c")]]);
  const held = holdStill(["a", "b", "c"], [row("n"), row("a", "failed"), row("b"), row("z")], ({ id }) => id, known);
  assert.deepEqual(held.rows.map(({ id }) => id), ["a", "b", "c", "z"]);
  assert.equal(held.rows[0].state, "failed");
  assert.equal(held.fresh, 1);
});

test("no hole opens between the first page and the further ones", () => {
  const rows = (...ids) => ids.map((id) => ({ id }));
  const keyOf = ({ id }) => id;
  const before = rows(6, 5, 4, 3, 2, 1);
  const after = bridge(before, rows(8, 7, 6, 5), rows(3, 2, 1), keyOf);
  assert.deepEqual(after.map(keyOf), [8, 7, 6, 5, 4, 3, 2, 1]);
  assert.deepEqual(bridge([], rows(2, 1), [], keyOf).map(keyOf), [2, 1]);
});

test("instants in a sentence are cut out", () => {
  const parts = cutInstants("Retry 1 starts at 2026-11-30T00:36:00.000Z; then");
  assert.deepEqual(parts.map(({ at }) => at), [undefined, Date.parse("2026-11-30T00:36:00Z"), undefined]);
  assert.deepEqual(cutInstants("none"), [{ text: "none" }]);
});

const segment = (kind, attempt, from, to, outcome = null) => ({ kind, attempt, from: new Date(NOW + from).toISOString(), to: to === null ? null : new Date(NOW + to).toISOString(), outcome, node: null, text: kind });

test("each attempt has a row, and one that was lost has two", () => {
  const line = { now: "", from: new Date(NOW).toISOString(), to: new Date(NOW + 60_000).toISOString(), marks: [], segments: [
    segment("queued", 1, 0, 100), segment("running", 1, 100, 1000, "lost"), segment("queued", 1, 1000, 1100), segment("running", 1, 1100, 2000, "failed"),
    segment("backoff", 2, 2000, 50_000), segment("running", 2, 50_000, 60_000, "succeeded")] };
  const all = layout(line, 0);
  assert.deepEqual(all.rows.map(({ attempt, pieces }) => [attempt, pieces.length]), [[1, 2], [1, 2], [2, 2]]);
  assert.equal(all.span, 60_000);
  assert.equal(all.part(NOW + 30_000), 0.5);
  assert.equal(rowsOf([]).length, 0);
});

test("what goes on reaches to now, and marks ahead are near or far", () => {
  const mark = (kind, at) => ({ kind, at: new Date(NOW + at).toISOString(), text: kind });
  const line = { now: "", from: new Date(NOW).toISOString(), to: new Date(NOW + 10_000).toISOString(), segments: [segment("running", 1, 0, null)],
    marks: [mark("scheduled", -5000), mark("deadline", 3_600_000), mark("retry_due", 20_000)] };
  const all = layout(line, NOW + 10_000);
  assert.equal(all.isOpen, true);
  assert.deepEqual([all.near.map(({ kind }) => kind), all.far.map(({ kind }) => kind)], [["retry_due"], ["deadline"]]);
  assert.ok(all.span > 20_000 && all.span < 40_000);
  assert.equal(all.lag, 5000);
  assert.equal(all.pieces[0].to, NOW + 10_000);
});

test("a waiting run knows what is ahead of it", () => {
  const entry = (id, state, position) => ({ id, runId: `run_${id}`, job: id, state, position, slots: 2, priority: 0, expiresAt: "2026-11-30T12:10:00Z", queuedAt: "2026-11-30T11:59:00Z" });
  const pool = { slots: 4, used: 3, queued: 2, entries: [entry("h", "running"), entry("a", "queued", 1), entry("b", "queued", 2), entry("x", "finished")] };
  const ahead = aheadOf({ queue_id: "b", pool: "p" }, pool, "run_b");
  assert.equal(ahead.position, 2);
  assert.deepEqual(ahead.before.map(({ id }) => id), ["a"]);
  assert.deepEqual(ahead.holders.map(({ id }) => id), ["h"]);
  assert.equal(ahead.free, 1);
  assert.equal(ahead.deadline, NOW + 600_000);
  assert.equal(aheadOf({ queue_id: "b", position: 5 }, undefined, "run_b").position, 5);
  assert.equal(place(2, 3), "2nd of 3 in the queue");
  assert.equal(place(21, 3), "21st of 21 in the queue");
});

test("attempts come newest first, with the one that runs", () => {
  const run = { state: "running", steps: [{ ref: "main", attempts: [{ number: 1, fence: 1, outcome: "failed", reason: "exit code 1" }], live: { number: 2, fence: 5, node: "n", pid: 1, claimed_at: "", ending: null } }] };
  assert.deepEqual(attemptsOf(run).map(({ number, live }) => [number, live]), [[2, true], [1, false]]);
  assert.equal(lastFailed(run).number, 1);
  assert.deepEqual(deedsFor(run, "retrying"), { cancel: true, retry: true, rerun: false, cancelRetries: true });
  assert.equal(deedsFor({ state: "failed" }, "failed").rerun, true);
});

test("the last lines are those of standard error", () => {
  assert.deepEqual(lastLines("cut off\no one\ne two\no three\n", true, 5), { stream: "err", lines: ["two"] });
  assert.deepEqual(lastLines("o one\no two\n", false, 1), { stream: "out", lines: ["two"] });
  assert.match(meaning("retry superseded"), /newer run/);
  assert.equal(meaning("exit code 1"), undefined);
});

test("rows that have not changed stay the same objects", () => {
  const before = [{ id: 1, state: "running" }, { id: 2, state: "failed" }];
  const after = reuse(before, [{ id: 1, state: "failed" }, { id: 2, state: "failed" }], ({ id }) => id);
  assert.notEqual(after[0], before[0]);
  assert.equal(after[1], before[1]);
});

test("the steps of a workflow are rows, and of many the ones that matter are shown", () => {
  const at = (seconds) => new Date(NOW + seconds * 1000).toISOString();
  const step = (ref, state, from, to) => ({ ref, title: ref.toUpperCase(), state, from: at(from), to: at(to ?? 60), segments: [{ kind: "running", attempt: 1, from: at(from), to: to === undefined ? null : at(to), outcome: null, node: null, text: "" }] });
  const line = { now: at(60), from: at(0), to: at(60), marks: [], segments: [{ kind: "running", attempt: 1, from: at(0), to: null, outcome: null, node: null, text: "running" }],
    steps: [step("short", "succeeded", 0, 1), step("long", "succeeded", 0, 30), step("bad", "failed", 31, 32), step("open", "running", 40)] };
  const all = layout(line, NOW + 60_000);
  assert.deepEqual(all.rows.map(({ key }) => key), ["short", "long", "bad", "open"]);
  assert.equal(all.lived, 60_000);
  assert.equal(all.rows[3].pieces[0].open, true);
  assert.deepEqual(foremost(all.rows, 3).map(({ key }) => key), ["long", "bad", "open"]);
  assert.equal(foremost(all.rows, 9).length, 4);
  assert.equal(standings(all.steps, (state) => state), "2 succeeded, 1 failed, 1 running");
});
