// The search goes on by itself over bounded answers, once around the file, and can be stopped.
import assert from "node:assert/strict";
import { test } from "node:test";
import { LogReader } from "../../web/app/lib/logreader.js";
import { LogSearch } from "../../web/app/lib/logsearch.js";

const STEP = 500;

/** A log whose daemon looks at few bytes for one answer. */
function logOf(lines) {
  const bytes = new TextEncoder().encode(lines.map((line) => `o ${line}\n`).join(""));
  const text = new TextDecoder("latin1").decode(bytes);
  const asked = [];
  const source = {
    asked,
    read: async (offset, limit) => {
      const start = offset < 0 ? Math.max(0, bytes.length + offset) : Math.min(offset, bytes.length);
      return { start, size: bytes.length, done: true, bytes: bytes.slice(start, start + limit) };
    },
    search: async ({ q, direction, from }, stop) => {
      asked.push(from);
      await new Promise((go) => setTimeout(go, 1));
      stop.throwIfAborted();
      const isNext = direction === "next";
      const begin = from ?? (isNext ? 0 : text.length);
      const end = isNext ? Math.min(text.length, begin + STEP) : Math.max(0, begin - STEP);
      const at = isNext ? text.slice(0, end).indexOf(q, begin) : begin === 0 ? -1 : text.lastIndexOf(q, begin - 1);
      const hit = at >= 0 && (isNext || at >= end);
      const matches = hit ? [{ offset: at, line_offset: text.lastIndexOf("\n", at) + 1 }] : [];
      // A match that has begun may go on behind the end.
      const goesOn = isNext && end < text.length ? end - q.length + 1 : end;
      return { matches, searched_to: hit ? at + (isNext ? 1 : 0) : goesOn, done: !hit && end === (isNext ? text.length : 0), size: text.length };
    },
  };
  const reader = new LogReader(/** @type {any} */ (source), { live: false });
  return { source, reader, search: new LogSearch(reader), place: (word, nth = 0) => text.split(word).slice(0, nth + 1).join(word).length };
}

const filler = (count) => Array.from({ length: count }, (_, index) => `line ${index} of no interest`);

test("next, previous and once around, over many answers", async () => {
  const { reader, search, place, source } = logOf([...filler(60), "a needle", ...filler(60), "needle and needle", ...filler(60)]);
  await reader.jump(0);
  search.ask("needle");
  const spots = [];
  for (const way of ["next", "next", "next", "next", "previous", "previous"]) {
    await search.go(way);
    spots.push([search.hit.peek().at, search.hit.peek().nth, search.told.peek()]);
  }
  const [one, two, three] = [0, 1, 2].map((nth) => place("needle", nth));
  assert.deepEqual(spots, [[one, 0, ""], [two, 0, ""], [three, 1, ""], [one, 0, "continued from the start"], [three, 1, "continued from the end"], [two, 0, ""]]);
  assert.ok(source.asked.length > 12, "answers are bounded");
  assert.equal(search.busy.peek(), false);
  assert.equal(search.counted(), "3 matches nearby");
});

test("one match alone, and none", async () => {
  const { reader, search } = logOf([...filler(30), "the only one!", ...filler(30)]);
  await reader.jump(0);
  search.ask("only");
  await search.go("next");
  await search.go("next");
  assert.equal(search.told.peek(), "the only match");
  await search.go("previous");
  assert.equal(search.told.peek(), "the only match");
  search.ask("absent");
  await search.go("next");
  assert.deepEqual([search.hit.peek(), search.told.peek()], [undefined, "‘absent’ is nowhere in this log"]);
});

test("a search that is stopped says so and goes nowhere", async () => {
  const { reader, search, source } = logOf(filler(2000));
  await reader.jump(0);
  search.ask("absent");
  const going = search.go("next");
  await new Promise((go) => setTimeout(go, 20));
  assert.ok(search.told.peek().startsWith("looking"));
  search.stop();
  await going;
  const asked = source.asked.length;
  await new Promise((go) => setTimeout(go, 20));
  assert.deepEqual([search.busy.peek(), search.told.peek(), source.asked.length], [false, "stopped", asked]);
});
