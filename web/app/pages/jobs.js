// Jobs and schedules.
import { html } from "../lib/dom.js";
import { PageHead } from "../ui/parts.js";

export const Jobs = () => html`<${PageHead} title="Jobs and schedules" />`;
