// The week as hours of a clock: days, changes of the clock, jobs that fire all the time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { apart, cells, hasHour, heat, hourKey, weekDays, weekSpan } from "../../web/app/lib/week.js";

const at = (text) => Date.parse(text);

test("a week has seven days, also over the end of a year", () => {
  assert.deepEqual(weekDays("2026-12-29"), ["2026-12-29", "2026-12-30", "2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-01-04"]);
});

test("the week of a change of the clock is an hour shorter or longer", () => {
  const hours = (first) => {
    const { from, to } = weekSpan(first, "Europe/Berlin");
    return (to - from) / 3_600_000;
  };
  assert.deepEqual(["2026-03-26", "2026-06-01", "2026-10-22"].map(hours), [167, 168, 169]);
});

test("fires are in the hour of the chosen clock, by time", () => {
  const batches = [{ job: "b", at: at("2026-11-30T23:40:00Z"), count: 3 }, { job: "a", at: at("2026-11-30T23:10:00Z"), count: 1 }];
  const found = cells(batches, "Europe/Berlin");
  assert.deepEqual([...found.keys()], ["2026-12-01T00"]);
  const cell = found.get("2026-12-01T00");
  assert.deepEqual([cell?.count, cell?.batches.map(({ job }) => job)], [4, ["a", "b"]]);
});

test("the hour that comes twice is one cell, and the one that is left out is known", () => {
  const twice = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"].map((instant) => hourKey(at(instant), "Europe/Berlin"));
  assert.deepEqual(twice, ["2026-10-25T02", "2026-10-25T02"]);
  assert.equal(hasHour("2026-03-29T02", "Europe/Berlin"), false);
  assert.equal(hasHour("2026-03-29T03", "Europe/Berlin"), true);
  assert.equal(hasHour("2026-10-25T02", "Europe/Berlin"), true);
  assert.equal(hasHour("2026-10-04T02", "Australia/Lord_Howe"), true, "half of it is there");
});

test("what fires nearly every hour stands apart", () => {
  const steady = Array.from({ length: 168 }, (_, hour) => ({ job: "often", at: hour * 3_600_000, count: 60 }));
  const found = apart([...steady, { job: "once", at: 0, count: 1 }]);
  assert.deepEqual([found.steady, found.others.map(({ job }) => job)], [["often"], ["once"]]);
});

test("heat has four steps and none for nothing", () => {
  assert.deepEqual([0, 1, 50, 100].map((count) => heat(count, 100)), [0, 1, 2, 4]);
  assert.equal(heat(1, 1), 4);
});
