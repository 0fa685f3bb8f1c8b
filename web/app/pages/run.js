// Run.
import { html } from "../lib/dom.js";
import { PageHead } from "../ui/parts.js";

export const Run = ({ id }) => html`<${PageHead} title=${id} />`;
