import assert from "node:assert/strict";
import { test } from "node:test";
import { lineAt, notJson, placeOf, placesOf } from "../../web/app/lib/jsonplace.js";
import { fieldsOf, inputOf, valuesOf } from "../../web/app/lib/schemaform.js";
import { diffGroups, diffSentence, HELLO_WORLD, pretty, standing } from "../../web/app/lib/workflow.js";

const SCHEMA = {
  type: "object",
  required: ["customer", "count", "tags"],
  properties: {
    customer: { type: "string", title: "Customer", description: "Whose orders", minLength: 1 },
    count: { type: "integer", minimum: 1, maximum: 10, default: 3 },
    ratio: { type: "number" },
    mode: { enum: ["fast", "safe", 3, null], default: "safe" },
    dry: { type: "boolean" },
    since: { type: ["string", "null"], format: "date-time" },
    tags: { type: "array", items: { type: "string" } },
  },
};

test("a schema becomes fields, with its defaults, bounds and words", () => {
  const fields = /** @type {any[]} */ (fieldsOf(SCHEMA));
  assert.deepEqual(fields.map(({ name, kind, required }) => [name, kind, required]), [["customer", "text", true], ["count", "integer", true], ["ratio", "number", false], ["mode", "choice", false], ["dry", "yes", false], ["since", "moment", false], ["tags", "json", true]]);
  assert.equal(fields[0].hint, "Whose orders · at least 1 characters");
  assert.equal(fields[1].value, "3");
  assert.deepEqual(fields[3].choices[2], { value: "3", text: "3" });
  assert.equal(fields[3].value, '"safe"');
});

test("no form where there are no named properties", () => {
  for (const schema of [undefined, null, {}, { type: "object" }, { type: "array", items: {} }, { type: "string", properties: { a: {} } }]) assert.equal(fieldsOf(schema), undefined);
});

test("fields become an input, and say what is wrong with them", () => {
  const fields = /** @type {any[]} */ (fieldsOf(SCHEMA));
  const good = inputOf(fields, { customer: "ACME", count: "4", mode: "3", dry: "true", since: "2026-03-01T10:00:00Z", tags: '["a"]' });
  assert.deepEqual(good.faults, {});
  assert.deepEqual(good.input, { customer: "ACME", count: 4, mode: 3, dry: true, since: "2026-03-01T10:00:00.000Z", tags: ["a"] });
  const bad = inputOf(fields, { count: "1.5", ratio: "x", tags: "[", since: "never" });
  assert.deepEqual(bad.faults, { count: "is not a whole number", ratio: "is not a number", since: "is not a date and time", tags: "is not JSON" });
  assert.deepEqual(inputOf(fields, {}).faults, { tags: "is needed" });
  assert.deepEqual(valuesOf(fields, { count: 7, mode: "fast", tags: [1] }), { count: "7", mode: '"fast"', tags: "[\n  1\n]" });
});

test("a pointer finds its value in the text, or what is around it", () => {
  const text = '{\n  "a": [1, {"b/c": "x \\" y"}],\n  "d": {}\n}';
  const places = placesOf(text);
  const at = (pointer) => {
    const place = placeOf(places, pointer);
    return place && text.slice(place.from, place.to);
  };
  assert.equal(at("/a/1/b~1c"), '"x \\" y"');
  assert.equal(at("/a/0"), "1");
  assert.equal(at("/a/1/gone/deep"), '{"b/c": "x \\" y"}');
  assert.equal(at("/d"), "{}");
  assert.equal(at(""), text);
  assert.equal(lineAt(text, placeOf(places, "/d")?.from ?? 0), 3);
  assert.equal(placesOf('{"a": 1, "b": ').get("/a")?.from, 6, "as far as the text is right");
  assert.equal(notJson("{}"), undefined);
  assert.ok((notJson('{"a" 1}')?.at ?? 0) > 0);
});

test("the first definition is written as the introduction has it", () => {
  const text = pretty(HELLO_WORLD);
  assert.deepEqual(JSON.parse(text), HELLO_WORLD);
  assert.ok(text.split("\n").length < 20, text);
  assert.ok(text.split("\n").every((line) => line.length <= 170), text);
});

test("how a definition stands", () => {
  assert.equal(standing({ newest_version: null, current_version: null, draft: true }).word, "draft");
  assert.equal(standing({ newest_version: 3, current_version: 3, draft: true }).text, "version 3 runs, and there is a newer draft");
  assert.equal(standing({ newest_version: 3, current_version: null, draft: false }).word, "deprecated");
});

test("a difference in lines and in a sentence", () => {
  const diff = {
    same: false,
    steps: { added: ["b"], removed: [], changed: [{ ref: "a", fields: [{ pointer: "/args/duration", before: "1s", after: "2s" }] }] },
    edges: { added: [{ source_ref: "a", target_ref: "b", type: "EDGE_TYPE_CONDITION", condition: "input.x" }], removed: [] },
    fields: [{ pointer: "/title", before: null, after: "T" }],
  };
  assert.deepEqual(diffGroups(diff).map(({ head, lines }) => [head, ...lines.map(({ sign, text }) => `${sign} ${text}`)]), [["Steps", "+ b", "~ a"], ["Edges", "+ a → b (condition: input.x)"], ["Document", "~ /title"]]);
  assert.equal(diffSentence(diff), "1 step added, 1 step changed, 1 edge added, 1 field changed.");
  assert.equal(diffSentence({ ...diff, same: true }), "Nothing differs.");
});
