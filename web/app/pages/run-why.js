// Why a run waits, or why it failed: the first thing its page says.
import { html, useEffect, useState } from "../lib/dom.js";
import { parse } from "../lib/ansi.js";
import { getBytes } from "../lib/api.js";
import { instant, plural } from "../lib/format.js";
import { to } from "../lib/route.js";
import { aheadOf, attemptsOf, lastFailed, lastLines, meaning, place, stepName } from "../lib/run.js";
import { useQuery } from "../lib/store.js";
import { relative, whole } from "../lib/time.js";
import { Icon } from "../ui/icons.js";
import { familyOf, wordOf } from "../ui/state.js";
import { daemonNow, Time } from "../ui/time.js";
import { Told } from "../ui/told.js";
import { logAddress, logTab } from "./run-log.js";
import { zoneOf } from "./runs-names.js";

const PREVIEW_BYTES = 4096;
const PREVIEW_LINES = 6;
const NAMED_MAX = 3;

/** `in 12 s`; only this ticks. @param {{at: number}} props */
const In = ({ at }) => html`<span class="nowrap">${relative(at, daemonNow())}</span>`;
/** @param {{at: number | undefined}} props */
const Since = ({ at }) => (at === undefined ? null : html`<span class="quiet nowrap">for ${whole(daemonNow() - at)}</span>`);

/** @param {{entries: any[]}} props */
const Named = ({ entries }) => html`${entries.slice(0, NAMED_MAX).map((entry, at) => html`${at > 0 ? ", " : ""}<a href=${to.run(entry.runId)} title=${entry.runId}>${entry.job}</a>`)}${entries.length > NAMED_MAX ? ` and ${entries.length - NAMED_MAX} more` : ""}`;

/** @param {{run: any, waits: any}} props */
function ForSlots({ run, waits }) {
  const pool = useQuery(waits.pool ? `/pools/${encodeURIComponent(waits.pool)}` : null, { topics: ["slots"] });
  const ahead = aheadOf(waits, pool.data, run.id);
  const isHead = ahead.position === 1;
  const zone = zoneOf(run.job);
  return html`<p class="sentence"><strong>${isHead ? html`<${Told} text=${waits.text} ofJob=${zone} />` : ahead.before.length > 0 ? html`Waits behind <${Named} entries=${ahead.before} />` : html`<${Told} text=${waits.text} ofJob=${zone} />`}</strong> in slot pool <a href=${to.slots(waits.pool)}>${waits.pool}</a>${ahead.position ? html`, <strong>${place(ahead.position, ahead.total)}</strong>` : ""}.</p>
    <ul class="why-facts">
      ${ahead.holders.length > 0 && html`<li><span class="quiet">Slots are held by</span> ${ahead.holders.slice(0, NAMED_MAX).map((entry, at) => html`${at > 0 ? ", " : ""}<a href=${to.run(entry.runId)} title=${entry.runId}>${entry.job}</a> (${plural(entry.slots, "slot")} <${Since} at=${instant(entry.claim?.claimedAt)} />)`)}${ahead.holders.length > NAMED_MAX ? ` and ${ahead.holders.length - NAMED_MAX} more` : ""}</li>`}
      ${ahead.wants !== undefined && html`<li><span class="quiet">Needs</span> ${plural(ahead.wants, "slot")} <span class="quiet">of ${ahead.slots}, ${ahead.free} free; priority ${ahead.priority}</span></li>`}
      ${ahead.since !== undefined && html`<li><span class="quiet">Waits since</span> <${Time} at=${ahead.since} ofJob=${zone} /></li>`}
      ${ahead.deadline !== undefined && html`<li><span class="quiet">Gives up</span> <strong><${In} at=${ahead.deadline} /></strong> <span class="quiet">at <${Time} at=${ahead.deadline} ofJob=${zone} /></span></li>`}
    </ul>`;
}

/** @param {{run: any, waits: any}} props */
function ForRetry({ run, waits }) {
  const step = run.steps.find((each) => each.retry_at);
  const due = instant(step?.retry_at);
  const last = attemptsOf(run).find((each) => each.step === step?.ref);
  const zone = zoneOf(run.job);
  if (due === undefined || waits.text.includes("admission")) return html`<p class="sentence"><strong><${Told} text=${waits.text} ofJob=${zone} /></strong></p>`;
  return html`<p class="sentence"><strong>Attempt ${step.attempt} begins <${In} at=${due} /></strong>, at <${Time} at=${due} ofJob=${zone} />: attempt ${last?.number} ${wordOf(last?.outcome ?? "failed")}${last?.reason && last.reason !== last.outcome ? html`, <strong class="bad">${last.reason}</strong>` : ""}.</p>`;
}

/** @param {{run: any, waits: any}} props */
function Waits({ run, waits }) {
  if (waits.code === "retry") return html`<${ForRetry} run=${run} waits=${waits} />`;
  if (waits.pool) return html`<${ForSlots} run=${run} waits=${waits} />`;
  return html`<p class="sentence"><strong><${Told} text=${waits.text} ofJob=${zoneOf(run.job)} /></strong></p>`;
}

/** What else of it waits, of a run with several steps. @param {{run: any, waits: any}} props */
function Others({ run, waits }) {
  const others = run.steps.filter((step) => step.waiting_reason && step.waiting_reason.text !== waits.text);
  if (run.steps.length < 2 || others.length === 0) return null;
  return html`<ul class="why-others">${others.slice(0, NAMED_MAX).map((step) => html`<li key=${step.ref}><a class="quiet" href=${`${to.run(run.id, "graph")}&step=${encodeURIComponent(step.ref)}`}>${stepName(step.ref)}</a> <${Told} text=${step.waiting_reason.text} ofJob=${zoneOf(run.job)} /></li>`)}${others.length > NAMED_MAX && html`<li class="quiet">and ${plural(others.length - NAMED_MAX, "more step")} that ${others.length - NAMED_MAX === 1 ? "waits" : "wait"}</li>`}</ul>`;
}

/** The last lines of what it printed. @param {{run: any, attempt: any}} props */
function Preview({ run, attempt }) {
  const [seen, setSeen] = useState(undefined);
  const path = `${logAddress(run, attempt)}&offset=-${PREVIEW_BYTES}`;
  useEffect(() => {
    const ends = new AbortController();
    getBytes(path, { signal: ends.signal }).then(({ bytes, headers }) => {
      const isCut = Number(headers.get("x-log-start")) > 0;
      setSeen(lastLines(new TextDecoder().decode(bytes), isCut, PREVIEW_LINES));
    }, () => {});
    return () => ends.abort();
  }, [path]);
  if (!seen || seen.lines.length === 0) return null;
  return html`<figure class="last-lines"><figcaption class="tiny">The last lines of ${seen.stream === "err" ? "standard error" : "its output"}, attempt ${attempt.number} <a href=${logTab(run, attempt.number, attempt.step)}>Whole log</a></figcaption>
    <pre tabindex="0">${seen.lines.map((line) => html`<span class="line">${parse(line).parts.map(({ text, className }) => html`<span class=${className}>${text}</span>`)}${"\n"}</span>`)}</pre></figure>`;
}

/** @param {{run: any, state: string, lines?: boolean}} props `lines`: with the last ones of its log */
export function Why({ run, state, lines = true }) {
  const waits = run.waiting_reason;
  const failed = lastFailed(run);
  const preview = lines && failed && failed.log_bytes > 0 && (state === "failed" || state === "retrying") ? html`<${Preview} run=${run} attempt=${failed} />` : null;
  const poisoned = run.poisoned && html`<p class="bad">The daemon could not go on with this run and has set it aside; its log says why.</p>`;
  if (waits) return html`<section class="why-box of-wait" aria-label="Why it waits"><${Icon} of=${state === "retrying" ? "again" : "wait"} /><div class="grow stack"><${Waits} run=${run} waits=${waits} /><${Others} run=${run} waits=${waits} />${preview}${poisoned}</div></section>`;
  const live = run.steps.find((step) => step.live?.ending)?.live;
  if (live) return html`<section class="why-box of-wait" aria-label="What happens"><${Icon} of="stop" /><div class="grow"><p class="sentence"><strong>It is being ended:</strong> ${live.ending.cause} by ${live.ending.by} at <${Time} at=${live.ending.at} />. Its command has got SIGTERM.</p></div></section>`;
  if (!run.reason && !poisoned) return null;
  const family = familyOf(run.state);
  const other = failed && failed.reason && !run.reason?.endsWith(failed.reason) ? html` The last attempt ${wordOf(failed.outcome)}: <strong>${failed.reason}</strong>.` : "";
  return html`<section class=${`why-box of-${family}`} aria-label="How it ended"><${Icon} of=${family === "bad" ? "cross" : "info"} /><div class="grow stack">
    <p class="sentence">${wordOf(run.state).replace(/^./, (letter) => letter.toUpperCase())}: <strong><${Told} text=${run.reason} ofJob=${zoneOf(run.job)} /></strong>.${other}</p>${meaning(run.reason) && html`<p class="soft">${meaning(run.reason)}</p>`}${preview}${poisoned}</div></section>`;
}
