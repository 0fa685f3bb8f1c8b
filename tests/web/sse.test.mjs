import assert from "node:assert/strict";
import { test } from "node:test";
import { parser, readEvents } from "../../web/app/lib/sse.js";

const STREAM = [
  "retry: 2000\n\n",
  ": still here\n\n",
  `id: 7.0\nevent: change\ndata: {"topic":"runs","id":"grüße 日本"}\n\n`,
  "id: 7.1\r\ndata: one\r\ndata: two\r\n\r\n",
  "event: resync\ndata\n\n",
  "event: bye\ndata: \n\n",
].join("");

const WHOLE = [
  { comment: true },
  { comment: true },
  { id: "7.0", event: "change", data: `{"topic":"runs","id":"grüße 日本"}`, comment: false },
  { id: "7.1", event: "message", data: "one\ntwo", comment: false },
  { event: "resync", data: "", comment: false },
  { event: "bye", data: "", comment: false },
];

const same = (found) => {
  assert.equal(found.length, WHOLE.length);
  WHOLE.forEach((wanted, index) => assert.deepEqual({ ...found[index], ...wanted }, found[index]));
};

const bodyOf = (chunks) => new ReadableStream({
  start(controller) {
    chunks.forEach((chunk) => controller.enqueue(chunk));
    controller.close();
  },
});

async function read(chunks) {
  const found = [];
  await readEvents(bodyOf(chunks), (event) => found.push(event));
  return found;
}

test("events, comments, ids and lines of data", () => same(parser()(STREAM)));

test("cut in two at every byte, also within a letter", async () => {
  const bytes = new TextEncoder().encode(STREAM);
  for (let at = 0; at <= bytes.length; at += 1) same(await read([bytes.slice(0, at), bytes.slice(at)]));
});

test("byte by byte", async () => {
  const bytes = new TextEncoder().encode(STREAM);
  same(await read([...bytes].map((byte) => Uint8Array.of(byte))));
});

test("an event that is not finished is not told", async () => {
  assert.deepEqual(await read([new TextEncoder().encode("data: half\n")]), []);
});

test("fields that nobody knows and spaces that belong to the value", () => {
  const [event] = parser()("colour: red\ndata:  two spaces\nid:x\n\n");
  assert.deepEqual({ data: event.data, id: event.id }, { data: " two spaces", id: "x" });
});
