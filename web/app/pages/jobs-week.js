// The week as a calendar.
import { html } from "../lib/dom.js";
export const Week = () => html`<div></div>`;
