// Writing a definition: the document with what is wrong with it as it is typed, saved as a draft.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { notJson } from "../lib/jsonplace.js";
import { JsonEdit } from "../ui/jsonedit.js";

const SETTLE_MS = 500;

/**
 * What the daemon says of a document, asked when nobody has typed for a moment.
 * @param {string} text @param {string} path of the check
 */
function useFindings(text, path) {
  const [said, setSaid] = useState(/** @type {{of: string, findings: any[] | undefined}} */ ({ of: "", findings: undefined }));
  const latest = useRef(text);
  latest.current = text;
  useEffect(() => {
    if (notJson(text)) return undefined;
    const timer = setTimeout(async () => {
      try {
        const answer = await act("POST", path, { body: JSON.parse(text) });
        if (latest.current === text) setSaid({ of: text, findings: answer.findings });
      } catch (problem) {
        if (latest.current === text) setSaid({ of: text, findings: [{ pointer: "", message: problem.detail ?? String(problem) }] });
      }
    }, SETTLE_MS);
    return () => clearTimeout(timer);
  }, [text, path]);
  return { findings: said.findings, fresh: said.of === text };
}

/** @param {{id: string, text: string, set: (text: string) => void, check: string}} props `check`: the path that validates */
export function DocumentEdit({ id, text, set, check }) {
  const { findings, fresh } = useFindings(text, check);
  return html`<${JsonEdit} id=${id} label="The definition as JSON" text=${text} set=${set} findings=${findings} checking=${!fresh} good="Nothing is wrong: it can be published." />`;
}
