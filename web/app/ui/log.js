// The log of an attempt: as many bytes as it has, of which only those around the place being read are here.
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../lib/dom.js";
import { held as pageHeld } from "../lib/live.js";
import { bind } from "../lib/keys.js";
import { copy } from "../lib/clip.js";
import { LogReader } from "../lib/logreader.js";
import { LogSearch } from "../lib/logsearch.js";
import { LogSource } from "../lib/logsource.js";
import { kept } from "../lib/prefs.js";
import { addressWith, here, param, setParams } from "../lib/route.js";
import { Icon } from "./icons.js";
import { Foot, SearchBox, SearchWord } from "./logbar.js";
import { LogPort } from "./logport.js";
import { Rail } from "./lograil.js";
import { Slab } from "./logrows.js";
import { Fault, Nothing, Skeleton } from "./parts.js";
import { say } from "./toast.js";

const wraps = kept("log-wrap", true);
const UPWARDS = new Set(["ArrowUp", "PageUp"]);

/** The row that the address names. */
const marked = () => (/^\d+$/.test(param("log_at")) ? Number(param("log_at")) : undefined);

/**
 * @param {{runId: string, step: string, attempt: number | string, live: boolean, fence?: number, base?: string}} props
 */
export function LogView(props) {
  const { runId, step, attempt, fence, base } = props;
  // Another log is another view: nothing of the first one may stay.
  return html`<${View} key=${[base, runId, step, attempt, fence].join(" ")} ...${props} />`;
}

function View({ runId, step, attempt, live, fence, base }) {
  const source = useMemo(() => new LogSource({ runId, step, attempt, fence, base }), []);
  const reader = useMemo(() => new LogReader(source, { live }), []);
  const search = useMemo(() => new LogSearch(reader), []);
  const port = useMemo(() => new LogPort(reader), []);
  const full = useMemo(() => signal(false), []);
  const box = useRef(null);
  useEffect(() => {
    reader.begin(marked());
    const wake = () => reader.wake(document.visibilityState === "visible" && !pageHeld.peek());
    document.addEventListener("visibilitychange", wake);
    const unheld = pageHeld.subscribe(wake);
    const ends = [
      bind("w", "Wrap long lines", () => { wraps.value = !wraps.peek(); }, "Log"),
      bind("f", "Log over the whole page", () => { full.value = !full.peek(); }, "Log"),
      bind("G", "To the end of the log", () => reader.toEnd(), "Log"),
    ];
    return () => {
      document.removeEventListener("visibilitychange", wake);
      unheld();
      ends.forEach((end) => end());
      search.stop();
      reader.end();
    };
  }, []);
  // The address may change from outside: Back, or a link to another line.
  const at = marked();
  const known = useRef(at);
  useEffect(() => {
    if (at !== undefined && at !== known.current) reader.jump(at, "third");
    known.current = at;
  }, [at]);
  const isEmpty = reader.size.value === 0 && !reader.loading.value && !reader.error.value;
  const isGone = reader.error.value?.status === 404;
  const copyLink = async () => {
    const line = marked() ?? reader.seen.peek().from;
    known.current = line;
    setParams({ log_at: line }, { replace: true });
    await copy(location.href).then(() => say("Link to this line copied"), () => say("The browser did not allow copying"));
  };
  // Before the page's own Escape, which leaves it.
  useEffect(() => (full.value ? bind("Escape", "Back to the page", () => { full.value = false; }, "Log") : undefined), [full.value]);
  return html`<section class=${`log ${full.value ? "full" : ""}`} aria-label="Log">
    <div class="log-bar">
      <${SearchBox} search=${search} onLeave=${() => box.current?.focus()} />
      <${SearchWord} search=${search} reader=${reader} />
      <div class="log-tools">
        <button type="button" class="button ghost tiny" aria-pressed=${wraps.value ? "true" : "false"} title="Wrap long lines (w)" onClick=${() => { wraps.value = !wraps.peek(); }}>Wrap</button>
        <button type="button" class="button ghost tiny" disabled=${isEmpty} title="Copy a link to the marked line, or to the first one in view" onClick=${copyLink}><${Icon} of="copy" />Link</button>
        <a class="button ghost tiny" href=${source.download} download><${Icon} of="down" />Download</a>
        <button type="button" class="button ghost tiny" aria-pressed=${full.value ? "true" : "false"} aria-label="Over the whole page" title="Over the whole page (f)" onClick=${() => { full.value = !full.peek(); }}><${Icon} of=${full.value ? "shrink" : "grow"} /></button>
      </div>
    </div>
    ${isGone ? html`<${Nothing} title="This attempt has no log: it has not begun, or it was removed." />` : isEmpty ? html`<${Empty} reader=${reader} source=${source} step=${step} attempt=${attempt} />` : html`<${Body} reader=${reader} port=${port} search=${search} box=${box} known=${known} at=${at} />`}
  </section>`;
}

/** Why there is nothing to read. */
function Empty({ reader, source, step, attempt }) {
  const [wrote, setWrote] = useState(undefined);
  const isDone = reader.done.value;
  useEffect(() => {
    if (isDone) source.wrote(step, attempt).then(setWrote, () => setWrote(0));
  }, [isDone]);
  if (!isDone) return html`<${Nothing} title="Nothing printed yet. Lines appear here as the command writes them." />`;
  if (wrote === undefined) return html`<${Skeleton} lines=${2} />`;
  return html`<${Nothing} title=${wrote > 0 ? "This log is no longer kept: the retention of logs has removed it." : "The command ended without any output."} />`;
}

function Body({ reader, port, search, box, known, at }) {
  const canvas = useRef(null);
  const block = useRef(null);
  const opened = useMemo(() => signal(new Set()), []);
  const [height, setHeight] = useState(0);
  const { slabs, turn } = port.drawn.value;
  useLayoutEffect(() => {
    const detach = port.attach(box.current, canvas.current, block.current);
    const measure = new ResizeObserver(() => setHeight(box.current?.clientHeight ?? 0));
    measure.observe(box.current);
    return () => { detach(); measure.disconnect(); };
  }, []);
  const version = reader.version.value;
  useLayoutEffect(() => port.refresh(), [version]);
  useLayoutEffect(() => port.setWrap(wraps.value), [wraps.value]);
  useLayoutEffect(() => port.settle(), [turn]);
  const hit = search.hit.value;
  const word = search.word.value;
  const exact = search.exact.value;
  // A match in the hidden part of a long row opens it, and so moves what is below.
  useLayoutEffect(() => port.settle(), [hit, opened.value]);
  const { query, path } = here.value;
  const href = useMemo(() => (offset) => addressWith({ log_at: offset }), [path, query.get("tab")]);
  const look = { word, exact, hit, marked: at, opened: opened.value, href };
  const onClick = (event) => {
    const more = event.target.closest("[data-more]");
    if (more) { opened.value = new Set([...opened.peek(), Number(more.dataset.more)]); box.current.focus({ preventScroll: true }); }
    const link = event.target.closest("a.log-at");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    const row = Number(link.closest("[data-at]").dataset.at);
    const next = row === at ? undefined : row;
    known.current = next;
    setParams({ log_at: next }, { replace: true });
  };
  const onKeyDown = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== box.current) return;
    if (event.key === "Home") { event.preventDefault(); reader.jump(0); }
    else if (event.key === "End") { event.preventDefault(); reader.toEnd(); }
    else if ((UPWARDS.has(event.key) || (event.key === " " && event.shiftKey)) && box.current.scrollTop > 0) reader.leaveEnd();
  };
  const up = (event) => { if (event.deltaY < 0 && box.current.scrollTop > 0) reader.leaveEnd(); };
  const finger = useRef(0);
  const onTouchStart = (event) => { finger.current = event.touches[0].clientY; };
  const onTouchMove = (event) => { if (event.touches[0].clientY - finger.current > 6 && box.current.scrollTop > 0) reader.leaveEnd(); };
  return html`<div class="log-body">
      <div class=${`log-box ${wraps.value ? "wraps" : ""} ${reader.loading.value ? "loading" : ""}`} ref=${box} role="region" aria-label="Lines of the log" aria-busy=${reader.loading.value ? "true" : "false"} tabindex="0"
        data-kept=${reader.window.weight} data-from=${reader.window.from} data-to=${reader.window.to}
        onScroll=${() => port.scrolled()} onWheel=${up} onTouchStart=${onTouchStart} onTouchMove=${onTouchMove} onKeyDown=${onKeyDown} onClick=${onClick}>
        <div class="log-canvas" ref=${canvas}><div class="log-block" ref=${block}>${slabs.map((slab) => html`<${Slab} key=${slab.at} slab=${slab} look=${look} />`)}</div></div>
      </div>
      <${Rail} reader=${reader} height=${height} marked=${at} hit=${hit?.at} />
      ${reader.loading.value && slabs.length === 0 && html`<div class="log-wait"><${Skeleton} lines=${8} /></div>`}
      ${reader.error.value && html`<div class="log-fault"><${Fault} error=${reader.error.value} again=${() => reader.again(at)} /></div>`}
    </div>
    <${Foot} reader=${reader} onEnd=${() => { reader.toEnd(); box.current?.focus({ preventScroll: true }); }} />`;
}
