// API.
import { html } from "../lib/dom.js";
import { PageHead } from "../ui/parts.js";

export const Api = () => html`<${PageHead} title="API" />`;
