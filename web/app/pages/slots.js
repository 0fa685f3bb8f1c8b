// Resource pools.
import { html } from "../lib/dom.js";
import { PageHead } from "../ui/parts.js";

export const Slots = ({ name }) => html`<${PageHead} title="Resource pools" />`;
