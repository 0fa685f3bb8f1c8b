// What the pages of routing work out: how pools and recipients stand, reasons in words, the order of candidates.
import assert from "node:assert/strict";
import { test } from "node:test";
import { condition, deedOf, fallbackOf, fullness, inOrder, inWords, offers, outcomeState, plainWord, reasonsOf, standing, strategyOf, whyWaits, wouldWin } from "../../web/app/lib/routing.js";

const pool = (config = {}, fields = {}) => ({ id: "p", name: "desk", status: "STATUS_ACTIVE", config, recipient_ids: [], rule_ids: [], record_version: 1, ...fields });
const named = (id) => ({ b: "tier3" })[id] ?? "nothing";

test("a pool is called by the worst thing that is true of it", () => {
  assert.equal(condition(pool()).word, "routes");
  assert.equal(condition(pool({}, { status: "STATUS_PAUSED" })).word, "paused");
  assert.equal(condition(pool({ kill_switch: true }, { status: "STATUS_PAUSED" })).word, "kill-switch engaged");
});

test("what picks is the first that is set, and the house's own otherwise", () => {
  assert.equal(strategyOf(pool()), "smooth_weighted_round_robin");
  assert.equal(strategyOf(pool({ default_strategy: "nearest" })), "nearest");
  assert.equal(strategyOf(pool({ default_recipe: "even@1" }, { strategy: "random" })), "random");
  assert.equal(strategyOf(pool({ default_strategy_pipeline: "careful" })), "pipeline:careful");
  assert.equal(strategyOf(pool({ routing_mode: "claim" }, { strategy: "random" })), "claimed from a queue");
});

test("what nobody takes is said with the name of where it goes", () => {
  assert.equal(fallbackOf(pool(), named), "waits in the queue");
  assert.equal(fallbackOf(pool({ fallback: "overflow", overflow_pool_id: "b" }), named), "goes to tier3");
  assert.equal(fallbackOf(pool({ fallback: "catchall", catchall_pool_id: "b", catchall_delay: "2m" }), named), "waits 2m, then goes to tier3");
  assert.equal(fallbackOf(pool({ fallback: "drop" }), named), "is dropped");
});

test("a recipient stands by its administration first, then by its state", () => {
  const of = (status, state) => standing({ status: `STATUS_${status}`, state: `RECIPIENT_STATE_${state}` });
  assert.deepEqual(of("ACTIVE", "AVAILABLE"), { state: "free", word: "available" });
  assert.equal(of("ACTIVE", "OFFLINE").word, "offline");
  assert.equal(of("DISABLED", "AVAILABLE").word, "disabled");
  assert.equal(plainWord("RECIPIENT_STATE_BUSY"), "busy");
});

test("fullness knows no capacity, limits of a day, and what is over", () => {
  assert.deepEqual(fullness({ current: 2, max_concurrent: 4, daily_limit: 0, daily_count: 9 }), { part: 0.5, over: false, full: false, text: "2 of 4", day: "" });
  assert.equal(fullness({ current: 0, max_concurrent: 0, daily_limit: 0, daily_count: 0 }).full, true);
  assert.equal(fullness({ current: 6, max_concurrent: 5, daily_limit: 0, daily_count: 0 }).over, true);
  const day = fullness({ current: 0, max_concurrent: 5, daily_limit: 40, daily_count: 40 });
  assert.equal(day.full, true);
  assert.equal(day.day, "40 of 40 today");
});

test("reasons are sentences, and an unknown code is shown as it is", () => {
  assert.equal(inWords({ code: "capacity.concurrent", current: 5, max: 5 }), "is full: 5 of 5");
  assert.equal(inWords({ code: "trait.mismatch", trait: "language", want: "es", have: ["en"] }), "language is en; wanted is es");
  assert.equal(inWords({ code: "schedule.closed", zone: "America/Chicago", local: "Sun 09:44" }), "is closed: Sun 09:44 in America/Chicago");
  assert.equal(inWords({ code: "some.later" }), "some.later");
  assert.equal(inWords(undefined), "");
});

test("winners come first, then who was eligible, each by name", () => {
  const of = (recipient, verdict) => ({ recipient, verdict, stage: 0 });
  const order = inOrder([of("d", "rejected"), of("c", "lost"), of("b", "won"), of("a", "rejected")]).map(({ recipient }) => recipient);
  assert.deepEqual(order, ["b", "c", "a", "d"]);
  assert.deepEqual(reasonsOf({ "state.offline": 1, "rule.false": 3 }), ["3 × rule.false", "1 × state.offline"]);
});

test("outcomes have a family, and rules a deed", () => {
  assert.equal(outcomeState("assigned"), "good");
  assert.equal(outcomeState("queued_for_claim"), "waiting");
  assert.equal(outcomeState("no_rule_matched"), "bad");
  assert.equal(deedOf({ action: { type: "redirect", pool_id: "b" } }, named), "goes on to tier3");
  assert.equal(deedOf({ action: { type: "boost", boost: 1 } }, named), "weighs +1");
  assert.equal(deedOf({ action: { type: "drop" } }, named), "drops the work");
});

test("what waits says why, and what would change that", () => {
  const item = (histogram, fields = {}) => ({ kind: "queued", histogram, ...fields });
  assert.equal(whyWaits(item({ "state.offline": 1, "capacity.concurrent": 2 }), pool()), "2 full, 1 offline");
  assert.equal(whyWaits(item({ "some.code": 3 }), pool()), "3 some.code");
  assert.equal(whyWaits(item({ "some.code": 3 }), pool({}, { status: undefined })), "3 some.code", "a status that is not set is active");
  assert.equal(whyWaits(item({}), pool()), "nobody belongs to this pool: add a recipient");
  assert.equal(whyWaits(item({}), pool({}, { recipient_ids: ["a"] })), "nobody was eligible");
  assert.equal(whyWaits(item({ "state.offline": 1 }), pool({ kill_switch: true })), "the pool is stopped: let it route again");
  assert.equal(whyWaits(item({}), pool({}, { status: "STATUS_PAUSED" })), "the pool is paused");
  assert.match(whyWaits(item({}, { kind: "again" }), pool()), /anew/);
});

test("the closest one is told with what it lacked", () => {
  assert.equal(wouldWin("one more pick: its turn is next"), "would win after one more pick: its turn is next");
  assert.equal(wouldWin("4 more picks"), "would win after 4 more picks");
  assert.equal(wouldWin("it were online"), "would have won if it were online");
});

test("a pool whose work is claimed shows what it offers", () => {
  assert.equal(offers(pool()), false);
  assert.equal(offers(pool({ routing_mode: "claim", claim_queue_id: "q" })), true);
  assert.equal(offers(pool({}, { strategy: "shark_tank@1" })), true);
});
