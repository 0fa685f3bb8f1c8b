// Trying a GET: a small form, and the answer with its status, time, headers and body.
import { html, useState } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { asCurl } from "../lib/clip.js";
import { bytes } from "../lib/format.js";
import { filled } from "../lib/openapi.js";
import { probe } from "../lib/probe.js";
import { span } from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { Json } from "../ui/json.js";
import { CopyButton, Facts, Note } from "../ui/parts.js";
import { speak } from "../ui/toast.js";

const TEXT_SHOWN = 65_536;
/** Where the names of a parameter come from. */
const NAMES = {
  job: () => get("/api/jobs?pagination.page_size=500").then(({ body }) => body.map(({ name }) => name)),
  pool: () => get("/pools?entries=none").then(({ body }) => body.map(({ name }) => name)),
  run: () => get("/api/runs?pagination.page_size=50").then(({ body }) => body.map(({ id }) => id)),
};

/** What stands in an empty field. */
const FIRST = { step: "main", attempt: "1" };

/** @param {{parameter: import("../lib/openapi.js").Parameter, value: string, set: (value: string) => void}} props */
function Field({ parameter, value, set }) {
  const { name, required, schema } = parameter;
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  const isList = schema.type === "array";
  const choices = schema.enum ?? schema.items?.enum ?? (schema.type === "boolean" ? ["true", "false"] : undefined);
  const id = `try-${name}`;
  const onFocus = () => {
    if (NAMES[name] && names.length === 0) NAMES[name]().then(setNames, () => {});
  };
  const control = choices && !isList
    ? html`<select class="input" id=${id} value=${value} onChange=${(event) => set(event.currentTarget.value)}><option value=""></option>${choices.map((each) => html`<option value=${each}>${each}</option>`)}</select>`
    : html`<input class="input" id=${id} value=${value} required=${required} list=${`${id}-names`} autocomplete="off" spellcheck=${false} inputmode=${schema.type === "integer" ? "numeric" : undefined}
        placeholder=${isList ? "several with commas" : FIRST[name] ?? ""} onFocus=${onFocus} onInput=${(event) => set(event.currentTarget.value)} />
      <datalist id=${`${id}-names`}>${(choices ?? names).map((each) => html`<option value=${each}></option>`)}</datalist>`;
  return html`<label class="field" for=${id}><span><code>${name}</code>${required ? html` <span class="s-must">needed</span>` : ""}</span>${control}</label>`;
}

/** @param {{seen: import("../lib/probe.js").Seen}} props */
function Body({ seen }) {
  const isJson = /json/.test(seen.media) && seen.cut === "";
  let value;
  try {
    value = isJson ? JSON.parse(seen.text) : undefined;
  } catch {
    value = undefined;
  }
  if (value !== undefined) return html`<${Json} value=${value} label="Body of the answer" />`;
  return html`<pre class="answer-text" tabindex="0" aria-label="Body of the answer">${seen.text.slice(0, TEXT_SHOWN)}</pre>
    ${seen.text.length > TEXT_SHOWN && html`<p class="small quiet">The first ${bytes(TEXT_SHOWN)} are shown; the whole is in the copy.</p>`}`;
}

/** @param {{operation: import("../lib/openapi.js").Operation}} props */
export function Try({ operation }) {
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [seen, setSeen] = useState(/** @type {import("../lib/probe.js").Seen | undefined} */ (undefined));
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const asked = operation.parameters.filter((each) => each.in === "path" || each.in === "query");
  const path = filled(operation, values);
  const onSubmit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setFault("");
    try {
      const answer = await probe(path);
      setSeen(answer);
      speak(`Answered ${answer.status}`);
    } catch {
      setSeen(undefined);
      setFault("No answer: the daemon is not running, or cannot be reached.");
    }
    setBusy(false);
  };
  const isStream = operation.replies[0]?.media === "text/event-stream";
  return html`<section class="card" aria-labelledby="try-it"><header><h3 id="try-it">Try it</h3><div class="more"><${CopyButton} label="Copy as curl" text=${asCurl({ method: "GET", path }, location.origin)} /></div></header>
    <form class="body stack wide" onSubmit=${onSubmit}>
      ${asked.length > 0 && html`<div class="try-fields">${asked.map((parameter) => html`<${Field} key=${parameter.name} parameter=${parameter} value=${values[parameter.name] ?? ""} set=${(value) => setValues({ ...values, [parameter.name]: value })} />`)}</div>`}
      <div class="row wrap"><button type="submit" class="button main" disabled=${busy}><${Icon} of="play" />${busy ? (isStream ? "Listening for 5 s…" : "Asking…") : "Send"}</button><code class="try-path">GET ${path}</code></div>
      ${fault && html`<${Note} of="bad" icon="cross">${fault}<//>`}
      ${seen && html`<div class="stack answer">
        <div class="row wrap"><span class=${`state chip of-${seen.status < 400 ? "good" : "bad"}`}><${Icon} of=${seen.status < 400 ? "check" : "cross"} />${seen.status}</span>
          <span class="small soft">${span(seen.ms)}, ${bytes(seen.bytes)}${seen.cut === "size" ? " read, then cut" : seen.cut === "time" ? " in 5 s; the stream goes on" : ""}</span>
          <span class="copy-right"><${CopyButton} label="Copy body" text=${seen.text} /></span></div>
        <details class="small"><summary>Headers</summary><${Facts} of=${seen.headers.map(([name, value]) => [html`<code>${name}</code>`, html`<code>${value}</code>`])} /></details>
        <${Body} seen=${seen} />
      </div>`}
    </form>
  </section>`;
}
