// Job.
import { html } from "../lib/dom.js";
import { PageHead } from "../ui/parts.js";

export const Job = ({ id }) => html`<${PageHead} title=${id} />`;
