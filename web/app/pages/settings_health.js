// What readiness looks at, each with its age.
import { html } from "../lib/dom.js";
import { bytes, capital, number } from "../lib/format.js";
import { rich } from "../lib/home.js";
import { to } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { span } from "../lib/time.js";
import { Card, Facts, Fault, Skeleton } from "../ui/parts.js";
import { List } from "../ui/list.js";
import { State } from "../ui/state.js";
import { Span, Time } from "../ui/time.js";
import { Sentence } from "./home_parts.js";
import { DeadLetters } from "./settings_dead.js";

const EVERY_MS = 5000;

/** The checks, also when they make the answer a refusal. */
export function useChecks() {
  const query = useQuery("/readyz?verbose", { topics: ["config"], every: EVERY_MS });
  const refused = query.error?.body?.checks;
  return { query, checks: refused ?? query.data?.checks, ready: !refused && query.data?.status === "ready" };
}

const ABOUT = {
  store: "Rows can be read; looked at once a second.",
  disk: "Space on the file system of the state directory.",
  locks: "A lock excludes others. On some network file systems it does not, and slot pools would be unsafe.",
  scheduler: "The loops that fire, admit and renew pass once a second.",
  configuration: "Which one is in force. A refused reload does not make the daemon unready.",
  drain: "Whether it was told to stop.",
};

const inWords = (detail) => rich(detail.replace(/\b(\d{5,}) bytes|less than (\d{5,})/g, (_, free, low) => (free ? bytes(Number(free)) : `less than ${bytes(Number(low))}`)));

const COLUMNS = [
  { key: "name", title: "Check", lead: true, cell: (check) => html`<div><strong>${capital(check.name)}</strong><div class="quiet tiny about">${ABOUT[check.name] ?? ""}</div></div>` },
  { key: "state", title: "State", cell: (check) => html`<${State} of=${check.ok ? "good" : "bad"} word=${check.ok ? "good" : "not good"} />` },
  { key: "detail", title: "Found", cell: (check) => html`<span><${Sentence} parts=${inWords(check.detail)} /></span>` },
  { key: "age", title: "Looked at", cell: (check) => html`<span class="nowrap">${check.age_ms < 1000 ? "now" : `${span(check.age_ms)} ago`}</span>` },
];

/** @param {{status: any}} props */
export function Health({ status }) {
  const { query, checks, ready } = useChecks();
  const data = status.data;
  const told = html`<${State} chip of=${ready ? "good" : "bad"} word=${ready ? "ready" : "not ready"} />`;
  return html`
    <${Card} title="Readiness" flush more=${checks && told}>
      ${checks ? html`<${List} label="Checks" rows=${checks} columns=${COLUMNS} keyOf=${(check) => check.name} />` : query.error ? html`<${Fault} error=${query.error} again=${query.reload} />` : html`<${Skeleton} lines=${6} />`}
    <//>
    ${data && html`<${Card} title="This daemon"><${Facts} of=${[
      ["Verdict", html`<span><${Sentence} parts=${rich(data.verdict)} /></span>`],
      ["Up for", html`<${Span} from=${data.started_at} /> <span class="quiet">since <${Time} at=${data.started_at} /></span>`],
      ["Draining", data.draining ? html`<${State} of="draining" word="yes: nothing new begins" />` : "no"],
      ["Late jobs", data.late_jobs.length > 0 ? html`<a href=${to.jobs("state:late")}>${number(data.late_jobs.length)}</a>` : "none"],
      ["Given up", data.dead_letters > 0 ? html`<span class="bad">${number(data.dead_letters)}</span> <span class="quiet small">steps and reports: the dead letters below</span>` : "nothing"],
    ]} /><//>`}
    <${DeadLetters} />`;
}
