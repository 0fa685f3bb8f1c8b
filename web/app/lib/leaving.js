// Where the list of runs was left for one of them, to come back to it as it was.

export const left = { address: "", scroll: 0, run: "" };

/** The list is left for a run. @param {string} href */
export function leaveFor(href) {
  left.scroll = scrollY;
  left.run = /^\/ui\/runs\/([^?]+)/.exec(href)?.[1] ?? "";
}
