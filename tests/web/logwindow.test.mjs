// Whatever is done to the window of a log, it holds exactly the bytes of the file, in order and in whole rows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BUDGET, CHUNK, LogWindow } from "../../web/app/lib/logwindow.js";
import { OPEN, REACH, ROW_MAX, firstRow, payloadOf, readRows } from "../../web/app/lib/logrecords.js";

/** Numbers that come again for the same seed. */
function dice(seed) {
  let state = seed >>> 0 || 1;
  return (most) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % most;
  };
}

const text = (bytes) => new TextDecoder("latin1").decode(bytes);
const bytesOf = (string) => Uint8Array.from(string, (letter) => letter.charCodeAt(0));

/** Records as a worker writes them: lines, pieces, both streams, remarks, colours, bytes that are no text, a torn one. */
function makeLog(roll, length, long) {
  const parts = [];
  let size = 0;
  while (size < length) {
    const tag = "ooooooeeOOEi"[roll(12)];
    const most = long && roll(40) === 0 ? 64 * 1024 : 120;
    const count = most > 120 ? most - roll(3) : roll(most);
    const payload = Array.from({ length: count }, () => {
      const kind = roll(30);
      if (kind === 0) return "\x1b[3" + roll(8) + "m";
      if (kind === 1) return "\x1b[0m";
      if (kind === 2) return String.fromCharCode(128 + roll(128));
      return String.fromCharCode(32 + roll(90));
    }).join("").slice(0, 64 * 1024);
    const record = roll(400) === 0 ? "torn\n" : `${tag} ${payload}\n`;
    parts.push(record);
    size += record.length;
  }
  return bytesOf(parts.join(""));
}

function check(window, file, what) {
  let at = window.from;
  for (const chunk of window.chunks) {
    assert.equal(chunk.from, at, `${what}: no gap`);
    assert.equal(chunk.starts[0], 0);
    assert.equal(chunk.starts[chunk.rows], chunk.bytes.length, `${what}: rows fill their chunk`);
    assert.ok(chunk.rows > 0 && chunk.bytes.length <= CHUNK + ROW_MAX, `${what}: a chunk is small`);
    assert.deepEqual(chunk.bytes, file.subarray(chunk.from, chunk.to), `${what}: the bytes of the file`);
    for (let row = 0; row < chunk.rows; row += 1) {
      const length = chunk.starts[row + 1] - chunk.starts[row];
      assert.ok(length > 0 && length <= ROW_MAX, `${what}: a row is short`);
      assert.ok(row === 0 || chunk.from + chunk.starts[row] === 0 || chunk.bytes[chunk.starts[row] - 1] === 10);
    }
    assert.equal(chunk.rowAt(chunk.from + chunk.starts[chunk.rows - 1]), chunk.rows - 1);
    at = chunk.to;
  }
  assert.equal(window.to, at, `${what}: its end`);
  const slabs = window.slabs();
  slabs.forEach((slab, index) => {
    assert.ok(slab.end > slab.first);
    assert.equal(slab.at, index === 0 ? window.from : slabs[index - 1].to, `${what}: slabs follow each other`);
  });
}

/** What the file says at a place, colours and open lines carried from its very begin. */
function whole(file) {
  const all = new LogWindow();
  all.append(file, true);
  return all;
}

test("random reads, jumps and losses leave the bytes of the file in order", () => {
  for (let seed = 1; seed <= 10; seed += 1) {
    const roll = dice(seed * 7919);
    const file = makeLog(roll, 200_000 + roll(400_000), seed % 3 === 0);
    const window = new LogWindow();
    const budget = 150_000 + roll(300_000);
    for (let turn = 0; turn < 30; turn += 1) {
      const what = roll(5);
      if (what === 0 || window.chunks.length === 0) {
        const from = roll(4) === 0 ? 0 : roll(file.length);
        const to = Math.min(file.length, from + 1 + roll(2 * REACH));
        window.replace(from, file.subarray(from, to), to === file.length);
      } else if (what <= 2) {
        const to = Math.min(file.length, window.to + 1 + roll(roll(2) ? REACH : 300));
        window.append(file.subarray(window.to, to), to === file.length);
      } else if (what === 3 && window.from > 0) {
        const from = Math.max(0, window.from - REACH - roll(1000));
        const before = window.from;
        assert.ok(window.prepend(from, file.subarray(from, window.from)), "rows are gained");
        assert.ok(window.from < before);
      } else {
        const at = window.from + roll(Math.max(1, window.to - window.from));
        const held = window.to - window.from;
        window.trim(at, Math.min(window.to, at + 5000), budget);
        assert.ok(window.chunks.length > 0 && (window.weight <= budget || window.to - window.from <= held));
        assert.ok(window.from <= at && window.to > at, "what is read stays");
      }
      check(window, file, `seed ${seed} turn ${turn}`);
    }
  }
});

test("bytes that come one by one make the same rows as all at once", () => {
  for (let seed = 1; seed <= 6; seed += 1) {
    const roll = dice(seed * 104729);
    const file = makeLog(roll, 60_000, seed % 4 === 0);
    const slow = new LogWindow();
    let sent = 0;
    while (sent < file.length) {
      // A record may be in the middle of being written.
      sent = Math.min(file.length, sent + 1 + roll(900));
      slow.append(file.subarray(slow.to, sent), sent === file.length);
    }
    const [one, other] = [slow, whole(file)].map((window) => window.chunks.flatMap((chunk) => [...chunk.kinds].map((kind, row) => [chunk.from + chunk.starts[row], kind, chunk.joins.has(row), JSON.stringify(chunk.styles.get(row) ?? {})].join(" "))));
    assert.deepEqual(one, other, `seed ${seed}`);
  }
});

test("read upwards to the begin, rows and colours are those of the whole file", () => {
  for (let seed = 1; seed <= 6; seed += 1) {
    const roll = dice(seed * 15485863);
    const file = makeLog(roll, 400_000, false);
    const window = new LogWindow();
    const from = 200_000 + roll(100_000);
    window.replace(from, file.subarray(from, from + REACH));
    while (window.from > 0) {
      const begin = Math.max(0, window.from - REACH);
      window.prepend(begin, file.subarray(begin, window.from));
    }
    window.append(file.subarray(window.to), true);
    const rows = (each) => each.chunks.flatMap((chunk) => [...chunk.kinds].map((kind, row) => `${chunk.from + chunk.starts[row]} ${kind & 3} ${JSON.stringify(chunk.styles.get(row) ?? {})}`));
    assert.deepEqual(rows(window), rows(whole(file)), `seed ${seed}`);
  }
});

test("pieces of a line are one row until the other stream speaks or it is too long", () => {
  const read = (string, final) => {
    const bytes = bytesOf(string);
    const { starts, kinds, used } = readRows(bytes, final);
    return { used, rows: kinds.map((kind, row) => [text(payloadOf(bytes, starts[row], starts[row + 1], kind)), kind]) };
  };
  assert.deepEqual(read("o a\nO b\nO c\no d\ne x\n"), { used: 20, rows: [["a", 0], ["bcd", 0], ["x", 1]] });
  assert.deepEqual(read("O ask\ne err\no told\n").rows, [["ask", OPEN], ["err", 1], ["told", 0]]);
  assert.deepEqual(read("o a\no unfin"), { used: 4, rows: [["a", 0]] });
  assert.deepEqual(read("o a\no unfin", true), { used: 11, rows: [["a", 0], ["unfin", 0]] });
  assert.deepEqual(read("garbage\n\no \ni note\n").rows, [["garbage", 3], ["", 3], ["", 0], ["note", 2]]);
  const long = read(`O ${"x".repeat(65536)}\nO ${"y".repeat(65536)}\no z\n`).rows;
  assert.deepEqual(long.map(([payload, kind]) => [payload[0], payload.length, kind]), [["x", 65536, OPEN], ["y", 65536, OPEN], ["z", 1, 0]]);
});

test("the first row of a range is never within a line that is seen to go on", () => {
  const first = (string) => string.slice(firstRow(bytesOf(string)));
  assert.equal(first("rest\no a\no b\n"), "o b\n");
  assert.equal(first("rest\nO a\no b\no c\n"), "o c\n");
  assert.equal(first("rest\nO a\nO b\n"), "O a\nO b\n");
  assert.equal(firstRow(bytesOf("no line end")), -1);
});

test("the budget holds for a file that is read from end to end", () => {
  const roll = dice(5);
  const file = makeLog(roll, 2_500_000, false);
  const window = new LogWindow();
  while (window.to < file.length) {
    const to = Math.min(file.length, window.to + REACH);
    window.append(file.subarray(window.to, to), to === file.length);
    window.trim(window.to - 1000, window.to);
    assert.ok(window.weight <= BUDGET);
  }
  check(window, file, "end");
});
