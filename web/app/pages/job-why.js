// Why a job did or did not run at a time: asked with a moment, answered in a sentence. The question stands in the address.
import { computed, html, useEffect, useMemo, useState } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { asCli } from "../lib/clip.js";
import { addressWith, here, param, setParams, to } from "../lib/route.js";
import { moment, questions, upcoming, wall } from "../lib/schedule.js";
import { useQuery } from "../lib/store.js";
import * as time from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { CopyButton, Loaded, Note } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { daemonNow, Time } from "../ui/time.js";

/** How each kind of answer looks. */
const FAMILIES = { ran: "good", caught_up: "good", future: "busy", due_now: "busy", owed: "wait", job_paused: "wait", disabled: "wait", still_running: "wait", missed: "bad", no_daemon: "bad", last_not_successful: "bad", queue_timeout: "bad", pool_full: "bad" };

const base = (job) => `/api/schedules/${encodeURIComponent(job.name)}`;
const zoneOf = (job) => job.schedule?.timezone ?? "UTC";

/** Times one is likely to ask about. */
function Picks({ job, at }) {
  const fires = useQuery(withQuery(`${base(job)}/fires`, { "pagination.page_size": 100 }), { topics: [] });
  const ran = useQuery(withQuery(`${base(job)}/fires`, { outcome: "run", "pagination.page_size": 5 }), { topics: [] });
  const today = useMemo(() => computed(() => time.day(daemonNow(), zoneOf(job))), [job]).value;
  const next = useMemo(() => computed(() => upcoming(job.schedule?.next ?? [], daemonNow())), [job]).value;
  const newest = fires.data ?? [];
  const older = (ran.data ?? []).filter(({ instant }) => !newest.some((fire) => fire.instant === instant));
  const picks = questions([...newest, ...older], today);
  if (picks.length === 0 && !next) return null;
  return html`<div class="stack"><span class="tiny quiet">Recent fires, the odd ones first</span>
    <div class="row wrap picks">${picks.map((pick) => html`<a key=${pick.at} class="button tiny" href=${addressWith({ at: pick.at })} aria-current=${pick.at === at ? "true" : undefined}><${State} of=${pick.outcome} iconOnly />${pick.word}</a>`)}
      ${next && html`<a class="button tiny" href=${addressWith({ at: next })}><${Icon} of="clock" />the next one</a>`}</div></div>`;
}

/** The field with its zone; what is written settles with Enter or the button. */
function Ask({ job, at, shown }) {
  const clock = zoneOf(job);
  const [text, setText] = useState(shown);
  useEffect(() => setText(shown), [shown]);
  const onSubmit = (event) => {
    event.preventDefault();
    if (text) setParams({ at: text.replace("T", " ") });
  };
  return html`<form class="why-form" onSubmit=${onSubmit}>
    <label class="field" for="why-at"><span>Why did it run, or not, at</span>
      <input class="input" id="why-at" type="datetime-local" step="1" value=${text} onInput=${(event) => setText(event.currentTarget.value)} required /></label>
    <span class="zone small soft">${clock}<span class="unseen">, the zone of the schedule</span></span>
    <button type="submit" class="button main">Ask</button>
    ${at && html`<button type="button" class="button ghost" onClick=${() => setParams({ at: "" })}>Clear</button>`}
  </form>`;
}

function Around({ job, of, word }) {
  if (!of) return null;
  const parts = moment(of.local);
  return html`<a class="around" href=${addressWith({ at: of.local })}><span class="tiny quiet">${word}</span><span>${parts ? `${parts.weekday} ${parts.date} ${parts.clock}` : of.local} <span class="quiet tiny">${parts?.offset}</span></span><span class="tiny quiet"><${Time} at=${of.instant} ofJob=${job.schedule?.timezone} form="relative" /></span></a>`;
}

/** @param {{job: any, answer: any}} props */
function Answer({ job, answer }) {
  const family = answer.run?.state === "failed" ? "bad" : (FAMILIES[answer.code] ?? "calm");
  const link = location.origin + here.value.path + addressWith({}).slice(here.value.path.length);
  return html`<div class="stack wide" aria-live="polite">
    <div class=${`why-verdict of-${family}`}>
      <p>${answer.sentence}</p>
      ${answer.run && html`<div class="row wrap">${answer.run.state ? html`<${State} of=${answer.run.state} chip />` : ""}<a class="button" href=${to.run(answer.run.id)}>Open the run</a></div>`}
    </div>
    ${answer.remarks.map((remark) => html`<${Note} key=${remark}>${remark}<//>`)}
    <div class="arounds"><${Around} job=${job} of=${answer.before} word="The moment before" /><${Around} job=${job} of=${answer.after} word="The moment after" /></div>
    <div class="row wrap tiny quiet"><span>You asked about <${Time} at=${answer.instant} ofJob=${answer.timezone} form="long" />, <code>${answer.code}</code></span>
      <${CopyButton} label="Copy the link" text=${link} /><${CopyButton} label="Copy as CLI" text=${asCli(["schedule", "why", job.name, "--at", answer.asked], location.origin)} /></div>
  </div>`;
}

/** @param {{job: any}} props */
export function Why({ job }) {
  const at = param("at");
  const query = useQuery(at ? withQuery(`${base(job)}/why`, { at }) : null, { topics: ["runs", "jobs"] });
  const shown = at && query.data?.local.slice(0, 19);
  const [first] = useState(() => wall(Date.now(), zoneOf(job)).slice(0, 16));
  return html`<section class="card why" aria-label="Why"><div class="body stack wide">
    <${Ask} job=${job} at=${at} shown=${shown || first} />
    <${Picks} job=${job} at=${at} />
    ${at ? html`<${Loaded} query=${query} lines=${3}>${(answer) => html`<${Answer} job=${job} answer=${answer} />`}<//>`
      : html`<p class="soft small">Pick a moment, or write any other. The answer says what became of it, or why nothing could: a pause, a change of the schedule, a daemon that was not there, a change of the clock.</p>`}
  </div></section>`;
}
