import assert from "node:assert/strict";
import { test } from "node:test";
import { branchWords, curve, edgeKind, firstView, fit, held, interesting, labelAt, READABLE, rowsOf, seesEdge, seesNode, shown, stepBy, typeWord, windowKey, windowOf, ZOOM_MAX, zoomed } from "../../web/app/lib/graph.js";

const node = (ref, x, y, more = {}) => ({ ref, title: ref.toUpperCase(), type: "STEP_TYPE_TASK", x, y, width: 184, height: 48, ...more });
const edge = (from, to, type = "EDGE_TYPE_SUCCESS") => ({ source_ref: from, target_ref: to, type, points: /** @type {[number, number][]} */ ([[0, 0], [10, 0]]) });
const GRAPH = {
  nodes: [
    node("a", 0, 72),
    node("b", 240, 0),
    node("c", 240, 72, { height: 200, width: 300, state: "running" }),
    node("c1", 260, 120, { parent: "c" }),
    node("d", 240, 300, { state: "failed" }),
    node("e", 600, 72),
  ],
  edges: [edge("a", "b"), edge("a", "c"), edge("a", "d", "EDGE_TYPE_FAILURE"), edge("c", "e"), edge("d", "e", "EDGE_TYPE_ALWAYS")],
  width: 784,
  height: 348,
};

test("a line is straight where it is level, and an S between columns", () => {
  assert.equal(curve([[0, 10], [50, 10]]), "M0 10H50");
  assert.equal(curve([[0, 10], [20, 10], [60, 50], [90, 50]]), "M0 10H20C40 10 40 50 60 50H90");
  assert.deepEqual(labelAt([[0, 10], [20, 10], [60, 50]]), { x: 40, y: 30 });
  assert.deepEqual(labelAt([[0, 10], [50, 10]]), { x: 25, y: 10 });
});

test("arrow keys lead along edges, within columns, into bodies and out", () => {
  assert.equal(stepBy(GRAPH, "a", "ArrowRight"), "b");
  assert.equal(stepBy(GRAPH, "e", "ArrowLeft"), "c");
  assert.equal(stepBy(GRAPH, "b", "ArrowDown"), "c");
  assert.equal(stepBy(GRAPH, "d", "ArrowUp"), "c");
  assert.equal(stepBy(GRAPH, "d", "ArrowDown"), undefined);
  assert.equal(stepBy(GRAPH, "c1", "ArrowLeft"), "c", "out of a body");
  assert.equal(stepBy(GRAPH, "b", "ArrowRight"), undefined);
  assert.equal(stepBy(GRAPH, "gone", "ArrowUp"), undefined);
  assert.equal(stepBy({ ...GRAPH, edges: [] }, "c", "ArrowRight"), "c1", "into a body");
});

test("what fits is shown whole and never larger than it is", () => {
  const whole = fit(GRAPH, { width: 1200, height: 500 });
  assert.deepEqual(whole, { zoom: 1, x: 208, y: 76 });
  const small = fit(GRAPH, { width: 440, height: 500 });
  assert.equal(small.zoom, 0.5);
  assert.equal(small.x, 24);
});

test("what does not fit begins at what matters", () => {
  const box = { width: 360, height: 400 };
  const view = firstView(GRAPH, box);
  assert.ok(view.zoom >= READABLE);
  assert.equal(interesting(GRAPH), "d");
  const failed = GRAPH.nodes[4];
  const left = view.x + failed.x * view.zoom;
  assert.ok(left >= 0 && left + failed.width * view.zoom <= box.width, "the failed step is in sight");
  assert.equal(firstView({ ...GRAPH, nodes: [] }, box).x, 24);
});

test("a view moves no further than it must, and never to where nothing is", () => {
  const box = { width: 400, height: 300 };
  const view = { zoom: 1, x: 0, y: 0 };
  assert.deepEqual(shown(view, node("x", 100, 100), box, GRAPH), view);
  assert.equal(shown(view, node("x", 500, 100), box, GRAPH).x, 400 - 24 - 684);
  const away = held({ zoom: 1, x: -9000, y: 9000 }, box, GRAPH);
  assert.ok(away.x + GRAPH.width > 0 && away.y < box.height);
});

test("zooming keeps what is pointed at", () => {
  const about = { x: 100, y: 50 };
  const view = zoomed({ zoom: 1, x: 20, y: 10 }, 2, about);
  assert.deepEqual(view, { zoom: 2, x: -60, y: -30 });
  assert.equal(zoomed(view, 100, about).zoom, ZOOM_MAX);
});

test("the table has bodies below their scatters and says what each step follows", () => {
  const rows = rowsOf(GRAPH);
  assert.deepEqual(rows.map((row) => [row.ref, row.depth]), [["a", 0], ["b", 0], ["c", 0], ["c1", 1], ["d", 0], ["e", 0]]);
  assert.deepEqual(rows[5].after.map(({ title, told }) => `${title} ${told}`), ["C succeeded", "D ended, however"]);
});

test("types and branches in words", () => {
  assert.equal(typeWord("STEP_TYPE_EVENT_SET"), "event set");
  assert.equal(edgeKind("EDGE_TYPE_FAILURE").kind, "failure");
  assert.equal(edgeKind("something new").kind, "success");
  assert.equal(branchWords({ total: 40, succeeded: 12, failed: 2, running: 3 }), "12 of 40, 3 running, 2 failed");
  assert.equal(branchWords(null), "");
});

test("of a large graph only what is near is drawn", () => {
  const nodes = (count) => ({ nodes: Array.from({ length: count }, (_, at) => ({ ref: String(at) })) });
  const size = { width: 1000, height: 500 };
  assert.equal(windowKey(nodes(250), { x: 0, y: 0, zoom: 1 }, size), "", "a small one is drawn whole");
  const key = windowKey(nodes(251), { x: 0, y: 0, zoom: 1 }, size);
  assert.equal(key, windowKey(nodes(251), { x: -30, y: -40, zoom: 1 }, size), "a little way draws nothing anew");
  const part = windowOf(key);
  const node = (x, y) => ({ x, y, width: 184, height: 48 });
  assert.ok(seesNode(part, node(0, 0)) && seesNode(part, node(990, 490)) && !seesNode(part, node(5000, 0)) && !seesNode(part, node(0, 2000)));
  assert.ok(seesEdge(part, [[0, 0], [9000, 9000]]) && !seesEdge(part, [[3000, 0], [4000, 0]]) && !seesEdge(part, [[0, 4000], [900, 5000]]));
  assert.ok(seesNode(windowOf(""), node(1e6, 1e6)) && seesEdge(undefined, [[1e6, 0]]));
  assert.equal(windowOf(windowKey(nodes(251), { x: 0, y: 0, zoom: 0.2 }, size))?.isBare, true);
});
