// A sentence of the daemon; the instants in it are shown as all others are.
import { html } from "../lib/dom.js";
import { cutInstants } from "../lib/told.js";
import { Time } from "./time.js";

/** @param {{text: string | null | undefined, ofJob?: string}} props */
export const Told = ({ text, ofJob }) =>
  text ? html`<span>${cutInstants(text).map((part) => (part.at === undefined ? part.text : html`<${Time} at=${part.at} ofJob=${ofJob} />`))}</span>` : null;
