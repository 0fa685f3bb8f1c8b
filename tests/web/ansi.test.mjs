import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../../web/app/lib/ansi.js";

const looks = (line, before) => parse(line, before).parts.map(({ text, className }) => [text, className]);
const words = (line) => parse(line).parts.map(({ text }) => text).join("");

test("a plain line is one part", () => {
  assert.deepEqual(looks("plain <b>text</b> & more"), [["plain <b>text</b> & more", ""]]);
  assert.deepEqual(looks(""), []);
});

test("colours, weights and their ends", () => {
  assert.deepEqual(looks("a\x1b[31mb\x1b[1mc\x1b[39md\x1b[0me"), [["a", ""], ["b", "a-fg-red"], ["c", "a-bold a-fg-red"], ["d", "a-bold"], ["e", ""]]);
  assert.deepEqual(looks("\x1b[42;30m LIVE \x1b[m."), [[" LIVE ", "a-fg-black a-bg-green"], [".", ""]]);
  assert.deepEqual(looks("\x1b[95mx\x1b[103my"), [["x", "a-fg-bright-magenta"], ["y", "a-fg-bright-magenta a-bg-bright-yellow"]]);
  assert.deepEqual(looks("\x1b[1;2mx\x1b[22my"), [["x", "a-bold a-dim"], ["y", ""]]);
});

test("a look goes on in the next line until it ends", () => {
  const { after } = parse("\x1b[31mred");
  assert.deepEqual(looks("still", after), [["still", "a-fg-red"]]);
  assert.deepEqual(looks("\x1b[0mplain", after), [["plain", ""]]);
});

test("numbers of a colour are never taken for codes", () => {
  // 1, 4 and 7 as parts of colours would be bold, underlined and inverse.
  for (const codes of ["38;5;1", "38;2;1;4;7", "48;2;7;7;7", "58;5;1", "58;2;1;4;7", "38:5:1", "38:2:1:4:7", "38:2::1:4:7", "58:2::1:4:7"]) {
    assert.doesNotMatch(looks(`\x1b[${codes}mx`)[0][1], /bold|underline|inverse|italic|dim/, codes);
  }
  assert.match(looks("\x1b[38:2::255:0:0mx")[0][1], /a-fg-(bright-)?red/);
  assert.equal(looks("\x1b[38:2::255:0:0mx")[0][1], looks("\x1b[38;2;255;0;0mx")[0][1]);
  assert.match(looks("\x1b[38;5;196;1mx")[0][1], /a-bold/);
});

test("kinds of underline are underlines, and not italics", () => {
  assert.deepEqual(looks("\x1b[4:3mx\x1b[4:0my"), [["x", "a-underline"], ["y", ""]]);
});

test("what moves, clears or names the window is left out whole", () => {
  assert.equal(words("\x1b[2K\x1b[1;1Hx\x1b[?25ly\x1b[>4;2mz"), "xyz");
  assert.equal(words("\x1b]0;title\x07x"), "x");
  assert.equal(words("\x1b]8;;file:///etc\x1b\\link\x1b]8;;\x1b\\"), "link");
  assert.equal(words("\x1b(Bx\x1b=y\x1b7z\x1bc"), "xyz");
});

test("a sequence that the line cuts off shows no trash that runs", () => {
  for (const cut of ["\x1b", "\x1b[", "\x1b[3", "\x1b[31;", "\x1b]0;title"]) assert.doesNotMatch(words(`a${cut}`), /\x1b/, JSON.stringify(cut));
});

test("control characters are left out, tabs stay", () => {
  assert.equal(words("a\x00b\x08c\x7fd\te"), "abcd\te");
});

test("a carriage return begins the line anew", () => {
  assert.equal(words("10 %\r60 %\r100 %"), "100 %");
  assert.equal(words("kept\r"), "kept");
  assert.equal(words("kept\r\r"), "kept");
});

test("a long line of sequences is read in one pass", () => {
  const line = "\x1b[31mx\x1b[0m".repeat(20_000);
  assert.equal(parse(line).parts.length, 20_000);
});
