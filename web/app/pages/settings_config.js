// The configuration in force: since when, what was refused, what needs a restart, and all of it to search.
import { html, signal, useEffect, useMemo, useState } from "../lib/dom.js";
import { configLines, plain, reloadWords } from "../lib/config_tree.js";
import { instant, plural } from "../lib/format.js";
import { copy } from "../lib/clip.js";
import { bind } from "../lib/keys.js";
import { param, setParams } from "../lib/route.js";
import { useQuery } from "../lib/store.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { Card, CopyButton, Loaded, Note, Nothing } from "../ui/parts.js";
import { daemonNow, Time } from "../ui/time.js";
import { say } from "../ui/toast.js";

const PAGE = 300;
/** What the last reload from this page did. */
const last = signal(undefined);

const reload = () => ({
  title: "Reload the configuration",
  will: html`<p>Reads all files again and puts them in force together, or changes nothing and says why. Waiting entries of jobs that were changed, disabled or removed are cancelled; running commands go on.</p>`,
  verb: "Reload",
  request: () => ({ method: "POST", path: "/api/config:reload" }),
  cli: () => ["config", "reload"],
  done: (answer) => {
    last.value = { at: daemonNow(), words: reloadWords(answer) };
    return "The configuration was reloaded";
  },
});

/** @param {{refusedAt?: string}} props an older success would mislead beside a newer refusal */
function Reloaded({ refusedAt }) {
  if (!last.value || (instant(refusedAt) ?? 0) > last.value.at) return null;
  const { at, words } = last.value;
  const dismiss = () => {
    last.value = undefined;
  };
  return html`<${Card} title=${html`Reloaded <span class="quiet small"><${Time} at=${at} /></span>`} more=${html`<button type="button" class="button ghost tiny" onClick=${dismiss}><${Icon} of="close" />Close</button>`}>
    ${words.length === 0 ? html`<p>The files say what was in force already: nothing differs.</p>` : html`<ul class="stack reload-words">${words.map(({ what, names, of }) => html`<li key=${what}>
      <strong class=${of}>${what}</strong>${names.length > 0 && html`<ul class="names small">${names.slice(0, 50).map((name) => html`<li key=${name}><code>${name}</code></li>`)}${names.length > 50 && html`<li class="quiet">and ${plural(names.length - 50, "other")}</li>`}</ul>`}
    </li>`)}</ul>`}
  <//>`;
}

function Rejected({ rejected }) {
  return html`<section class="card rejected" aria-label="Refused configuration">
    <header><span class="state of-bad"><${Icon} of="cross" /></span><h2>Refused: ${plural(rejected.errors.length, "fault")}</h2><div class="more row"><span class="quiet small">at <${Time} at=${rejected.at} /></span><${CopyButton} text=${rejected.rendered} /></div></header>
    <div class="body stack"><p class="small">The files on disk are not in force. The configuration before them stays, until these are corrected and reloaded.</p>
    <pre class="carets" tabindex="0" aria-label="Faults with their places">${rejected.rendered}</pre></div>
  </section>`;
}

const place = ({ file, line, column }) => (file ? `${file}${line ? `:${line}${column ? `:${column}` : ""}` : ""}` : "");

const Warning = ({ warning }) => html`<li class="warning"><div><strong>${warning.detail}</strong></div>
  <div class="small soft row wrap"><code>${place(warning) || warning.pointer}</code><span class="quiet">${warning.code}</span></div>${warning.help && html`<p class="small">${warning.help}</p>`}</li>`;

function Line({ line, flip }) {
  const { key, value, type, hint, count, depth, kind, open, found, href, path } = line;
  const pad = { paddingLeft: `${depth * 1.25}rem` };
  if (kind === "fold") {
    return html`<li class=${`line fold ${found ? "found" : ""}`} style=${pad}><button type="button" aria-expanded=${open ? "true" : "false"} onClick=${() => flip(path)}><${Icon} of="next" /><span class="conf-key">${key}</span>${count !== undefined && html`<span class="quiet tiny">${count}</span>`}</button>${href && html`<a class="tiny" href=${href} aria-label=${`Open ${key}`}>Open</a>`}</li>`;
  }
  return html`<li class=${`line ${found ? "found" : ""}`} style=${pad}><span class="conf-key">${key}</span><span class=${`value is-${type}`}>${value}</span>${hint && html`<span class="quiet hint">${hint}</span>`}</li>`;
}

/** Made when it is asked for: a thousand jobs are megabytes. */
const copyAll = (config) => copy(JSON.stringify(config, null, 2)).then(() => say("Copied"), () => say("The browser did not allow copying"));

function Tree({ config }) {
  const find = param("find");
  const [text, setText] = useState(find);
  const [folded, setFolded] = useState(() => new Set());
  const [all, setAll] = useState(false);
  const [max, setMax] = useState(PAGE);
  useEffect(() => bind("/", "Search the configuration", () => document.getElementById("find-config")?.focus(), "Lists"), []);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text !== param("find")) setParams({ find: text }, { replace: true });
    }, 250);
    return () => clearTimeout(timer);
  }, [text]);
  useEffect(() => setText(find), [find]);
  useEffect(() => {
    setFolded(new Set());
    setMax(PAGE);
  }, [find]);
  const { lines, more, found } = useMemo(() => configLines(config, { find, folded, all, max }), [config, find, folded, all, max]);
  const flip = (path) => {
    const next = new Set(folded);
    if (!next.delete(path)) next.add(path);
    setFolded(next);
  };
  return html`<${Card} title="In force" flush more=${html`<button type="button" class="button ghost tiny" onClick=${() => copyAll(config)}><${Icon} of="copy" />Copy as JSON</button>`}>
    <div class="conf-head">
      <div class="filter"><${Icon} of="search" /><input id="find-config" class="input" type="search" aria-label="Search the configuration" placeholder="Key, value, job or slot pool" value=${text} autocomplete="off" spellcheck=${false} onInput=${(event) => setText(event.currentTarget.value)} /></div>
      <label class="row small"><input type="checkbox" checked=${all} onChange=${(event) => setAll(event.currentTarget.checked)} />Also what is not set</label>
      <span class="small quiet" aria-live="polite">${find ? `${plural(found, "place")} found` : ""}</span>
    </div>
    ${lines.length === 0 ? html`<${Nothing} title=${`Nothing in the configuration matches ‘${find}’.`} />` : html`<ul class="conf-tree mono small" aria-label="Configuration">${lines.map((line) => html`<${Line} key=${line.path} line=${line} flip=${flip} />`)}</ul>`}
    ${more > 0 && html`<div class="list-foot"><span>${plural(lines.length, "line")} shown, ${more} more</span><button type="button" class="button" onClick=${() => setMax(max + PAGE)}>Show more</button></div>`}
    <p class="conf-foot tiny quiet">Every default is filled in. Values of environment variables are hidden.</p>
  <//>`;
}

const FileSettings = ({ settings }) => html`<div class="scroll-x"><table class="list as-cards"><thead><tr><th scope="col">Setting</th><th scope="col">In force</th><th scope="col">In the file</th></tr></thead>
  <tbody>${settings.map((setting) => html`<tr key=${setting.key}><td class="lead"><code>${setting.key}</code></td><td data-label="In force"><code>${plain(setting.from)}</code></td><td data-label="In the file"><code>${plain(setting.to)}</code></td></tr>`)}</tbody></table></div>`;

/** @param {{status: any}} props */
export function Configuration({ status }) {
  const config = useQuery("/api/config", { topics: ["config"] });
  const standing = status.data?.configuration;
  return html`
    <div class="row wrap apart standing">
      <p>${standing && html`In force since <strong><${Time} at=${standing.since} form="long" /></strong>${config.data && html`: ${plural(config.data.jobs.length, "job")}, ${plural(config.data.pools.length, "slot pool")}`}`}</p>
      <${AskButton} className="main" wish=${reload}><${Icon} of="again" />Reload<//>
    </div>
    ${standing?.rejected && html`<${Rejected} rejected=${standing.rejected} />`}
    <${Reloaded} refusedAt=${standing?.rejected?.at} />
    ${standing?.needs_restart.length > 0 && html`<${Card} flush title=${html`Needs a restart <span class="quiet">${standing.needs_restart.length}</span>`}>
      <div class="body-pad"><${Note} of="wait" icon="again">These settings keep the values they had when the daemon started.<//></div><${FileSettings} settings=${standing.needs_restart} /><//>`}
    ${standing?.warnings.length > 0 && html`<${Card} flush title=${html`Warnings <span class="quiet">${standing.warnings.length}</span>`}><ul class="warnings">${standing.warnings.slice(0, 100).map((warning) => html`<${Warning} key=${`${warning.pointer} ${warning.code} ${warning.detail}`} warning=${warning} />`)}</ul><//>`}
    <${Loaded} query=${config} lines=${10}>${(data) => html`<${Tree} config=${data} />`}<//>`;
}
