// Moments, local times, remarks about the clock, pauses, questions and near names.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as schedule from "../../web/app/lib/schedule.js";

const at = (text) => Date.parse(text);

test("a moment comes apart, and what is none does not", () => {
  assert.deepEqual(schedule.moment("2026-03-29T03:00:00+02:00"), { date: "2026-03-29", weekday: "Sun", clock: "03:00", offset: "+02:00" });
  assert.equal(schedule.moment("2026-03-29T03:00:05.250Z")?.clock, "03:00:05");
  assert.equal(schedule.moment("2026-03-29T03:00Z")?.offset, "+00:00");
  assert.equal(schedule.moment("yesterday"), undefined);
  assert.equal(schedule.moment(undefined), undefined);
});

test("days have words near today, and their date far away", () => {
  const words = ["2026-11-29", "2026-11-30", "2026-12-01", "2026-12-04", "2026-12-25"].map((day) => schedule.dayWord(day, "2026-11-30"));
  assert.deepEqual(words, ["yesterday", "today", "tomorrow", "Fri", "Fri 2026-12-25"]);
  assert.equal(schedule.shifted("2026-02-28", 1), "2026-03-01");
});

test("a local time is the instant at which the clock shows it", () => {
  assert.equal(schedule.instantOf("2026-11-30T02:30", "Europe/Berlin"), at("2026-11-30T01:30:00Z"));
  assert.equal(schedule.instantOf("2026-11-30T02:30:15", "UTC"), at("2026-11-30T02:30:15Z"));
  assert.equal(schedule.instantOf("2026-06-01T00:00", "Asia/Kolkata"), at("2026-05-31T18:30:00Z"));
  assert.equal(schedule.instantOf("soon", "UTC"), undefined);
});

test("a time that comes twice is its first, and one that is left out is the first after the gap", () => {
  assert.equal(schedule.instantOf("2026-10-25T02:30", "Europe/Berlin"), at("2026-10-25T00:30:00Z"));
  assert.equal(schedule.instantOf("2026-03-29T02:30", "Europe/Berlin"), at("2026-03-29T01:00:00Z"));
  assert.equal(schedule.instantOf("2026-03-08T02:30", "America/New_York"), at("2026-03-08T07:00:00Z"));
  assert.equal(schedule.instantOf("2026-11-01T01:30", "America/New_York"), at("2026-11-01T05:30:00Z"));
});

test("every local time of a year's half hours is found again in zones with and without a change", () => {
  for (const zone of ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]) {
    for (let instant = at("2026-01-01T00:00:00Z"); instant < at("2027-01-01T00:00:00Z"); instant += 6 * 1_800_000) {
      const found = /** @type {number} */ (schedule.instantOf(schedule.wall(instant, zone), zone));
      assert.equal(schedule.wall(found, zone), schedule.wall(instant, zone), `${zone} ${new Date(instant).toISOString()}`);
      assert.ok(found === instant || (found < instant && instant - found <= 3_600_000), "the first of two");
    }
  }
});

test("the fire that a change of the clock touches says so, and only that one", () => {
  const fires = ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"].map((local) => ({ instant: "", local }));
  const lints = [{ code: "dst-skipped", message: "2026-03-29 in Europe/Berlin: 02:30 does not exist, moved to 03:00" }, { code: "day-or", message: "2026-03-30 is no matter of the clock" }];
  assert.deepEqual(schedule.clockRemarks(fires, lints), [undefined, "02:30 does not exist, moved to 03:00", undefined]);
  assert.deepEqual(schedule.clockRemarks(fires), [undefined, "the clock changes from +01:00 to +02:00", undefined]);
});

test("what comes next is what is not over", () => {
  assert.equal(schedule.upcoming(["2026-11-30T00:00:00Z", "2026-11-30T00:01:00Z"], at("2026-11-30T00:00:00Z")), "2026-11-30T00:01:00Z");
  assert.equal(schedule.upcoming([], 0), undefined);
});

test("the caret stands under the wrong part", () => {
  assert.equal(schedule.caret("0 25 * * *", 2, 2), "0 25 * * *\n  ^^");
  assert.equal(schedule.caret("", 0, 0), "\n^");
});

test("a pause is sent as it was chosen", () => {
  const now = at("2026-11-30T22:30:00Z");
  const body = (end, until = "", note = "") => schedule.pauseBody({ end, until, note }, now, "Europe/Berlin");
  assert.deepEqual(body("3600", "", " mending "), { durationSeconds: 3600, note: "mending" });
  assert.deepEqual(body("tomorrow"), { until: "2026-12-01T07:00:00Z" }, "it is the 30th still in Berlin");
  assert.deepEqual(body("moment", "2026-12-24T18:00"), { until: "2026-12-24T17:00:00Z" });
  assert.ok(schedule.isOpenEnd(body("open").until));
  assert.ok(schedule.isOpenEnd(null) && !schedule.isOpenEnd("2027-01-01T00:00:00Z"));
});

test("questions begin with what is odd, once for each streak", () => {
  const fire = (minute, outcome, code) => ({ local: `2026-11-30T02:${minute}:00+01:00`, outcome, skipped: code ? { code } : null });
  const fires = [fire("50", "skipped", "job_paused"), fire("40", "skipped", "job_paused"), fire("30", "skipped", "missed"), fire("20", "run"), fire("10", "caught_up")];
  const found = schedule.questions(fires, "2026-12-01");
  assert.deepEqual(found.map(({ word, outcome }) => `${word} ${outcome}`), ["yesterday 02:50 skipped", "yesterday 02:30 skipped", "yesterday 02:10 caught_up", "yesterday 02:20 run"]);
  assert.equal(schedule.questions(Array.from({ length: 50 }, () => fire("00", "run")), "2026-12-01").length, 8);
});

test("near names are misspelt or longer ones, the nearest first", () => {
  const names = ["nightly-backup", "nightly-report", "heartbeat", "rotate-keys"];
  assert.deepEqual(schedule.near("nightly-bakcup", names).slice(0, 1), ["nightly-backup"]);
  assert.deepEqual(schedule.near("heart", names), ["heartbeat"]);
  assert.deepEqual(schedule.near("zzzzzz", names), []);
});
