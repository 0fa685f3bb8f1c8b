// What is said of bundles: their faults with places, and what differs.

/** @param {{action: string}} change */
export const mark = ({ action }) => ({ create: "+", delete: "-" })[action] ?? "~";

/** @param {any} value */
const shown = (value) => (value === null || value === undefined ? "unset" : JSON.stringify(value));

/** @param {{pointer: string, from: any, to: any}} field */
export const changeLine = ({ pointer, from, to }) => `${pointer}: ${shown(from)} → ${shown(to)}`;

/** @param {{file: string, line?: number, column?: number, code: string, detail: string}} fault */
export const faultLine = ({ file, line, column, code, detail }) => `${line ? `${file}:${line}:${column}` : file}: ${code}: ${detail}`;
