// What was given up: steps with which daemons died, reports that could not be delivered; tried again or put away.
import { html } from "../lib/dom.js";
import { shortId } from "../lib/format.js";
import { usePages } from "../lib/pages.js";
import { to } from "../lib/route.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Fault, Note, Skeleton } from "../ui/parts.js";
import { Time } from "../ui/time.js";

const path = (letter, verb) => `/api/dead_letters/${encodeURIComponent(letter.id)}:${verb}`;
const isStep = (letter) => letter.kind === "step";
const what = (letter) => (isStep(letter) ? html`step <strong>${letter.step}</strong> of <strong>${letter.job}</strong>` : html`the report <strong>${letter.on}</strong> of <strong>${letter.job}</strong>`);

/** @returns {import("../ui/dialog.js").Wish} */
const retryWish = (letter) => ({
  title: isStep(letter) ? `Try ${letter.job} again` : "Deliver it anew",
  will: isStep(letter)
    ? html`<p>A new run tries ${what(letter)} again. If the step is what kills daemons, it may do so once more.</p>`
    : html`<p>Delivers ${what(letter)} by its ${letter.target}, from the first try on. One that is older than a day gets one try of its webhook.</p>`,
  verb: isStep(letter) ? "Try it again" : "Deliver it",
  request: () => ({ method: "POST", path: path(letter, "retry") }),
  cli: () => ["dlq", "retry", letter.id],
  done: (answer) => (answer.run ? [`${letter.job} is tried again`, { link: { href: to.run(answer.run), text: "Open the run" } }] : "It is delivered anew"),
});

/** @returns {import("../ui/dialog.js").Wish} */
const discardWish = (letter) => ({
  title: "Put it away?",
  will: html`<p>Nobody will look after ${what(letter)} any more. The run itself stays as it is.</p>`,
  verb: "Put it away",
  danger: true,
  request: () => ({ method: "POST", path: path(letter, "discard") }),
  cli: () => ["dlq", "discard", letter.id, "--yes"],
  done: () => "It is put away",
});

const COLUMNS = [
  { key: "what", title: "What", lead: true, cell: (letter) => html`<div>${what(letter)}<div class="quiet tiny about">${letter.reason}</div></div>` },
  { key: "run", title: "Run", cell: (letter) => (letter.run ? html`<a class="mono" href=${to.run(letter.run)} title=${letter.run}>${shortId(letter.run)}</a>` : html`<span class="quiet">—</span>`) },
  { key: "tries", title: "Tries", number: true, cell: (letter) => html`<span title=${isStep(letter) ? "Daemons that died with it" : "Tries to deliver it"}>${letter.tries}</span>` },
  { key: "at", title: "Given up", cell: (letter) => html`<${Time} at=${letter.at} form="relative" />` },
  { key: "act", title: "", cell: (letter) => html`<span class="row">
    <${AskButton} wish=${() => retryWish(letter)} className="ghost"><${Icon} of="again" />Retry<span class="unseen"> ${letter.id}</span><//>
    <${AskButton} wish=${() => discardWish(letter)} className="ghost"><${Icon} of="cross" />Discard<span class="unseen"> ${letter.id}</span><//></span>` },
];

export function DeadLetters() {
  const letters = usePages("/api/dead_letters", { topics: ["runs"], keyOf: (letter) => letter.id });
  const list = html`<${List} label="Dead letters" rows=${letters.rows} columns=${COLUMNS} keyOf=${(letter) => letter.id} />
    <${ListFoot} count=${letters.rows.length} what=${letters.rows.length === 1 ? "dead letter" : "dead letters"} more=${letters.more} loading=${letters.loadingMore} />`;
  return html`
    ${letters.error && html`<${Fault} error=${letters.error} again=${letters.reload} />`}
    <${Card} title="Dead letters" flush>
      ${letters.data === undefined ? !letters.error && html`<${Skeleton} lines=${2} />` : letters.rows.length === 0 ? html`<${Note} of="good" icon="check">Nothing was given up.<//>` : list}
    <//>`;
}
