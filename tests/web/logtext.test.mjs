// What is shown of a row, what is marked in it, and what is found in bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "../../web/app/lib/ansi.js";
import { findAll, mark, readRow, styleAfter } from "../../web/app/lib/logtext.js";

const encode = (text) => new TextEncoder().encode(text);
const shown = (text, options) => readRow(typeof text === "string" ? encode(text) : text, {}, options);
const plain = ({ parts }) => parts.map((part) => part.text).join("");

test("a carriage return shows the last state, in the colours that hold there", () => {
  assert.equal(plain(shown("10 %\r20 %\r30 %")), "30 %");
  assert.equal(plain(shown("10 %\r20 %\r\r")), "20 %");
  assert.equal(plain(shown("a line of Windows\r")), "a line of Windows");
  assert.equal(plain(shown("\r")), "");
  assert.deepEqual(shown("\x1b[31mold\rnew").parts, [{ text: "new", className: "a-fg-red" }]);
});

test("what is not UTF-8 is a replacement character, and nothing else moves", () => {
  assert.equal(plain(shown(Uint8Array.from([97, 255, 98, 195, 99]))), "a\ufffdb\ufffdc");
  assert.equal(plain(shown("\ufeffmark")), "\ufeffmark");
});

test("a letter that is parted by two rows is shown once, with the first", () => {
  const bytes = encode("x\u6f22y");
  for (let cut = 1; cut < bytes.length; cut += 1) {
    const [one, other] = [bytes.subarray(0, cut), bytes.subarray(cut)];
    assert.equal(plain(shown(one, { after: other.subarray(0, 3) })) + plain(shown(other, { joins: true })), "x\u6f22y", `cut at ${cut}`);
  }
});

test("a long row is cut between letters and says how much is left", () => {
  const bytes = encode("\u6f22".repeat(100));
  for (let cut = 1; cut < 12; cut += 1) {
    const { parts, more } = shown(bytes, { cut });
    assert.equal(more, 300 - Math.floor(cut / 3) * 3);
    assert.ok(!plain({ parts }).includes("\ufffd"));
  }
  assert.equal(shown(bytes, { cut: 300 }).more, 0);
});

test("a look goes on behind its line", () => {
  assert.deepEqual(styleAfter(encode("\x1b[1;31mred\rstill"), {}), { bold: true, fg: "red" });
  assert.equal(parse("x", { fg: "red" }).parts[0].className, "a-fg-red");
});

test("many colours become the nearest of sixteen", () => {
  const named = (codes) => parse(`\x1b[${codes}mx`).parts[0].className;
  assert.equal(named("38;5;9"), "a-fg-bright-red");
  assert.equal(named("38;5;208"), "a-fg-bright-yellow");
  assert.equal(named("38;5;240"), "a-fg-bright-black");
  assert.equal(named("48;2;0;0;170"), "a-bg-blue");
  assert.equal(named("38;2;250;250;250;1"), "a-bold a-fg-bright-white");
  for (let index = 0; index < 16; index += 1) {
    const bright = index > 7 ? "bright-" : "";
    assert.equal(named(`38;5;${index}`), `a-fg-${bright}${["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"][index % 8]}`);
  }
});

test("matches are marked across looks, and one of them is the present one", () => {
  const parts = [{ text: "ab", className: "x" }, { text: "cab", className: "" }, { text: "C", className: "y" }];
  assert.deepEqual(mark(parts, "abc", { fold: true, at: 1 }), [
    { text: "ab", className: "x", mark: "one" },
    { text: "c", className: "", mark: "one" },
    { text: "ab", className: "", mark: "this" },
    { text: "C", className: "y", mark: "this" },
  ]);
  assert.deepEqual(mark(parts, "abc").filter((part) => part.mark).map((part) => part.text), ["ab", "c"]);
  assert.equal(mark(parts, ""), parts);
  for (const word of ["a", "bc", "cab", "nothing", "abcabC"]) assert.equal(mark(parts, word).map((part) => part.text).join(""), "abcabC");
});

test("bytes are found as a plain search finds them", () => {
  let state = 7;
  const roll = (most) => (state = (state * 1103515245 + 12345) & 0x7fffffff) % most;
  for (let turn = 0; turn < 500; turn += 1) {
    const text = Array.from({ length: roll(60) }, () => "aAbB\n"[roll(5)]).join("");
    const word = Array.from({ length: 1 + roll(3) }, () => "aAbB"[roll(4)]).join("");
    for (const folded of [false, true]) {
      const [whole, wanted] = folded ? [text.toLowerCase(), word.toLowerCase()] : [text, word];
      const expected = [];
      for (let at = whole.indexOf(wanted); at >= 0; at = whole.indexOf(wanted, at + wanted.length)) expected.push(at);
      assert.deepEqual(findAll(encode(text), encode(word), folded), expected, `${JSON.stringify(text)} ${word} ${folded}`);
    }
  }
});
