// Above a log: its search, how it is shown, its links; below: what is in view and the way to the end.
import { html, useEffect, useRef, useState } from "../lib/dom.js";
import { bytes, number, percent, plural } from "../lib/format.js";
import { bind } from "../lib/keys.js";
import { held } from "../lib/live.js";
import { Icon } from "./icons.js";

/** @param {{search: import("../lib/logsearch.js").LogSearch, onLeave: () => void}} props */
export function SearchBox({ search, onLeave }) {
  const [text, setText] = useState(search.word.peek());
  const input = useRef(null);
  const timer = useRef(undefined);
  useEffect(() => {
    const ends = [
      bind("/", "Search the log", () => { input.current?.focus(); input.current?.select(); }, "Log"),
      bind("n", "Next match", () => search.go("next"), "Log"),
      bind("N", "Match before", () => search.go("previous"), "Log"),
    ];
    return () => { ends.forEach((end) => end()); clearTimeout(timer.current); };
  }, [search]);
  const settle = (next) => { clearTimeout(timer.current); search.ask(next); };
  const onInput = (event) => {
    const next = event.currentTarget.value;
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => search.ask(next), 200);
  };
  const onKeyDown = (event) => {
    if (event.key === "Enter") { event.preventDefault(); settle(text); search.go(event.shiftKey ? "previous" : "next"); }
    if (event.key !== "Escape") return;
    event.preventDefault();
    if (search.busy.peek()) search.stop();
    else if (text) { setText(""); settle(""); }
    else onLeave();
  };
  const go = (direction) => () => { settle(text); search.go(direction); };
  const has = text !== "";
  return html`<div class="log-search" role="search">
    <div class="log-field">
      <${Icon} of="search" />
      <input ref=${input} class="input" type="text" aria-label="Search the log" placeholder="Search the whole log" value=${text} spellcheck=${false} autocomplete="off"
        enterkeyhint="search" onInput=${onInput} onKeyDown=${onKeyDown} />
      <button type="button" class="button ghost tiny case" aria-pressed=${search.exact.value ? "true" : "false"} aria-label="Capital and small letters differ" title="Capital and small letters differ"
        onClick=${() => search.setExact(!search.exact.peek())}>Aa</button>
    </div>
    <button type="button" class="button icon up" disabled=${!has} aria-label="Match before" title="Match before (Shift-Enter, N)" onClick=${go("previous")}><${Icon} of="next" /></button>
    <button type="button" class="button icon dn" disabled=${!has} aria-label="Next match" title="Next match (Enter, n)" onClick=${go("next")}><${Icon} of="next" /></button>
    ${search.busy.value && html`<button type="button" class="button tiny" onClick=${() => search.stop()}>Stop</button>`}
  </div>`;
}

/** What the search says. Its own part: it changes with each answer. @param {{search: any, reader: any}} props */
export function SearchWord({ search, reader }) {
  reader.version.value;
  const told = search.told.value;
  const counted = search.word.value && !search.busy.value ? search.counted() : "";
  return html`<span class="log-told" role="status">${[told, counted].filter(Boolean).join(" · ")}</span>`;
}

/** @param {{reader: import("../lib/logreader.js").LogReader, onEnd: () => void}} props */
export function Foot({ reader, onEnd }) {
  const size = reader.size.value;
  const { from, to } = reader.seen.value;
  const { lines, bytes: grown } = reader.since.value;
  const isLive = !reader.done.value;
  const isFollowing = reader.following.value;
  const isSure = isFollowing && !held.value && !reader.lost.value;
  const state = held.value ? "Held still" : !isFollowing ? "Still growing" : isSure ? "Following the end" : "No answer: trying again";
  const word = lines > 0 ? plural(lines, "new line") : grown > 0 ? `${bytes(grown)} more` : "";
  return html`<div class="log-foot">
    ${isLive && html`<span class=${`log-state ${isSure ? "on" : ""}`}><i />${state}</span>`}
    <span class="where" title=${`bytes ${number(from)} to ${number(to)} of ${number(size)}`}>${size > 0 && html`${percent(to / size)} of ${bytes(size)}`}</span>
    ${!(isFollowing || (!isLive && to >= size)) && html`<button type="button" class="button tiny" onClick=${onEnd}><${Icon} of="down" />To the end${word && html`<span class="new">, ${word}</span>`}</button>`}
  </div>`;
}
