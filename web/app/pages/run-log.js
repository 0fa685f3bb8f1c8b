// The log of one attempt of a run.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { parse } from "../lib/ansi.js";
import { getBytes } from "../lib/api.js";
import { param, setParams, to } from "../lib/route.js";
import { attemptsOf } from "../lib/run.js";
import { wordOf } from "../ui/state.js";
import { Fault, Skeleton } from "../ui/parts.js";

/** Bytes of a log. @param {any} run @param {any} attempt */
export const logAddress = (run, attempt) => `/api/runs/${encodeURIComponent(run.id)}/steps/${encodeURIComponent(attempt.step)}/attempts/${attempt.number}/log?fence=${attempt.fence}`;

/** The page's tab with it. @param {any} run @param {number} number */
export const logTab = (run, number) => `${to.run(run.id, "log")}&attempt=${number}`;

function Tail({ run, attempt }) {
  const [seen, setSeen] = useState(undefined);
  const path = `${logAddress(run, attempt)}&offset=-65536`;
  useEffect(() => {
    const ends = new AbortController();
    const read = () => getBytes(path, { signal: ends.signal }).then(({ bytes }) => setSeen({ text: new TextDecoder().decode(bytes) }), (error) => setSeen({ error }));
    read();
    const timer = attempt.live ? setInterval(read, 2000) : undefined;
    return () => {
      clearInterval(timer);
      ends.abort();
    };
  }, [path, attempt.live]);
  if (!seen) return html`<${Skeleton} />`;
  if (seen.error) return html`<${Fault} error=${seen.error} />`;
  return html`<pre class="body" tabindex="0">${seen.text.split("\n").map((line) => html`<span>${parse(line.slice(2)).parts.map(({ text, className }) => html`<span class=${className}>${text}</span>`)}${"\n"}</span>`)}</pre>`;
}

/** @param {{run: any}} props */
export function Log({ run }) {
  const attempts = attemptsOf(run);
  const wanted = Number(param("attempt")) || undefined;
  const attempt = attempts.find((each) => each.number === wanted) ?? attempts[0];
  const select = useRef(null);
  if (!attempt) return html`<div class="card"><p class="body quiet">There is no log yet: its command has not begun${run.ended_at ? " and never will" : ""}.</p></div>`;
  return html`<section class="card flush" aria-label="Log">
    <header><label class="row small" for="log-attempt"><span>Attempt</span>
      <select ref=${select} class="input" id="log-attempt" value=${String(attempt.number)} onChange=${(event) => setParams({ attempt: event.currentTarget.value })}>
        ${[...new Map(attempts.map((each) => [each.number, each])).values()].map((each) => html`<option key=${each.number} value=${String(each.number)}>${each.number}: ${wordOf(each.outcome)}</option>`)}</select></label></header>
    <${Tail} key=${`${attempt.number}-${attempt.fence}`} run=${run} attempt=${attempt} />
  </section>`;
}
