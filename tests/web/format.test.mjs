import assert from "node:assert/strict";
import { test } from "node:test";
import { asCli, asCurl } from "../../web/app/lib/clip.js";
import { bytes, capital, commandText, instant, number, percent, plural, quote, shortId } from "../../web/app/lib/format.js";

test("numbers are grouped and counted things have their plural", () => {
  assert.equal(number(1234567), "1,234,567");
  assert.equal(plural(1, "run"), "1 run");
  assert.equal(plural(0, "run"), "0 runs");
  assert.equal(plural(1200, "entry", "entries"), "1,200 entries");
});

test("bytes by powers of two, with three figures at most", () => {
  const cases = { 0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 102_400: "100 KiB", 1_048_576: "1.0 MiB", 209_715_200: "200 MiB" };
  for (const [value, text] of Object.entries(cases)) assert.equal(bytes(Number(value)), text);
  assert.equal(bytes(2 ** 60), `${2 ** 20} TiB`);
  for (const value of [NaN, Infinity, undefined]) assert.equal(bytes(/** @type {any} */ (value)), "—");
});

test("a percentage is 100 only when it is all, and never more", () => {
  assert.equal(percent(1), "100 %");
  assert.equal(percent(0.99999), "99.9 %");
  assert.equal(percent(0.995), "99.5 %");
  assert.equal(percent(0.5), "50 %");
  assert.equal(percent(0), "0 %");
  assert.equal(percent(1.2), "100 %");
  assert.equal(percent(-1), "0 %");
});

test("ids are shortened at their end, where they differ", () => {
  assert.equal(shortId("run_01m8my9a9we67s6n3rv2byp8d0"), "…v2byp8d0");
  assert.equal(shortId("n-1234"), "n-1234");
});

test("a shell takes a quoted word as it was", () => {
  assert.equal(quote("plain-word_1.2/x=y:z@%+,"), "plain-word_1.2/x=y:z@%+,");
  assert.equal(quote("two words"), "'two words'");
  assert.equal(quote("it's"), `'it'\\''s'`);
  assert.equal(quote(""), "''");
  assert.equal(quote("$(rm -rf x)"), "'$(rm -rf x)'");
  assert.equal(quote("größe"), "'größe'");
});

test("a command that is a list is shown as one would type it", () => {
  assert.equal(commandText("echo $HOME"), "echo $HOME");
  assert.equal(commandText(["sh", "-c", "echo $HOME"]), "sh -c 'echo $HOME'");
});

test("instants of the API, or none", () => {
  assert.equal(instant("2026-11-30T00:00:00.000Z"), Date.UTC(2026, 10, 30));
  for (const text of [null, undefined, "", "soon"]) assert.equal(instant(text), undefined);
  assert.equal(capital("queued"), "Queued");
  assert.equal(capital(""), "");
});

test("the same request as a command", () => {
  assert.equal(asCurl({ method: "GET", path: "/api/runs?state=failed" }, "http://127.0.0.1:8470"), "curl -sS 'http://127.0.0.1:8470/api/runs?state=failed'");
  assert.equal(
    asCurl({ method: "POST", path: "/jobs/x/pause", body: { note: "it's late" }, ifMatch: `"3"` }, "http://127.0.0.1:1"),
    `curl -sS -X POST -H 'If-Match: "3"' -H 'Content-Type: application/json' -d '{"note":"it'\\''s late"}' http://127.0.0.1:1/jobs/x/pause`,
  );
  assert.equal(asCli(["job", "start", "two words"], "http://127.0.0.1:8470"), "ductor job start 'two words'");
  assert.equal(asCli(["run", "ls"], "http://127.0.0.1:9000"), "ductor run ls --server http://127.0.0.1:9000");
});
