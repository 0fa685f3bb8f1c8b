// A picture of a graph as the daemon lays it out: curves of edges, ways of the keyboard, the part that is seen. Pure.

/**
 * @typedef {{ref: string, title: string, type: string, x: number, y: number, width: number, height: number, parent?: string | null,
 *   state?: string | null, branches?: {total: number, succeeded: number, failed: number, running: number} | null, folded?: number}} GraphNode
 * @typedef {{source_ref: string, target_ref: string, type: string, points: [number, number][], taken?: boolean | null}} GraphEdge
 * @typedef {{nodes: GraphNode[], edges: GraphEdge[], width: number, height: number}} Graph
 * @typedef {{x: number, y: number, zoom: number}} View where the top left corner of the picture is, in pixels of the box
 */

export const ZOOM_MIN = 0.15;
export const ZOOM_MAX = 2.5;
/** A picture is not made smaller than this to be seen whole: one could not read it. */
export const READABLE = 0.8;
/** Around the picture. */
const MARGIN = 24;

const EDGES = {
  EDGE_TYPE_SUCCESS: { kind: "success", word: "", told: "succeeded" },
  EDGE_TYPE_FAILURE: { kind: "failure", word: "on failure", told: "failed" },
  EDGE_TYPE_ALWAYS: { kind: "always", word: "always", told: "ended, however" },
  EDGE_TYPE_CONDITION: { kind: "condition", word: "if", told: "met a condition" },
};
/** The look, the label and the words of an edge's type. @param {string} type */
export const edgeKind = (type) => EDGES[type] ?? EDGES.EDGE_TYPE_SUCCESS;

/** `STEP_TYPE_DATAFLOW` as people say it. @param {string | null | undefined} type */
export const typeWord = (type) => (type ?? "").replace(/^STEP_TYPE_/, "").replaceAll("_", " ").toLowerCase();

/** @param {[number, number][]} points straight where they are level, else an S between two columns */
export function curve(points) {
  let path = "";
  points.forEach(([x, y], at) => {
    if (at === 0) {
      path = `M${x} ${y}`;
      return;
    }
    const [beforeX, beforeY] = points[at - 1];
    const middle = (beforeX + x) / 2;
    path += beforeY === y ? `H${x}` : `C${middle} ${beforeY} ${middle} ${y} ${x} ${y}`;
  });
  return path;
}

/** Where an edge's label stands: in the middle of its first slope, else of its first piece. @param {[number, number][]} points */
export function labelAt(points) {
  const slope = points.findIndex(([, y], at) => at > 0 && y !== points[at - 1][1]);
  const at = slope > 0 ? slope : 1;
  const [one, other] = [points[at - 1], points[at]];
  return { x: (one[0] + other[0]) / 2, y: (one[1] + other[1]) / 2 };
}

/**
 * The step that an arrow key leads to: along an edge to the right and left, to the nearest of the column up and down.
 * @param {Graph} graph @param {string} from @param {string} key @returns {string | undefined}
 */
export function stepBy(graph, from, key) {
  const at = graph.nodes.find((node) => node.ref === from);
  if (!at) return undefined;
  const middle = (node) => node.y + node.height / 2;
  const nearest = (nodes) => nodes.reduce((best, node) => (!best || Math.abs(middle(node) - middle(at)) < Math.abs(middle(best) - middle(at)) ? node : best), undefined)?.ref;
  const named = (refs) => graph.nodes.filter((node) => refs.includes(node.ref));
  if (key === "ArrowRight") {
    const next = nearest(named(graph.edges.filter((edge) => edge.source_ref === from).map((edge) => edge.target_ref)));
    // Into a body and out of it there are no edges.
    return next ?? firstOf(graph.nodes.filter((node) => node.parent === from));
  }
  if (key === "ArrowLeft") {
    const before = nearest(named(graph.edges.filter((edge) => edge.target_ref === from).map((edge) => edge.source_ref)));
    return before ?? at.parent ?? undefined;
  }
  const sign = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!sign) return undefined;
  const beside = graph.nodes.filter((node) => (node.parent ?? null) === (at.parent ?? null) && node.x < at.x + at.width && at.x < node.x + node.width && sign * (node.y - at.y) > 0);
  return nearest(beside) ?? (key === "ArrowDown" ? firstOf(graph.nodes.filter((node) => node.parent === from)) : at.parent ?? undefined);
}

const firstOf = (nodes) => nodes.reduce((best, node) => (!best || node.x < best.x || (node.x === best.x && node.y < best.y) ? node : best), undefined)?.ref;

/** @param {number} zoom */
const clampZoom = (zoom) => Math.min(Math.max(zoom, ZOOM_MIN), ZOOM_MAX);

/**
 * All of it in the box, not larger than it is.
 * @param {{width: number, height: number}} graph @param {{width: number, height: number}} box @returns {View}
 */
export function fit(graph, box) {
  const zoom = clampZoom(Math.min(1, (box.width - 2 * MARGIN) / Math.max(graph.width, 1), (box.height - 2 * MARGIN) / Math.max(graph.height, 1)));
  return { zoom, x: (box.width - graph.width * zoom) / 2, y: (box.height - graph.height * zoom) / 2 };
}

/**
 * What is seen first: all, if that can be read; else what matters now, near the left.
 * @param {Graph} graph @param {{width: number, height: number}} box @param {string} [about] @returns {View}
 */
export function firstView(graph, box, about) {
  const whole = fit(graph, box);
  if (whole.zoom >= READABLE) return whole;
  const zoom = Math.max(READABLE, Math.min(1, (box.height - 2 * MARGIN) / Math.max(graph.height, 1)));
  const start = { zoom, x: MARGIN, y: graph.height * zoom + 2 * MARGIN <= box.height ? (box.height - graph.height * zoom) / 2 : MARGIN };
  const node = graph.nodes.find((each) => each.ref === (about ?? interesting(graph)));
  return node ? shown(start, node, box, graph) : start;
}

/** How high the box is that shows a picture in this width. @param {{width: number, height: number}} graph @param {number} width */
export function roomFor(graph, width) {
  const zoom = Math.max(READABLE, Math.min(1, (width - 2 * MARGIN) / Math.max(graph.width, 1)));
  return Math.ceil(graph.height * (width > 0 ? zoom : 1)) + 2 * MARGIN + 8;
}

/** The step that people look for: one that failed, runs or waits; the first of them. @param {Graph} graph */
export function interesting(graph) {
  for (const states of [["failed", "timed_out"], ["running", "retrying"], ["waiting", "queued", "ready"]]) {
    const found = graph.nodes.find((node) => states.includes(node.state ?? ""));
    if (found) return found.ref;
  }
  return undefined;
}

/**
 * The view moved so far that a node is in the box.
 * @param {View} view @param {GraphNode} node @param {{width: number, height: number}} box @param {{width: number, height: number}} graph @returns {View}
 */
export function shown(view, node, box, graph) {
  const inside = (offset, from, size, room) => {
    const start = offset + from * view.zoom;
    const end = start + size * view.zoom;
    if (start < MARGIN) return offset + MARGIN - start;
    if (end > room - MARGIN) return offset - Math.min(end - (room - MARGIN), start - MARGIN);
    return offset;
  };
  return held({ zoom: view.zoom, x: inside(view.x, node.x, node.width, box.width), y: inside(view.y, node.y, node.height, box.height) }, box, graph);
}

/**
 * A view with something of the picture in the box.
 * @param {View} view @param {{width: number, height: number}} box @param {{width: number, height: number}} graph @returns {View}
 */
export function held(view, box, graph) {
  const within = (offset, size, room) => {
    const most = Math.min(room / 2, MARGIN * 4);
    return Math.min(Math.max(offset, most - size * view.zoom), room - most);
  };
  return { zoom: view.zoom, x: within(view.x, graph.width, box.width), y: within(view.y, graph.height, box.height) };
}

/**
 * Larger or smaller, with the point of the box that is pointed at staying where it is.
 * @param {View} view @param {number} by @param {{x: number, y: number}} about @returns {View}
 */
export function zoomed(view, by, about) {
  const zoom = clampZoom(view.zoom * by);
  const part = zoom / view.zoom;
  return { zoom, x: about.x - (about.x - view.x) * part, y: about.y - (about.y - view.y) * part };
}

/**
 * The steps as rows of a table, in the order in which they are read, with what each follows.
 * @param {Graph} graph
 */
export function rowsOf(graph) {
  const titles = new Map(graph.nodes.map((node) => [node.ref, node.title || node.ref]));
  const rows = graph.nodes.map((node) => ({
    ...node,
    depth: depthOf(graph, node),
    after: graph.edges.filter((edge) => edge.target_ref === node.ref).map((edge) => ({ ref: edge.source_ref, title: titles.get(edge.source_ref) ?? edge.source_ref, told: edgeKind(edge.type).told, taken: edge.taken ?? undefined })),
  }));
  const under = (parent) => rows.filter((row) => (row.parent ?? undefined) === parent).sort((one, other) => one.x - other.x || one.y - other.y).flatMap((row) => [row, ...under(row.ref)]);
  return under(undefined);
}

const depthOf = (graph, node) => {
  let depth = 0;
  for (let at = node; at?.parent && depth < 9; at = graph.nodes.find((each) => each.ref === at.parent)) depth += 1;
  return depth;
};

/** `12 of 40, 2 failed`. @param {{total: number, succeeded: number, failed: number, running: number} | null | undefined} branches */
export function branchWords(branches) {
  if (!branches) return "";
  const { total, succeeded, failed, running } = branches;
  return [`${succeeded} of ${total}`, running > 0 && `${running} running`, failed > 0 && `${failed} failed`].filter(Boolean).join(", ");
}

/** So many boxes are drawn whether they are seen or not. */
const ALL_MAX = 250;
/** What is drawn of a large picture grows and shrinks by this, so that moving it a little draws nothing anew. */
const CELL = 600;
/** Smaller than this nobody reads what stands in a box. */
const BARE_ZOOM = 0.35;

/**
 * What of a large graph is drawn: the part that is seen and some around it, as a text that changes when it must be drawn anew.
 * @param {{nodes: any[]}} graph @param {{x: number, y: number, zoom: number}} view @param {{width: number, height: number}} size
 */
export function windowKey(graph, view, size) {
  if (graph.nodes.length <= ALL_MAX) return "";
  const cell = (at) => Math.floor(at / CELL);
  const [left, top] = [-view.x / view.zoom, -view.y / view.zoom];
  const [right, bottom] = [left + size.width / view.zoom, top + size.height / view.zoom];
  return [cell(left), cell(top), cell(right), cell(bottom), view.zoom < BARE_ZOOM ? 1 : 0].join(" ");
}

/**
 * What that text says; `undefined`: everything is drawn, with all its words.
 * @param {string} key @returns {{left: number, top: number, right: number, bottom: number, isBare: boolean} | undefined}
 */
export function windowOf(key) {
  if (!key) return undefined;
  const [left, top, right, bottom, bare] = key.split(" ").map(Number);
  const half = CELL / 2;
  return { left: left * CELL - half, top: top * CELL - half, right: (right + 1) * CELL + half, bottom: (bottom + 1) * CELL + half, isBare: bare === 1 };
}

/** @param {ReturnType<typeof windowOf>} part @param {{x: number, y: number, width: number, height: number}} node */
export const seesNode = (part, node) => !part || (node.x < part.right && node.y < part.bottom && node.x + node.width > part.left && node.y + node.height > part.top);

/** @param {ReturnType<typeof windowOf>} part @param {number[][]} points of an edge, each further right */
export function seesEdge(part, points) {
  if (!part) return true;
  if (points[0][0] > part.right || points[points.length - 1][0] < part.left) return false;
  return points.some(([, y]) => y < part.bottom) && points.some(([, y]) => y > part.top);
}
