// Cancel or retry many runs: those that are selected, or all that match the filter. The daemon is asked first what that
// would do; the answer stands in the dialog, and a count that has moved since is shown anew instead of acted on.
import { html, signal, useRef } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { plural, shortId } from "../lib/format.js";
import { deedsOf, doneWords } from "../lib/runs.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { wordOf } from "../ui/state.js";
import { say } from "../ui/toast.js";

/** So many ids go into one filter. */
const PICKED_MAX = 60;
const ACTIONS = { cancel: "is cancelled", retry: "next attempt now", rerun: "starts as a new run", retry_failed: "what failed, as a new run", collapsed: "left alone" };

const KINDS = {
  cancel: { path: "/api/runs:cancel_matching", states: ["pending", "running", "paused"], title: "Cancel", verb: "Cancel them", danger: true, none: "none of them can be cancelled: they have ended" },
  retry: { path: "/api/runs:retry_matching", states: ["failed", "timed_out", "cancelled", "running"], title: "Retry", verb: "Retry them", danger: false, none: "none of them can be tried again: they run, wait or succeeded" },
};

/** @param {{preview: any, moved?: {before: number}, what: string}} props */
const Will = ({ preview, moved, what }) => html`
  ${moved && html`<p class="bad"><strong>It was ${plural(moved.before, "run")} a moment ago; now it is ${preview.count}.</strong> Nothing was done. This is what would be done now:</p>`}
  <p>${plural(preview.count, "run")} of ${what}:</p>
  <ul class="deeds">${deedsOf(preview).map((deed) => html`<li key=${deed}><strong>${deed}</strong></li>`)}</ul>
  <ul class="sample">${preview.sample.map((run) => html`<li key=${run.id}><span class="clip">${run.job}</span><code class="quiet" title=${run.id}>${shortId(run.id)}</code><span class="quiet">${wordOf(run.state === "pending" ? "waiting" : run.state)}</span><span>${ACTIONS[run.action] ?? run.action}</span></li>`)}</ul>
  ${preview.count > preview.sample.length && html`<p class="quiet">and ${plural(preview.count - preview.sample.length, "more run", "more runs")}</p>`}
  ${preview.truncated && html`<p class="bad">That is too many for one change. Narrow the filter, by since: for one.</p>`}`;

/**
 * Asks what would be done.
 * @param {{kind: "cancel" | "retry", filter: Record<string, any>, what: any, after: () => void}} all
 * @param {{before: number}} [moved]
 * @returns {Promise<import("../ui/dialog.js").Wish | undefined>}
 */
async function wishOf(all, moved) {
  const { kind, filter, what, after } = all;
  const { path, title, verb, danger, none } = KINDS[kind];
  const preview = await act("POST", path, { body: { filter, preview: true } });
  if (preview.count === 0) {
    say(`Nothing to do: ${none}.`);
    return undefined;
  }
  if (preview.collapsed === preview.count) {
    say(`Nothing to do: another run stands for ${preview.count === 1 ? "it" : "each of them"} already.`);
    return undefined;
  }
  return {
    title: `${title} ${plural(preview.count, "run")}`,
    will: html`<${Will} preview=${preview} moved=${moved} what=${what} />`,
    verb,
    danger,
    request: () => ({ method: "POST", path, body: { filter, preview: false, expected_count: preview.count } }),
    cli: () => ["run", kind, "--where", whereOf(filter)],
    done: (answer) => {
      after();
      return doneWords(answer);
    },
    refused: async (problem) => (problem.status === 409 && !preview.truncated ? wishOf(all, { before: preview.count }) : undefined),
  };
}

/** The daemon refuses states in which nothing can be done; what is asked for is the rest of them. */
function narrowed(query, kind) {
  if (!query.state) return query;
  return { ...query, state: query.state.filter((state) => KINDS[kind].states.includes(state)) };
}

/** @param {any} filter */
const whereOf = (filter) => Object.entries(filter)
  .flatMap(([key, values]) => [values].flat().map((value) => `${key}:${/\s/.test(value) ? `"${value}"` : value}`)).join(" ");

/**
 * @param {{picked: {value: Set<string>}, rows: any[], asked: any, text: string, hasMore: boolean}} props
 */
export function Bulk({ picked, rows, asked, text, hasMore }) {
  const busy = useRef(signal("")).current;
  const everything = useRef(signal(false)).current;
  const count = picked.value.size;
  const isAll = everything.value && count >= rows.length;
  const begin = async (kind) => {
    const byId = count > 0 && !isAll;
    const filter = byId ? { q: [...picked.value] } : narrowed(asked.query, kind);
    const what = byId ? `the ${plural(count, "selected run")}` : asked.isEmpty ? "all runs" : html`all that match <code>${text}</code>`;
    busy.value = kind;
    try {
      const wish = await wishOf({ kind, filter, what, after: clear });
      if (wish) ask(wish);
    } catch (problem) {
      say(problem.detail ?? String(problem), { bad: true });
    }
    busy.value = "";
  };
  const clear = () => {
    picked.value = new Set();
    everything.value = false;
  };
  const can = (kind) => {
    if (asked.faults.length > 0) return "The filter cannot be read";
    if (count > PICKED_MAX && !isAll) return `At most ${PICKED_MAX} can be picked one by one; select all that match instead`;
    if (count > 0 && !isAll) return "";
    if (asked.keep && kind === "cancel") return "Select the rows: ‘retrying’ is told apart here, not by the daemon";
    return asked.query.state && narrowed(asked.query, kind).state.length === 0 ? `Nothing that is ${asked.states.join(" or ")} can be ${kind === "cancel" ? "cancelled" : "retried"}` : "";
  };
  const button = (kind, icon, title) => {
    const why = can(kind);
    return html`<button type="button" class=${`button ${kind === "cancel" ? "danger" : ""}`} disabled=${Boolean(why) || busy.value !== "" || (rows.length === 0)} title=${why || undefined} onClick=${() => begin(kind)}><${Icon} of=${icon} />${busy.value === kind ? "Counting…" : title}</button>`;
  };
  if (count === 0) {
    const all = asked.isEmpty ? "all" : "all that match";
    return html`<div class="more row wrap bulk">${button("retry", "again", `Retry ${all}…`)}${button("cancel", "stop", `Cancel ${all}…`)}</div>`;
  }
  const allShown = count >= rows.length && hasMore;
  return html`<div class="more row wrap bulk picked" role="region" aria-label="Selection">
    <span class="strong">${isAll ? (asked.isEmpty ? "All runs" : "All that match") : `${count} selected`}</span>
    ${allShown && !isAll && html`<button type="button" class="button ghost" onClick=${() => { everything.value = true; }}>Select all that match</button>`}
    ${button("retry", "again", "Retry…")}${button("cancel", "stop", "Cancel…")}
    <button type="button" class="button ghost" onClick=${clear}>Clear</button>
  </div>`;
}
