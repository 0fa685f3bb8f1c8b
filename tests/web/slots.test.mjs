// What the page of resource pools works out: conditions, reasons, forecasts, colours, rows that stand still.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ahead, backlog, condition, drainSentence, hues, matches, parts, why } from "../../web/app/lib/slots.js";
import { forecast, lengths } from "../../web/app/lib/slotforecast.js";
import { steady } from "../../web/app/lib/steady.js";

const NOW = Date.parse("2026-11-30T12:00:00Z");
const time = (seconds) => new Date(NOW + seconds * 1000).toISOString();
let made = 0;
const entry = (state, fields = {}) => {
  made += 1;
  return { id: `e${made}`, job: "export", runId: `run_${made}`, attempt: 1, kind: "scheduled", state, slots: 1, priority: 0, queuedAt: time(-60), expiresAt: time(3600),
    finishedAt: null, reason: null, node: null, readmitted: 0, claim: null, ...fields };
};
const running = (since, fields) => entry("running", { claim: { node: "n", fence: 1, claimedAt: time(-since), leaseUntil: time(20), pid: 7 }, ...fields });
const finished = (held, fields) => entry("finished", { claim: { node: "n", fence: 1, claimedAt: time(-500), leaseUntil: null, pid: 7 }, finishedAt: time(held - 500), ...fields });
const pool = (fields = {}) => {
  const entries = fields.entries ?? [];
  const of = (state) => entries.filter((each) => each.state === state);
  return { name: "warehouse", slots: 4, configuredSlots: 4, maxQueued: 10, truncated: false, paused: null, draining: false, blockedBy: null,
    used: of("running").reduce((sum, each) => sum + each.slots, 0), queued: of("queued").length, ...fields, entries };
};

test("a pool is called by the worst thing that is true of it", () => {
  assert.equal(condition(pool()).word, "idle");
  assert.equal(condition(pool({ entries: [running(1)] })).word, "in use");
  assert.equal(condition(pool({ slots: 1, entries: [running(1)] })).word, "full");
  assert.equal(condition(pool({ slots: 1, entries: [running(1), entry("queued")] })).word, "1 waiting");
  assert.equal(condition(pool({ entries: [entry("queued")], blockedBy: { kind: "forbid", since: time(-1) } })).word, "head held up");
  assert.equal(condition(pool({ maxQueued: 1, entries: [entry("queued")] })).word, "queue full");
  assert.equal(condition(pool({ draining: true, configuredSlots: 2 })).word, "draining");
  assert.equal(condition(pool({ draining: true, paused: { until: null, note: "", by: "local" } })).word, "paused");
});

test("the head says what it waits for and what that means for the others", () => {
  const of = pool({ entries: [running(5, { slots: 3 }), entry("queued", { slots: 2 }), entry("queued"), entry("queued")], blockedBy: { kind: "slots", since: time(-5) } });
  assert.equal(why(of).text, "waits for 2 slots; 1 is free.");
  assert.equal(why(of).behind, "2 entries wait behind it, whatever their priority and size.");
  assert.equal(why(pool()), undefined);
  const bound = pool({ entries: [entry("queued", { node: "berlin-2" })], blockedBy: { kind: "node", since: time(-5) } });
  assert.match(why(bound).text, /only be claimed by node berlin-2/);
  assert.equal(why(bound).behind, "");
  assert.match(why(pool({ entries: [entry("queued", { waitingReason: "Something new" })], blockedBy: { kind: "moon", since: time(-1) } })).text, /Something new/);
});

test("a drain names what it waits for", () => {
  const drained = pool({ slots: 4, configuredSlots: 2, draining: true, entries: [running(1), running(1), running(1)] });
  assert.match(drainSentence(drained), /^Draining from 4 to 2: new work is refused until 3 claims end\./);
  assert.match(drainSentence(pool({ draining: true, configuredSlots: 2, entries: [running(1), entry("queued")] })), /until 1 claim and 1 waiting entry end\./);
  assert.match(drainSentence(pool({ draining: true, configuredSlots: 2, entries: [running(1)] })), /until 1 claim ends\./);
  assert.equal(drainSentence(pool()), "");
});

test("a full queue is said before and when it happens", () => {
  assert.equal(backlog(pool()).tone, "calm");
  assert.equal(backlog(pool({ queued: 8 })).tone, "wait");
  assert.equal(backlog(pool({ queued: 10 })).text, "the queue is full: new work is refused");
});

test("what stands before an entry is counted in entries and slots", () => {
  const waiting = [entry("queued", { slots: 2, position: 1 }), entry("queued", { slots: 3, position: 2 }), entry("queued", { position: 3 })];
  const found = ahead(waiting);
  assert.deepEqual(found.get(waiting[0].id), { entries: 0, slots: 0 });
  assert.deepEqual(found.get(waiting[2].id), { entries: 2, slots: 5 });
});

test("a colour stays with its job and two jobs never share one while there are enough", () => {
  const first = hues(new Map(), ["a", "b", "c"]);
  assert.equal(new Set(first.values()).size, 3);
  const second = hues(first, ["c", "d", "a"]);
  assert.equal(second.get("a"), first.get("a"));
  assert.equal(second.get("c"), first.get("c"));
  assert.equal(new Set(second.values()).size, 3);
  assert.equal(hues(new Map(), Array.from({ length: 20 }, (_, index) => `job-${index}`)).size, 20);
});

test("pools are found by name, by what is true of them and by job", () => {
  const of = pool({ entries: [running(1)] });
  assert.ok(matches(of, { query: {}, words: ["ware"] }));
  assert.ok(!matches(of, { query: {}, words: ["mail"] }));
  assert.ok(matches(of, { query: { is: ["held"] }, words: [] }));
  assert.ok(!matches(of, { query: { is: ["waiting", "paused"] }, words: [] }));
  assert.ok(matches(of, { query: { job: ["export"] }, words: [] }));
});

test("the queue is played forward in its order, with the median of each job", () => {
  const history = [finished(30), finished(10), finished(20), finished(5, { job: "small" })];
  assert.equal(lengths(history).get("export").usual, 20_000);
  const head = entry("queued", { slots: 2 });
  const next = entry("queued", { job: "small" });
  const of = pool({ entries: [running(5, { slots: 2 }), running(15), head, next, ...history], blockedBy: { kind: "slots", since: time(-1) } });
  const { starts } = forecast(of, NOW);
  assert.equal(starts.get(head.id), NOW + 5000, "the holder of one ends in 5 s, then two are free with the one that was");
  assert.equal(starts.get(next.id), NOW + 15_000, "the small one never overtakes the head; it fits when the wide holder ends");
});

test("nothing is guessed when nobody can know", () => {
  const head = entry("queued");
  const unknown = pool({ slots: 1, entries: [running(5), head], blockedBy: { kind: "slots", since: time(-1) } });
  assert.equal(forecast(unknown, NOW).starts.size, 0);
  const over = pool({ slots: 1, entries: [running(500), head, finished(10)], blockedBy: { kind: "slots", since: time(-1) } });
  assert.equal(forecast(over, NOW).starts.size, 0, "it has run longer than ever");
  const held = pool({ entries: [head, finished(10)], blockedBy: { kind: "job_paused", since: time(-1) } });
  assert.equal(forecast(held, NOW).starts.size, 0);
});

test("an entry that gives up before its turn takes no slots from the next", () => {
  const hopeless = entry("queued", { expiresAt: time(2) });
  const next = entry("queued");
  const of = pool({ slots: 1, entries: [running(5), hopeless, next, finished(10)], blockedBy: { kind: "slots", since: time(-1) } });
  const { starts } = forecast(of, NOW);
  assert.equal(starts.get(next.id), NOW + 5000);
});

test("rows stand still: what left stays marked in its place, what came is at the end", () => {
  const key = (row) => row.id;
  const shown = [{ row: { id: "a", at: 1 }, gone: false }, { row: { id: "b", at: 1 }, gone: false }];
  const rows = steady(shown, [{ id: "c", at: 2 }, { id: "b", at: 2 }], key);
  assert.deepEqual(rows.map(({ row, gone }) => [row.id, row.at, gone]), [["a", 1, true], ["b", 2, false], ["c", 2, false]]);
  assert.deepEqual(steady([], [{ id: "a" }], key), [{ row: { id: "a" }, gone: false }]);
});

test("entries are told apart by their state", () => {
  const found = parts(pool({ entries: [running(1), entry("queued"), entry("expired"), entry("cancelled")] }));
  assert.deepEqual([found.running.length, found.waiting.length, found.ended.length], [1, 1, 2]);
});
