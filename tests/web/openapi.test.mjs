// The reference of the API reads the committed document, and any other one without going round in circles.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fields, filled, groups, isMeant, operations, typeText } from "../../web/app/lib/openapi.js";

const doc = JSON.parse(readFileSync(new URL("../../config/openapi.json", import.meta.url), "utf8"));
const all = operations(doc);

test("every operation of the document is in one group", () => {
  const wanted = Object.values(doc.paths).flatMap((item) => Object.keys(item)).length;
  assert.equal(all.length, wanted);
  assert.equal(groups(all).reduce((sum, group) => sum + group.operations.length, 0), wanted);
  assert.deepEqual(groups(all).slice(0, 3).map(({ title }) => title), ["Jobs and schedules", "Slot pools and runs", "The daemon"]);
  assert.equal(new Set(all.map(({ id }) => id)).size, wanted);
});

test("a tag that nobody knows makes a group of its own", () => {
  assert.equal(groups([{ ...all[0], tag: "ledger" }])[0].title, "Ledger");
});

test("answers and refusals are told apart, and references are followed", () => {
  const pause = all.find(({ id }) => id === "pausePool");
  assert.deepEqual(pause.replies.map(({ status }) => status), ["200"]);
  assert.ok(pause.problems.some(({ status, about }) => status === "409" && about.length > 0));
  assert.equal(pause.scope, "slot:write");
  assert.ok(pause.body.example);
});

test("the whole document can be unfolded to its end", () => {
  let count = 0;
  const unfold = (schema, seen, depth) => {
    assert.ok(depth < 20, "this schema has no end");
    for (const field of fields(doc, schema, seen)) {
      count += 1;
      if (!field.again) unfold(field.schema, field.seen, depth + 1);
    }
  };
  for (const operation of all) for (const reply of [...operation.replies, ...operation.problems]) if (reply.schema) unfold(reply.schema, [], 0);
  assert.ok(count > 500);
});

test("a schema that contains itself ends where it begins again", () => {
  const tree = { components: { schemas: { Node: { type: "object", required: ["name"], properties: { name: { type: "string" }, inner: { type: "array", items: { $ref: "#/components/schemas/Node" } } } } } } };
  const ref = { $ref: "#/components/schemas/Node" };
  const [name, inner] = fields(tree, ref);
  assert.deepEqual([name.name, name.required, name.type], ["name", true, "text"]);
  assert.equal(inner.type, "list of Node");
  assert.equal(inner.again, "Node");
  assert.deepEqual(fields(tree, inner.schema, inner.seen), []);
});

test("types are said in words", () => {
  assert.equal(typeText(doc, { type: ["string", "null"] }), "text or null");
  assert.equal(typeText(doc, { type: "array", items: { enum: ["a", "b"] } }), 'list of "a" | "b"');
  assert.equal(typeText(doc, { oneOf: [{ $ref: "#/components/schemas/Blocked" }, { type: "null" }] }), "Blocked or null");
  assert.equal(typeText(doc, { type: "string", format: "date-time" }), "instant");
});

test("joined schemas show the fields of all parts", () => {
  const names = fields(doc, { $ref: "#/components/schemas/RunDetail" }).map(({ name }) => name);
  assert.ok(names.includes("id") && names.includes("steps"));
});

test("a path is filled as far as it is known", () => {
  const operation = all.find(({ id }) => id === "showPool");
  assert.equal(filled(operation, {}), "/pools/{pool}");
  assert.equal(filled(operation, { pool: "a b", limit: "10", entries: " " }), "/pools/a%20b?limit=10");
  const runs = all.find(({ id }) => id === "listRuns");
  assert.equal(filled(runs, { state: "failed, running" }), "/api/runs?state=failed&state=running");
});

test("operations are found by words, method, scope and tag", () => {
  const count = (query, ...words) => all.filter((each) => isMeant(each, { query, words })).length;
  assert.ok(count({}, "pause") >= 2);
  assert.equal(count({}, "pause", "nothing-like-it"), 0);
  assert.ok(count({ method: ["post"] }) < all.length);
  assert.ok(count({ scope: ["slot"] }) >= count({ scope: ["slot:write"] }));
});
