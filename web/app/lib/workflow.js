// Definitions in words: how one stands, what differs between two versions, the first one to try. Pure.

/** The document of the introduction: posted as it is, it can be published and run. */
export const HELLO_WORLD = {
  family_slug: "hello-world",
  title: "Hello World",
  input_schema: { type: "object" },
  steps: [
    { ref: "greet", type: "STEP_TYPE_DATAFLOW", title: "Build greeting", args: { operation: "project", project: { message: '"hello"' } } },
    { ref: "pause", type: "STEP_TYPE_WAIT", title: "Short delay", args: { duration: "2s" } },
  ],
  edges: [{ source_ref: "greet", target_ref: "pause", type: "EDGE_TYPE_SUCCESS" }],
};

/** JSON as people write it: what is short stands on one line. @param {any} value @param {string} [indent] @param {number} [width] @returns {string} */
export function pretty(value, indent = "", width = 100) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const flat = oneLine(value);
  if (indent.length + flat.length <= width && !/^\{"(family_slug|steps)"/.test(flat)) return flat;
  const inner = `${indent}  `;
  const rows = Array.isArray(value)
    ? value.map((each) => `${inner}${pretty(each, inner, width)}`)
    : Object.entries(value).map(([key, each]) => `${inner}${JSON.stringify(key)}: ${pretty(each, inner, width)}`);
  const [begin, end] = Array.isArray(value) ? "[]" : "{}";
  return `${begin}\n${rows.join(",\n")}\n${indent}${end}`;
}

/** @param {any} value @returns {string} */
function oneLine(value) {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${oneLine(each)}`).join(", ")}}`;
}

/** Is it a dag of the configuration, which is changed in its file only? @param {{source?: string}} workflow */
export const isOfConfiguration = (workflow) => workflow.source === "configuration";

/** How a definition stands, in a few words. @param {{newest_version: number | null, current_version: number | null, draft: boolean, source?: string}} workflow */
export function standing(workflow) {
  const { newest_version: newest, current_version: current, draft } = workflow;
  if (isOfConfiguration(workflow)) {
    if (!current) return { word: "disabled", family: "calm", text: "disabled in the configuration: no new runs" };
    return { word: `version ${current}`, family: "good", text: `version ${current}, as the configuration in force says it` };
  }
  if (!newest) return { word: "draft", family: "wait", text: "a draft: publish it to run it" };
  if (!current) return { word: "deprecated", family: "calm", text: draft ? "every version is deprecated, and there is a draft" : "every version is deprecated: no new runs" };
  return { word: `version ${current}`, family: "good", text: draft ? `version ${current} runs, and there is a newer draft` : `version ${current} runs` };
}

/** A value of a difference in a line. @param {any} value */
export const inLine = (value) => (value === null || value === undefined ? "nothing" : typeof value === "string" ? value : oneLine(value));

/** @param {any} edge */
const edgeLine = (edge) => `${edge.source_ref} → ${edge.target_ref}${edge.type && edge.type !== "EDGE_TYPE_SUCCESS" ? ` (${edge.type.replace("EDGE_TYPE_", "").toLowerCase()}${edge.condition ? `: ${edge.condition}` : ""})` : ""}`;

/**
 * A difference as lines, `+`, `-` and `~`, under heads.
 * @param {{same: boolean, steps: {added: string[], removed: string[], changed: {ref: string, fields: any[]}[]}, edges: {added: any[], removed: any[]}, fields: any[]}} diff
 * @returns {{head: string, lines: {sign: "+" | "-" | "~", text: string, fields: {pointer: string, before: any, after: any}[]}[]}[]}
 */
export function diffGroups(diff) {
  const line = (sign, text, fields = []) => ({ sign, text, fields });
  const groups = [
    { head: "Steps", lines: [...diff.steps.added.map((ref) => line("+", ref)), ...diff.steps.removed.map((ref) => line("-", ref)), ...diff.steps.changed.map(({ ref, fields }) => line("~", ref, fields))] },
    { head: "Edges", lines: [...diff.edges.added.map((edge) => line("+", edgeLine(edge))), ...diff.edges.removed.map((edge) => line("-", edgeLine(edge)))] },
    { head: "Document", lines: diff.fields.map((field) => line("~", field.pointer, [field])) },
  ];
  return groups.filter((group) => group.lines.length > 0);
}

/** `2 steps added, 1 edge removed`. @param {any} diff */
export function diffSentence(diff) {
  if (diff.same) return "Nothing differs.";
  const part = (count, one, did) => count > 0 && `${count} ${one}${count === 1 ? "" : "s"} ${did}`;
  const parts = [
    part(diff.steps.added.length, "step", "added"), part(diff.steps.removed.length, "step", "removed"), part(diff.steps.changed.length, "step", "changed"),
    part(diff.edges.added.length, "edge", "added"), part(diff.edges.removed.length, "edge", "removed"), part(diff.fields.length, "field", "changed"),
  ].filter(Boolean);
  return `${parts.join(", ")}.`;
}
