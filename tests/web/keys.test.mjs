import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

/** As much of a document as keys look at. */
class Element {
  constructor(selector, props = {}) {
    this.selector = selector;
    Object.assign(this, props);
  }
  matches(wanted) {
    return wanted.split(", ").some((each) => each === this.selector);
  }
  closest(wanted) {
    return this.matches(wanted) ? this : null;
  }
}
class HTMLElement extends Element {}
let dialog = null;
Object.assign(globalThis, { Element, HTMLElement, document: { querySelector: () => dialog, addEventListener() {} } });
const { bind, bound, isTyping, onKey } = await import("../../web/app/lib/keys.js");

let did = [];
let clock = 0;
const press = (key, props = {}) => {
  clock += props.after ?? 100;
  let prevented = false;
  onKey(/** @type {any} */ ({ key, target: new HTMLElement("body"), timeStamp: clock, ctrlKey: false, metaKey: false, altKey: false, preventDefault() { prevented = true; }, ...props }));
  return prevented;
};
bind("g h", "Home", () => did.push("home"));
bind("p", "Pause", () => did.push("pause"));
bind("Ctrl-K", "Palette", () => did.push("palette"));
bind("?", "Help", () => did.push("help"));
bind("Enter", "Open", () => did.push("open"));

beforeEach(() => {
  did = [];
  dialog = null;
  press("Escape", { after: 10_000 });
});

test("a key, a sequence, and a sequence that took too long", () => {
  assert.ok(press("p"));
  press("g");
  press("h");
  press("g");
  press("h", { after: 5000 });
  press("g");
  press("p");
  assert.deepEqual(did, ["pause", "home", "pause"]);
});

test("keys that nobody bound stay the browser's", () => {
  assert.equal(press("q"), false);
  assert.equal(press("r", { ctrlKey: true }), false);
  assert.equal(press("p", { ctrlKey: true }), false);
  assert.equal(press("p", { altKey: true }), false);
  assert.deepEqual(did, []);
});

test("none fires in a text field, but the palette", () => {
  for (const field of ["textarea, select", "input"]) {
    const target = new HTMLElement(field);
    target.matches = (wanted) => wanted === field;
    press("p", { target });
    press("?", { target });
  }
  press("p", { target: new HTMLElement("div", { isContentEditable: true }) });
  assert.deepEqual(did, []);
  press("k", { ctrlKey: true, target: new HTMLElement("input") });
  press("k", { metaKey: true });
  assert.deepEqual(did, ["palette", "palette"]);
});

test("a box to tick is no text field", () => {
  const box = new HTMLElement("input");
  box.matches = (wanted) => wanted === "input" || wanted.includes("checkbox");
  assert.equal(isTyping(/** @type {any} */ (box)), false);
  assert.equal(isTyping(null), false);
});

test("a dialog takes keys for itself", () => {
  dialog = {};
  press("p");
  assert.deepEqual(did, []);
});

test("an event that somebody took, or that a script of the keyboard composes, is left alone", () => {
  press("p", { defaultPrevented: true });
  press("p", { isComposing: true });
  assert.deepEqual(did, []);
});

test("Enter on a link or a button is the link's", () => {
  press("Enter", { target: new HTMLElement("button") });
  assert.deepEqual(did, []);
  press("Enter");
  assert.deepEqual(did, ["open"]);
});

test("a binding hides the one before it until it goes", () => {
  const end = bind("p", "Another", () => did.push("another"));
  press("p");
  end();
  press("p");
  end();
  press("p");
  assert.deepEqual(did, ["another", "pause", "pause"]);
  assert.equal(bound().filter(({ keys }) => keys === "p").length, 1);
});
