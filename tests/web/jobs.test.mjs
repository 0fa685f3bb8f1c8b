// The states of a job, what a start will do, how its runs went.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isRetrying, median, overlap, runState, startWill, statesOf, successOf } from "../../web/app/lib/jobs.js";

const job = (changes = {}) => ({ name: "a", enabled: true, paused: null, running: 0, late: [], recent: [], last_run: null, concurrency_policy: "Allow", ...changes });

test("a job without anything to say is fine", () => {
  assert.deepEqual(statesOf(job()), ["fine"]);
  assert.deepEqual(statesOf(job({ recent: [{ state: "succeeded" }, { state: "failed" }] })), ["fine"]);
});

test("what stops it comes before what is wrong, and that before what it does", () => {
  const all = job({ enabled: false, paused: {}, running: 1, late: [{}], recent: [{ state: "failed" }], pool: { queued: 2 } });
  assert.deepEqual(statesOf(all), ["disabled", "paused", "failing", "late", "running", "queued"]);
});

test("a run of which nothing runs waits for another attempt, and that is failing", () => {
  const retrying = job({ last_run: { state: "running" } });
  assert.ok(isRetrying(retrying));
  assert.deepEqual(statesOf(retrying), ["failing", "retrying"]);
  assert.equal(runState(retrying), "retrying");
  assert.equal(runState(job({ last_run: { state: "pending" }, pool: { queued: 1 } })), "queued");
  assert.equal(runState(job({ last_run: { state: "running" }, running: 1 })), "running");
});

test("a start says whether it queues, and what the rule for overlaps does now", () => {
  const told = (changes) => startWill(job(changes)).join(" ");
  assert.match(told({}), /takes no slots/);
  assert.match(told({ pool: { name: "p", slots: 2, priority: 5, queued: 1 } }), /slot pool p with priority 5 and waits for 2 slots, behind 1 entry/);
  assert.match(told({ running: 1, concurrency_policy: "Forbid" }), /will be refused/);
  assert.match(told({ running: 1, concurrency_policy: "Forbid", pool: { name: "p", slots: 1, priority: 0, queued: 0 } }), /waits until that has ended \(Forbid\)/);
  assert.match(told({ running: 1, concurrency_policy: "Replace" }), /that is ended for this one/);
  assert.match(told({ running: 2 }), /2 instances run now; they run side by side/);
  assert.match(told({ paused: {} }), /does not mind/);
});

test("each rule for overlaps has its sentence", () => {
  assert.match(overlap(job({ concurrency_policy: "Forbid" })), /skipped/);
  assert.match(overlap(job({ concurrency_policy: "Forbid", pool: {} })), /waits in the queue/);
  assert.match(overlap(job({ concurrency_policy: "Replace" })), /ended first/);
  assert.match(overlap(job()), /side by side/);
});

test("skipped and cancelled runs say nothing about success", () => {
  assert.deepEqual(successOf([{ state: "succeeded" }, { state: "failed" }, { state: "skipped" }, { state: "cancelled" }]), { good: 1, of: 2 });
  assert.deepEqual(successOf([]), { good: 0, of: 0 });
});

test("the typical run is the middle one of those that took time", () => {
  assert.equal(median([{ duration_ms: 5 }, { duration_ms: null }, { duration_ms: 1 }, { duration_ms: 9 }, {}]), 5);
  assert.equal(median([{}]), undefined);
});
