import assert from "node:assert/strict";
import { test } from "node:test";
import { clock, day, isZone, long, midnight, offsetOf, relative, short, span, weekday, whole, zoneFor, zoneName } from "../../web/app/lib/time.js";

const HOUR = 3_600_000;

test("the same instant in zones, with what the zone is called there and then", () => {
  const at = Date.UTC(2026, 10, 30, 13, 2, 11);
  assert.equal(long(at, "UTC"), "2026-11-30 13:02:11 UTC");
  assert.match(long(at, "Europe/Berlin"), /^2026-11-30 14:02:11 (CET|GMT\+1)$/);
  assert.match(long(at, "Asia/Kolkata"), /^2026-11-30 18:32:11 (IST|GMT\+5:30)$/);
  assert.equal(day(at, "Pacific/Kiritimati"), "2026-12-01");
  assert.equal(weekday(at, "Europe/Berlin"), "Mon");
});

test("across the hour that is left out in spring", () => {
  const before = Date.UTC(2026, 2, 29, 0, 59, 59);
  assert.equal(clock(before, "Europe/Berlin"), "01:59:59");
  assert.equal(clock(before + 1000, "Europe/Berlin"), "03:00:00");
  assert.equal(offsetOf(before, "Europe/Berlin"), HOUR);
  assert.equal(offsetOf(before + 1000, "Europe/Berlin"), 2 * HOUR);
  assert.notEqual(zoneName(before, "Europe/Berlin"), zoneName(before + 1000, "Europe/Berlin"));
});

test("across the hour that comes twice in autumn, told apart by the zone's name", () => {
  const first = Date.UTC(2026, 9, 25, 0, 30);
  assert.equal(clock(first, "Europe/Berlin", false), "02:30");
  assert.equal(clock(first + HOUR, "Europe/Berlin", false), "02:30");
  assert.notEqual(long(first, "Europe/Berlin"), long(first + HOUR, "Europe/Berlin"));
});

test("midnight is 00, never 24", () => {
  assert.equal(clock(Date.UTC(2026, 0, 1), "UTC"), "00:00:00");
});

test("a day begins at its first instant, also when that is not midnight", () => {
  const now = Date.UTC(2026, 10, 30, 0, 30);
  assert.equal(midnight("today", "UTC", now), Date.UTC(2026, 10, 30));
  assert.equal(midnight("yesterday", "America/New_York", now), Date.UTC(2026, 10, 28, 5));
  assert.equal(midnight("2026-03-29", "Europe/Berlin", now), Date.UTC(2026, 2, 28, 23));
  assert.equal(midnight("2026-03-30", "Europe/Berlin", now), Date.UTC(2026, 2, 29, 22));
  // In Cairo the clocks go from 00:00 to 01:00.
  const first = midnight("2024-04-26", "Africa/Cairo", now);
  assert.equal(clock(/** @type {number} */ (first), "Africa/Cairo"), "01:00:00");
  assert.equal(day(/** @type {number} */ (first) - 1000, "Africa/Cairo"), "2024-04-25");
  for (const word of ["2026-02-30", "2026-13-01"]) assert.equal(midnight(word, "UTC", now), undefined);
});

test("offsets of half and quarter hours, and of the years before zones", () => {
  const at = Date.UTC(2026, 10, 30, 12);
  assert.equal(offsetOf(at, "Asia/Kathmandu"), 5.75 * HOUR);
  assert.equal(offsetOf(at, "America/St_Johns"), -3.5 * HOUR);
  assert.equal(offsetOf(at, "Pacific/Kiritimati"), 14 * HOUR);
  assert.equal(offsetOf(at + 1, "UTC"), 0);
});

test("as short as the day allows, by the day of the zone", () => {
  const now = Date.UTC(2026, 10, 30, 23, 30);
  assert.equal(short(now - HOUR, "UTC", now), "22:30:00");
  // Already the day after in Berlin, so the hour before midnight there is another day.
  assert.equal(short(now - HOUR, "Europe/Berlin", now), "11-30 23:30");
  assert.equal(short(Date.UTC(2025, 11, 31, 12), "UTC", now), "2025-12-31 12:00");
});

test("zones are known or not, and the choice falls back", () => {
  assert.ok(isZone("America/New_York"));
  assert.ok(!isZone("Mars/Olympus"));
  assert.equal(zoneFor("utc", "Europe/Berlin"), "UTC");
  assert.equal(zoneFor("job", "Asia/Tokyo"), "Asia/Tokyo");
  assert.equal(zoneFor("job", "Mars/Olympus"), zoneFor("browser"));
  assert.equal(zoneFor("job"), zoneFor("browser"));
});

test("spans in two units at most", () => {
  const cases = [[0, "0 ms"], [850, "850 ms"], [999.6, "1.0 s"], [1000, "1.0 s"], [4249, "4.2 s"], [9999, "9.9 s"], [10_000, "10 s"], [200_000, "3 min 20 s"], [3_600_000, "1 h"], [100_800_000, "1 d 4 h"], [-5, "0 ms"]];
  for (const [ms, text] of cases) assert.equal(span(/** @type {number} */ (ms)), text);
  assert.equal(span(NaN), "—");
  assert.equal(span(Infinity), "—");
  assert.equal(whole(59_999), "59 s");
  assert.equal(whole(-1), "0 s");
});

test("how long ago, and in how long", () => {
  const now = 1_000_000_000_000;
  assert.equal(relative(now + 400, now), "now");
  assert.equal(relative(now - 200_000, now), "3 min 20 s ago");
  assert.equal(relative(now + 20_000, now), "in 20 s");
  assert.equal(relative(now + 5 * HOUR + 1, now), "in 5 h");
  assert.equal(relative(now - 49 * HOUR, now), "2 d ago");
});
