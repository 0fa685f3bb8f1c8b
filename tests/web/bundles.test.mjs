// What is said of bundles that are kept in force.
import assert from "node:assert/strict";
import { test } from "node:test";
import { changeLine, faultLine, mark } from "../../web/app/lib/bundles.js";

test("a fault says where it is, as far as that is known", () => {
  assert.equal(faultLine({ file: "desk.yaml", line: 3, column: 5, code: "field.unknown", detail: "unknown field" }), "desk.yaml:3:5: field.unknown: unknown field");
  assert.equal(faultLine({ file: "desk.yaml", code: "bundle.unreadable", detail: "the file does not exist" }), "desk.yaml: bundle.unreadable: the file does not exist");
});

test("a difference says what was and what would be", () => {
  assert.equal(changeLine({ pointer: "/config/x", from: null, to: 5 }), "/config/x: unset → 5");
  assert.equal(changeLine({ pointer: "/tags", from: ["a"], to: [] }), '/tags: ["a"] → []');
  assert.deepEqual(["create", "update", "delete"].map((action) => mark({ action })), ["+", "~", "-"]);
});
