// The week as hours of a clock: days, changes of the clock, jobs that fire all the time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { cells, hasHour, heat, hourKey, steadyJobs, weekDays } from "../../web/app/lib/week.js";

const at = (text) => Date.parse(text);

test("a week has seven days, also over the end of a year", () => {
  assert.deepEqual(weekDays("2026-12-29"), ["2026-12-29", "2026-12-30", "2026-12-31", "2027-01-01", "2027-01-02", "2027-01-03", "2027-01-04"]);
});

const hour = (day, at, fires, more = {}) => ({ day, hour: at, total: fires.reduce((sum, each) => sum + each.count, 0), jobs: fires.length, fires, ...more });

test("an hour that comes twice is one cell", () => {
  const twice = [hour("2026-10-25", 2, [{ job: "a", at: "2026-10-25T00:30:00Z", count: 1 }]), hour("2026-10-25", 2, [{ job: "a", at: "2026-10-25T01:30:00Z", count: 3 }])];
  const found = cells(twice);
  assert.deepEqual([...found.keys()], ["2026-10-25T02"]);
  const cell = found.get("2026-10-25T02");
  assert.deepEqual([cell?.count, cell?.jobs, cell?.fires.length], [4, 1, 2]);
});

test("jobs that are not named are counted, and those that are left out are not", () => {
  const many = hour("2026-11-30", 9, [{ job: "often", at: "", count: 60 }, { job: "a", at: "", count: 1 }], { total: 90, jobs: 7 });
  const cell = cells([many], ["often"]).get("2026-11-30T09");
  assert.deepEqual([cell?.count, cell?.jobs, cell?.unnamed, cell?.fires.map(({ job }) => job)], [30, 6, 5, ["a"]]);
  assert.equal(cells([hour("2026-11-30", 9, [{ job: "often", at: "", count: 60 }])], ["often"]).size, 0);
});

test("the hour of a moment, and the hour that a clock leaves out", () => {
  assert.equal(hourKey(at("2026-11-30T23:40:00Z"), "Europe/Berlin"), "2026-12-01T00");
  assert.equal(hasHour("2026-03-29T02", "Europe/Berlin"), false);
  assert.equal(hasHour("2026-03-29T03", "Europe/Berlin"), true);
  assert.equal(hasHour("2026-10-25T02", "Europe/Berlin"), true);
  assert.equal(hasHour("2026-10-04T02", "Australia/Lord_Howe"), true, "half of it is there");
});

test("what fires nearly every hour stands apart", () => {
  const hours = Array.from({ length: 168 }, (_, place) => hour(`day ${Math.floor(place / 24)}`, place % 24, [{ job: "often", at: "", count: 60 }, ...(place % 24 === 2 ? [{ job: "nightly", at: "", count: 1 }] : [])]));
  assert.deepEqual(steadyJobs(hours), ["often"]);
  assert.equal(cells(hours, ["often"]).size, 7);
});

test("heat has four steps and none for nothing", () => {
  assert.deepEqual([0, 1, 50, 100].map((count) => heat(count, 100)), [0, 1, 2, 4]);
  assert.equal(heat(1, 1), 4);
});
