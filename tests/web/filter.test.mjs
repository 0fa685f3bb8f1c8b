import assert from "node:assert/strict";
import { test } from "node:test";
import { completions, readFilter, terms, withTerm } from "../../web/app/lib/filter.js";
import { fits } from "../../web/app/lib/fits.js";

const KEYS = [
  { key: "state", about: "a state", values: ["failed", "finished", "running"] },
  { key: "job", about: "a job", values: () => ["export", "two words"] },
  { key: "since", about: "a time" },
];

test("words, keys and quotes are told apart, with where they stand", () => {
  const text = `state:failed  job:"two words" plain "in quotes"`;
  assert.deepEqual(terms(text).map(({ key, value }) => [key, value]), [["state", "failed"], ["job", "two words"], ["", "plain"], ["", "in quotes"]]);
  for (const { at, end } of terms(text)) assert.equal(text.slice(at, end).trim(), text.slice(at, end));
  assert.deepEqual(terms(""), []);
  assert.deepEqual(terms("   "), []);
});

test("a quote that is not closed yet is read as far as it goes", () => {
  assert.deepEqual(terms(`job:"two wo`).map(({ key, value }) => [key, value]), [["job", "two wo"]]);
});

test("a repeated key and a comma both mean or", () => {
  assert.deepEqual(readFilter("state:failed,running state:finished x", KEYS), { query: { state: ["failed", "running", "finished"] }, words: ["x"], faults: [] });
});

test("an unknown key is named with those there are", () => {
  const { faults, query } = readFilter("stat:failed", KEYS);
  assert.equal(faults.length, 1);
  assert.match(faults[0], /‘stat:’.*state: job: since:/);
  assert.deepEqual(query, {});
});

test("a key without a value asks for nothing", () => {
  assert.deepEqual(readFilter("state:", KEYS).words, []);
  assert.match(readFilter(`state:""`, KEYS).faults[0], /needs a value/);
});

test("a value with colons, slashes and letters of other scripts stays whole", () => {
  assert.deepEqual(readFilter("since:2026-11-30T00:00:00Z job:größe/日本", KEYS).query, { since: ["2026-11-30T00:00:00Z"], job: ["größe/日本"] });
});

test("a term is set, replaced and taken out", () => {
  assert.equal(withTerm("state:failed x", "state", "running"), "x state:running");
  assert.equal(withTerm("x", "job", "two words"), `x job:"two words"`);
  assert.equal(withTerm(`job:"two words" x state:a state:b`, "state", ""), `job:"two words" x`);
  for (const value of ["plain", "two words", "a:b"]) assert.deepEqual(readFilter(withTerm("", "job", value), KEYS).query.job, [value]);
});

test("completions are of keys, then of values", () => {
  assert.deepEqual(completions("", KEYS).map(({ label }) => label), ["state:", "job:", "since:"]);
  assert.deepEqual(completions("x st", KEYS).map(({ insert }) => insert), ["x state:"]);
  assert.deepEqual(completions("x state:f", KEYS).map(({ insert }) => insert), ["x state:failed ", "x state:finished "]);
  assert.deepEqual(completions("job:", KEYS).map(({ insert }) => insert), ["job:export ", `job:"two words" `]);
  assert.deepEqual(completions("since:", KEYS), []);
  assert.deepEqual(completions("nothing:x", KEYS), []);
});

test("taking a completion makes a filter without faults", () => {
  for (const offer of completions("state:", KEYS)) assert.deepEqual(readFilter(offer.insert, KEYS).faults, []);
});

test("a name fits by its letters in order, and closer is better", () => {
  assert.equal(fits("export-orders", "xyz"), -1);
  assert.equal(fits("export-orders", "sredro"), -1);
  assert.ok(fits("export-orders", "exor") >= 0);
  assert.ok(fits("export-orders", "orders") < fits("export-orders", "erd"));
  assert.ok(fits("orders", "orders") < fits("export-orders", "orders"));
  assert.equal(fits("Resource pools", "RESOURCE"), fits("Resource pools", "resource"));
  assert.ok(fits("Jobs and schedules", "jobs schedules") >= 0);
});
