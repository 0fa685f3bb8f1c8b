// What can be done with a definition, each as a wish that says what it will do before it is done.
import { html } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { go, to } from "../lib/route.js";
import { inLine } from "../lib/workflow.js";

const pathOf = (workflow, verb) => `/api/workflows/${encodeURIComponent(workflow.family_slug)}${verb}`;
const guard = (workflow) => `"${workflow.record_version}"`;

/** The same wish about the definition as it is now, when somebody else was faster. */
const moved = (workflow, make) => async (problem) => {
  if (problem.status !== 412) return undefined;
  const { body } = await get(pathOf(workflow, ""));
  return make(body, "It has changed since you looked. Nothing was done yet.");
};
const Moved = ({ text }) => text && html`<p class="bad"><strong>${text}</strong></p>`;

/** @param {any} workflow @param {string} [note] @returns {import("../ui/dialog.js").Wish} */
export const publish = (workflow, note) => ({
  title: `Publish ${workflow.family_slug}`,
  will: html`<${Moved} text=${note} /><p>Freezes the draft of <strong>${workflow.family_slug}</strong> as version ${(workflow.newest_version ?? 0) + 1}. New runs use it; runs that have begun keep theirs. If the content was published before, that version is named and nothing changes.</p>`,
  verb: "Publish",
  request: () => ({ method: "POST", path: pathOf(workflow, ":publish"), ifMatch: guard(workflow) }),
  cli: () => ["workflow", "publish", workflow.family_slug],
  done: (answer) => (answer.already ? `This content is version ${answer.version} already` : [`Version ${answer.version} of ${workflow.family_slug} is published`, { link: { href: to.workflow(workflow.family_slug, "start"), text: "Start a run" } }]),
  refused: moved(workflow, publish),
});

/** @param {any} workflow @param {number} version @returns {import("../ui/dialog.js").Wish} */
export const deprecate = (workflow, version) => ({
  title: `Deprecate version ${version}`,
  will: html`<p>No new run of version ${version} of <strong>${workflow.family_slug}</strong> begins. Runs that have begun go on. This cannot be taken back; publishing again makes a new version.</p>`,
  verb: "Deprecate",
  danger: true,
  request: () => ({ method: "POST", path: pathOf(workflow, ":deprecate"), body: { version }, ifMatch: guard(workflow) }),
  done: () => `Version ${version} of ${workflow.family_slug} is deprecated`,
});

/** @param {any} workflow @param {any} document @returns {import("../ui/dialog.js").Wish} */
export const saveDraft = (workflow, document, note = "") => ({
  title: "Save the draft",
  will: html`<${Moved} text=${note} /><p>Puts this document in the place of the draft of <strong>${workflow.family_slug}</strong>. Published versions and runs stay as they are.</p>`,
  verb: "Save the draft",
  request: () => ({ method: "PUT", path: pathOf(workflow, ""), body: document, ifMatch: guard(workflow) }),
  done: (answer) => (answer.valid ? "The draft is saved; it can be published" : `The draft is saved, with ${answer.findings.length} things to mend`),
  refused: moved(workflow, (now, text) => saveDraft(now, document, `${text} Saving puts your document in the place of the newer one.`)),
});

/**
 * Starts a run with an input.
 * @param {any} workflow @param {{input: any, version?: number}} what @returns {import("../ui/dialog.js").Wish}
 */
export const startRun = (workflow, { input, version }) => ({
  title: `Start ${workflow.family_slug}`,
  will: html`<p>Starts a run of <strong>${workflow.title || workflow.family_slug}</strong>, version ${version ?? workflow.current_version}, now${input === undefined ? ", without input" : ", with this input:"}</p>${input !== undefined && html`<code class="tiny">${inLine(input)}</code>`}`,
  verb: "Start the run",
  request: () => ({ method: "POST", path: pathOf(workflow, "/runs"), body: { ...(input === undefined ? {} : { input }), ...(version ? { version } : {}) } }),
  cli: () => ["run", "start", workflow.family_slug, ...(version ? ["--version", String(version)] : []), ...flags(input)],
  done: (answer) => {
    go(to.run(answer.id, "graph"));
    return `${workflow.family_slug} starts`;
  },
});

/** An input as flags, when each of its values can be one. @param {any} input */
function flags(input) {
  if (input === undefined) return [];
  const pairs = input && typeof input === "object" && !Array.isArray(input) ? Object.entries(input) : undefined;
  if (!pairs) return ["--input", "input.json"];
  return pairs.flatMap(([name, value]) => ["-p", `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`]);
}
