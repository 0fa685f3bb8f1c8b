// Settings.
import { html } from "../lib/dom.js";
import { PageHead } from "../ui/parts.js";

export const Settings = () => html`<${PageHead} title="Settings" />`;
