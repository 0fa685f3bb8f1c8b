// A place to try an expression before it stands in a file: in words, its next fires on two clocks, what may surprise.
import { html, useEffect, useState } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { asCli } from "../lib/clip.js";
import { param, setParams } from "../lib/route.js";
import { caret } from "../lib/schedule.js";
import { browserZone } from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { Card, CopyButton, Fault } from "../ui/parts.js";
import { NextFires } from "./job-next.js";

const SETTLE_MS = 300;
const EXAMPLES = [
  ["30 2 * * *", "every night"],
  ["*/15 8-18 * * mon-fri", "in office hours"],
  ["0 7 LW * *", "last weekday of the month"],
  ["0 9 * * 5L", "last Friday"],
  ["H 3 * * *", "a minute made of the name"],
  ["@every 90m", "an interval"],
];
const zones = () => (Intl.supportedValuesOf ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC", browserZone()]);

/** The clock beside that of the expression: UTC, or that of the browser where UTC stands already. */
const otherZone = () => ((param("zone") || browserZone()) === "UTC" ? browserZone() : "UTC");

/** What the fields ask, as the body of a preview. */
function asked() {
  const expression = param("expression");
  const name = param("name");
  return {
    expression,
    timezone: param("zone") || browserZone(),
    second_timezone: param("second") || otherZone(),
    count: 10,
    ...(expression.trim().split(/\s+/).length === 6 ? { seconds: true } : {}),
    ...(param("days") === "and" ? { day_match: "and" } : {}),
    ...(name ? { name } : {}),
  };
}

/** The answer to what stands in the address; the last good one stays while the next is under way. */
function usePreview() {
  const body = asked();
  const key = JSON.stringify(body);
  const [answer, setAnswer] = useState({ data: undefined, error: undefined, of: "", sent: body });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (!body.expression.trim()) {
      setAnswer({ data: undefined, error: undefined, of: "", sent: body });
      return undefined;
    }
    let current = true;
    act("POST", "/api/schedules:preview", { body }).then(
      (data) => current && setAnswer({ data, error: undefined, of: key, sent: body }),
      (error) => current && setAnswer({ data: undefined, error, of: key, sent: body }),
    );
    return () => {
      current = false;
    };
  }, [key, turn]);
  return { ...answer, body, again: () => setTurn(turn + 1) };
}

/** A text whose value settles into the address. @param {{name: string, label: string, className?: string, list?: string, placeholder?: string, first?: string, hint?: any, invalid?: boolean}} props */
function Text({ name, label, className = "", list, placeholder, first = "", hint, invalid }) {
  const inUrl = param(name);
  const [text, setText] = useState(inUrl || first);
  useEffect(() => setText(inUrl || first), [inUrl, first]);
  useEffect(() => {
    if (text === (inUrl || first)) return undefined;
    const timer = setTimeout(() => setParams({ [name]: text === first ? "" : text }, { replace: true }), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return html`<label class=${`field ${className}`} for=${`try-${name}`}><span>${label}</span>
    <input class="input" id=${`try-${name}`} type="text" value=${text} list=${list} placeholder=${placeholder} spellcheck=${false} autocomplete="off" aria-invalid=${invalid ? "true" : undefined} aria-describedby=${invalid ? "try-fault" : undefined} onInput=${(event) => setText(event.currentTarget.value)} />
    ${hint && html`<span class="quiet tiny">${hint}</span>`}</label>`;
}

/** Why it was refused, with the place in the text. @param {{error: any, expression: string, again: () => void}} props */
function Refused({ error, expression, again }) {
  if (error.status !== 422) return html`<${Fault} error=${error} again=${again} />`;
  return html`<div class="fault-box" role="alert" id="try-fault">
    ${error.place && !error.errors.some(({ pointer }) => pointer === "/timezone") && html`<pre class="caret">${caret(expression, error.place.column, error.place.length)}</pre>`}
    ${error.errors.length > 0 ? error.errors.map((each) => html`<p key=${each.pointer}><strong>${each.detail}</strong>${each.pointer !== "/expression" && html` <code class="tiny">${each.pointer.slice(1)}</code>`}</p>`) : html`<p><strong>${error.detail}</strong></p>`}
  </div>`;
}

/** @param {{data: any, body: any}} props */
function Found({ data, body }) {
  const isName = /(^|\s)H/.test(body.expression);
  const words = ["schedule", "next", body.expression, "--zone", body.timezone, "-n", "10", ...(body.seconds ? ["--seconds"] : []), ...(body.day_match ? ["--day-match", "both"] : [])];
  return html`<div class="stack wide">
    <p class="in-words" aria-live="polite">${data.description} <span class="quiet">in ${data.timezone}</span></p>
    ${isName && !body.name && html`<p class="small soft">‘H’ is spread by the name of the job: give its name to see its own moments.</p>`}
    <${Card} title="Next fires" flush more=${html`<${CopyButton} label="Copy as CLI" text=${asCli(words, "http://127.0.0.1:8470")} />`}><${NextFires} preview=${data} /><//>
  </div>`;
}

export function TryIt() {
  const { data, error, sent, body, again } = usePreview();
  const empty = !body.expression.trim();
  return html`<div class="try stack wide">
    <${Card} title="What would it do?">
      <div class="stack wide">
        <div class="try-fields">
          <${Text} name="expression" className="expression" label="Expression" placeholder="30 2 * * *" invalid=${Boolean(error)} />
          <${Text} name="zone" label="Its time zone" list="try-zones" first=${browserZone()} />
          <${Text} name="second" label="Also shown in" list="try-zones" first=${otherZone()} />
          <${Text} name="name" label="Name of the job (for H)" placeholder="nightly-backup" />
          <label class="field" for="try-days"><span>Both day fields given</span>
            <select class="input" id="try-days" value=${param("days") || "or"} onChange=${(event) => setParams({ days: event.currentTarget.value === "and" ? "and" : "" }, { replace: true })}><option value="or">either is enough</option><option value="and">both must match</option></select></label>
          <datalist id="try-zones">${zones().map((name) => html`<option key=${name} value=${name}></option>`)}</datalist>
        </div>
        <div class="row wrap tiny"><span class="quiet">For example</span>${EXAMPLES.map(([text, about]) => html`<button type="button" key=${text} class="button tiny" title=${about} onClick=${() => setParams({ expression: text })}><code>${text}</code></button>`)}</div>
        ${error && html`<${Refused} error=${error} expression=${sent.expression} again=${again} />`}
      </div>
    <//>
    ${empty ? html`<p class="nothing"><span class="row"><${Icon} of="calendar" />Write an expression, and see when it fires. Nothing is changed by that.</span></p>` : data && html`<${Found} data=${data} body=${sent} />`}
  </div>`;
}
