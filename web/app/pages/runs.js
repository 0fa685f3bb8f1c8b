// Runs.
import { html } from "../lib/dom.js";
import { PageHead } from "../ui/parts.js";

export const Runs = () => html`<${PageHead} title="Runs" />`;
