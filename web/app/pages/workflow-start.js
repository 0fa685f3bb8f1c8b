// Starting a run: a form made from the schema of the input, or JSON; and what would happen, without doing it.
import { html, useMemo, useState } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { typeWord } from "../lib/graph.js";
import { notJson } from "../lib/jsonplace.js";
import { fieldsOf, inputOf, valuesOf } from "../lib/schemaform.js";
import { span } from "../lib/time.js";
import { inLine, isOfConfiguration, pretty } from "../lib/workflow.js";
import { ask } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Json } from "../ui/json.js";
import { JsonEdit } from "../ui/jsonedit.js";
import { Card, Fault, Note } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { startRun } from "./workflow-actions.js";

/** @param {{field: import("../lib/schemaform.js").FormField, value: string, set: (value: string) => void, fault?: string}} props */
function Field({ field, value, set, fault }) {
  const id = `input-${field.name}`;
  const onInput = (event) => set(event.currentTarget.value);
  const shared = { id, required: field.required, "aria-invalid": fault ? "true" : undefined, "aria-describedby": `${id}-hint` };
  const hint = html`<span class="tiny quiet" id=${`${id}-hint`}>${fault ? html`<span class="bad">${fault}${field.hint ? " · " : ""}</span>` : ""}${field.hint}</span>`;
  if (field.kind === "yes") return html`<div class="field tick"><label class="row" for=${id}><input type="checkbox" id=${id} aria-describedby=${`${id}-hint`} checked=${value === "true"} onChange=${(event) => set(String(event.currentTarget.checked))} /><span>${field.label}</span></label>${hint}</div>`;
  let control;
  if (field.kind === "choice") control = html`<select class="input" ...${shared} value=${value} onChange=${onInput}><option value=""></option>${field.choices?.map((choice) => html`<option key=${choice.value} value=${choice.value}>${choice.text}</option>`)}</select>`;
  else if (field.kind === "json" || field.kind === "long") control = html`<textarea class=${`input ${field.kind === "json" ? "mono" : ""}`} ...${shared} rows=${Math.min(8, Math.max(3, value.split("\n").length))} spellcheck=${field.kind === "long"} value=${value} onInput=${onInput}></textarea>`;
  else control = html`<input class="input" ...${shared} type=${field.kind === "moment" ? "datetime-local" : "text"} inputmode=${field.kind === "integer" ? "numeric" : field.kind === "number" ? "decimal" : undefined} autocomplete="off" value=${value} onInput=${onInput} />`;
  return html`<div class="field"><label for=${id}>${field.label}${field.required ? html` <span class="s-must">needed</span>` : ""}${field.kind === "json" ? html` <span class="quiet tiny">as JSON</span>` : ""}</label>${control}${hint}</div>`;
}

/** What a dry run says, step by step. @param {{told: any}} props */
function Told({ told }) {
  const steps = told.steps ?? [];
  return html`<div class="stack"><p>${told.state === "running" ? "It would wait for ever" : html`It would end as <${State} of=${told.state} />`}${told.reason ? `: ${told.reason}` : ""}${told.waited_ms > 0 ? `, after ${span(told.waited_ms)} of waiting` : ""}.</p>
    <ol class="dry">${steps.map((step, at) => html`<li key=${`${step.ref} ${at}`}><div class="row wrap"><strong>${step.ref}</strong> <span class="tag">${typeWord(step.type)}</span>${step.state && html`<${State} of=${step.state} />`}</div>
      ${step.assumed && html`<p class="small quiet">Somebody else would make its output; it is assumed.</p>`}${step.reason && html`<p class="small soft">${step.reason}</p>`}
      ${step.output !== undefined && step.output !== null && html`<details class="small"><summary>Output <code class="quiet">${inLine(step.output).slice(0, 80)}</code></summary><${Json} value=${step.output} label=${`Output of ${step.ref}`} /></details>`}</li>`)}</ol>${told.cut && html`<p class="small quiet">There are more steps; the rest is left out.</p>`}
    ${told.output !== undefined && told.output !== null && html`<div><p class="small soft">Output of the run</p><${Json} value=${told.output} label="Output of the run" /></div>`}</div>`;
}

/** A dag takes nothing. @param {{workflow: any}} props */
const StartDag = ({ workflow }) => html`<${Card} title="Start a run"><div class="stack"><p class="soft">A dag of the configuration takes no input.${workflow.current_version ? "" : " It is disabled there, so no run begins."}</p>
    <div><button type="button" class="button main" disabled=${!workflow.current_version} onClick=${() => ask(startRun(workflow, { input: undefined }))}><${Icon} of="play" />Start the run…</button></div></div><//>`;

/** @param {{workflow: any}} props */
export function Start({ workflow }) {
  return isOfConfiguration(workflow) ? html`<${StartDag} workflow=${workflow} />` : html`<${StartWith} workflow=${workflow} />`;
}

/** @param {{workflow: any}} props */
function StartWith({ workflow }) {
  const schema = workflow.document?.input_schema;
  const fields = useMemo(() => fieldsOf(schema), [workflow.record_version]);
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [text, setText] = useState("{}");
  const [raw, setRaw] = useState(false);
  const [tried, setTried] = useState(false);
  const [dry, setDry] = useState(/** @type {{told?: any, error?: any, busy?: boolean}} */ ({}));
  const asJson = raw || !fields;
  const read = fields ? inputOf(fields, values) : { input: {}, faults: {} };
  const isGood = asJson ? notJson(text) === undefined : Object.keys(read.faults).length === 0;
  const input = () => (asJson ? JSON.parse(text) : read.input);
  const toRaw = () => {
    setText(pretty(read.input));
    setRaw(true);
  };
  const toForm = () => {
    if (fields && !notJson(text)) setValues(valuesOf(fields, JSON.parse(text)));
    setRaw(false);
  };
  const dryRun = async () => {
    setTried(true);
    if (!isGood) return;
    setDry({ busy: true });
    try {
      setDry({ told: await act("POST", `/api/workflows/${encodeURIComponent(workflow.family_slug)}:dry_run`, { body: { input: input() } }) });
    } catch (error) {
      setDry({ error });
    }
  };
  const onSubmit = (event) => {
    event.preventDefault();
    setTried(true);
    if (isGood) ask(startRun(workflow, { input: input() }));
  };
  return html`<div class="start-columns">
    <${Card} title="Input" more=${fields && html`<button type="button" class="button ghost tiny" aria-pressed=${asJson ? "true" : "false"} onClick=${asJson ? toForm : toRaw}>${asJson ? "As a form" : "As JSON"}</button>`}>
      <form class="stack wide" onSubmit=${onSubmit} novalidate>
        ${asJson ? html`<${JsonEdit} id="input" label="The input as JSON" text=${text} set=${setText} rows=${10} />` : fields?.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name] ?? field.value} set=${(value) => setValues({ ...values, [field.name]: value })} fault=${tried ? read.faults[field.name] : undefined} />`)}
        ${!fields && html`<p class="small quiet">${schema ? "Its input has no named fields to make a form of." : "It says nothing about its input."}</p>`}
        ${tried && !isGood && html`<${Note} of="bad" icon="cross">Something is still wrong with the input.<//>`}
        ${!workflow.current_version && html`<${Note} of="wait" icon="dots">It can be started once it is published. A dry run of the draft works now.<//>`}
        <div class="row wrap"><button type="submit" class="button main" disabled=${!workflow.current_version}><${Icon} of="play" />Start the run…</button><button type="button" class="button" disabled=${dry.busy} onClick=${dryRun}><${Icon} of="search" />${dry.busy ? "Working…" : "Dry run"}</button></div>
      </form><//>
    <${Card} title="What would happen"><div aria-live="polite">${dry.error ? html`<${Fault} error=${dry.error} />` : dry.told ? html`<${Told} told=${dry.told} />` : html`<p class="quiet">A dry run goes through the steps with this input and shows what each would do. Nothing is started, sent or stored.</p>`}</div><//>
  </div>`;
}
