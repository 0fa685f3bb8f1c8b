// The frame of every page: side with the pages, head with the live dot and toggles, the banner when nobody answers.
import { computed, html, signal, useEffect } from "../lib/dom.js";
import { act } from "../lib/api.js";
import { bind } from "../lib/keys.js";
import * as live from "../lib/live.js";
import { after, theme, zone } from "../lib/prefs.js";
import { go, here, place, to } from "../lib/route.js";
import { locked } from "../lib/session.js";
import { useQuery } from "../lib/store.js";
import { browserZone, clock, day, relative } from "../lib/time.js";
import { SignIn } from "../pages/sign-in.js";
import { Dialogs } from "./dialog.js";
import { HelpHost, openHelp } from "./help.js";
import { Icon } from "./icons.js";
import { offer, openPalette, PaletteHost } from "./palette.js";
import { Toasts, speak } from "./toast.js";
import { zoneWord } from "./time.js";

/** The pages in their order, with their key after `g`. */
export const PAGES = [
  { page: "home", title: "Home", icon: "home", href: to.home(), key: "h" },
  { page: "runs", title: "Runs", icon: "runs", href: to.runs(), key: "r" },
  { page: "workflows", title: "Workflows", icon: "graph", href: to.workflows(), key: "w" },
  { page: "jobs", title: "Jobs and schedules", icon: "calendar", href: to.jobs(), key: "s" },
  { page: "slots", title: "Resource pools", icon: "slots", href: to.slots(), key: "p" },
  { page: "routing", title: "Routing", icon: "fork", href: to.routing(), key: "o" },
  { page: "approvals", title: "Approvals", icon: "person", href: to.approvals(), key: "v" },
  { page: "settings", title: "Settings", icon: "gear", href: to.settings(), key: "e" },
  { page: "api", title: "API", icon: "api", href: to.api(), key: "a" },
];

const menuOpen = signal(false);
const LIVE_WORDS = { live: "Live", connecting: "Connecting", paused: "Paused", lost: "No signal" };
const isLost = computed(() => live.state.value === "lost");

const togglePause = () => {
  live.held.value = !live.held.value;
  speak(live.held.value ? "Paused: the page holds still" : "Live again");
};
const toggleZone = () => {
  zone.value = after(["browser", "utc", "job"], zone.value);
  speak(`Times in ${zoneWord()}`);
};
const toggleTheme = () => {
  theme.value = after(["auto", "light", "dark"], theme.value);
  speak(`Theme ${theme.value}`);
};

function bindFrame() {
  const ends = [
    bind("Ctrl-K", "Go to a page, a name, an action", openPalette),
    bind("?", "These keys", openHelp),
    bind("p", "Hold the page still, or let it go on", togglePause),
    bind("t", "Another zone for times", toggleZone),
    bind("Escape", "Close", () => {
      menuOpen.value = false;
    }),
    ...PAGES.map(({ title, href, key }) => bind(`g ${key}`, title, () => go(href), "Go to")),
  ];
  offer([
    ...PAGES.map(({ title, icon, href }) => ({ text: title, kind: "page", icon, run: () => go(href) })),
    { text: "Failed runs", kind: "list", icon: "cross", run: () => go(to.runs("state:failed")) },
    { text: "What waits", kind: "list", icon: "wait", run: () => go(to.runs("state:pending")) },
    { text: "Late jobs", kind: "list", icon: "late", run: () => go(to.jobs("state:late")) },
    { text: "Hold the page still", kind: "action", icon: "pause", also: "pause live", run: togglePause },
    { text: "Change the zone of times", kind: "action", icon: "clock", also: "utc timezone", run: toggleZone },
    { text: "Change the theme", kind: "action", icon: "contrast", also: "dark light", run: toggleTheme },
    { text: "Show the keys", kind: "action", icon: "help", also: "help shortcuts", run: openHelp },
  ]);
  return () => ends.forEach((end) => end());
}

function Live() {
  const state = live.state.value;
  return html`<button type="button" class=${`button ghost live ${state} ${state === "live" ? "live-now" : ""}`} onClick=${togglePause}
    title=${live.held.value ? "Held still. Press p to go on." : "What you see is as it is now. Press p to hold it still."}>
    <span class="dot"></span>${LIVE_WORDS[state]}
  </button>`;
}

const THEME_ICONS = { auto: "contrast", light: "sun", dark: "moon" };

const Head = () => html`<header class="head">
  <button type="button" class="button icon ghost menu-button" aria-label="Pages" aria-expanded=${menuOpen.value} onClick=${() => { menuOpen.value = !menuOpen.value; }}><${Icon} of="menu" /></button>
  <button type="button" class="button find" onClick=${openPalette} title="Go to a page, a name or an action"><${Icon} of="search" /><span>Go to…</span><kbd>Ctrl K</kbd></button>
  <${Live} />
  <button type="button" class="button ghost" onClick=${toggleZone} title=${`Zone of all times; this browser is in ${browserZone()}. Press t.`}><${Icon} of="clock" />${zoneWord()}</button>
  <button type="button" class="button ghost icon" onClick=${toggleTheme} aria-label=${`Theme: ${theme.value}`} title=${`Theme: ${theme.value}`}><${Icon} of=${THEME_ICONS[theme.value]} /></button>
  <button type="button" class="button ghost icon wide-only" onClick=${openHelp} aria-label="Keys" title="Keys (?)"><${Icon} of="help" /></button>
  <${Who} />
</header>`;

function Side({ status }) {
  const counts = { runs: status?.counts?.running };
  const marks = { home: status && !status.ready ? "!" : undefined, runs: counts.runs || undefined };
  return html`<aside class="side" aria-label="Pages and this daemon">
    <a class="brand" href="/"><img src="/web/icon.svg" width="24" height="24" alt="" />ductor</a>
    <nav aria-label="Pages"><ul>${PAGES.map(({ page, title, icon, href }) => html`<li key=${page}><a href=${href} aria-current=${place.value.page === page ? "page" : undefined}>
      <${Icon} of=${icon} />${title}${marks[page] !== undefined && html`<span class=${`count ${page === "home" ? "bad" : ""}`}>${marks[page]}${page === "runs" ? html`<span class="unseen"> running</span>` : ""}</span>`}</a></li>`)}</ul></nav>
    <div class="foot">${status && html`<span>${status.node}</span><span>ductor ${status.version}</span>`}</div>
  </aside>`;
}

function NoSignal() {
  useEffect(() => {
    if (isLost.value) speak("No signal: the daemon does not answer");
  }, [isLost.value]);
  if (!isLost.value) return null;
  const at = live.heardAt.value;
  return html`<div class="banner" role="alert"><strong>NO SIGNAL since ${clock(at, "UTC")} UTC</strong>
    <span>What you see is from ${day(at, "UTC")} ${clock(at, "UTC")} UTC, ${relative(at, live.now.value)}. Trying to reach ${location.host} again.</span></div>`;
}

/** What the daemon says about itself and everybody should see. */
function Warnings({ status }) {
  if (!status) return null;
  const rejected = status.configuration?.rejected;
  return html`
    ${rejected && html`<div class="banner wait" role="alert"><strong>The configuration on disk is refused</strong><span>The old one stays in force. <a href=${to.settings("configuration")}>What is wrong</a></span></div>`}
    ${status.draining && html`<div class="banner wait" role="alert"><strong>This daemon is draining</strong><span>No new work begins; running commands are waited for.</span></div>`}`;
}

/** Who is signed in, and the way out. While there are no keys nobody is. */
function Who() {
  const session = useQuery("/api/session", { every: 60_000 }).data;
  if (!session || session.open) return null;
  const leave = async () => {
    await act("DELETE", "/api/session").catch(() => undefined);
    locked.value = true;
  };
  return html`<button type="button" class="button ghost who" onClick=${leave} title=${`${session.principal} of ${session.tenant}. Signs out.`}>
    <${Icon} of="person" /><span>${session.principal.replace("key:", "")}</span><span class="unseen">: sign out</span></button>`;
}

/** @param {{children?: any}} props */
export const Shell = ({ children }) => (locked.value ? html`<${SignIn} />` : html`<${Frame}>${children}<//>`);

/** @param {{children?: any}} props */
function Frame({ children }) {
  useEffect(bindFrame, []);
  const status = useQuery("/api/status", { topics: ["runs", "slots", "jobs", "nodes", "config"], every: 15_000 });
  useEffect(() => {
    menuOpen.value = false;
  }, [here.value.path]);
  return html`<div class=${`frame ${menuOpen.value ? "menu-open" : ""} ${isLost.value ? "stale" : ""}`}>
    <a class="skip" href="#main">Skip to the page</a>
    <${Side} status=${status.data} />
    ${menuOpen.value && html`<button type="button" class="veil" aria-label="Close the list of pages" onClick=${() => { menuOpen.value = false; }}></button>`}
    <div>
      <${Head} /><${NoSignal} /><${Warnings} status=${status.data} />
      <main id="main" tabindex="-1">${children}</main>
    </div>
    <${Dialogs} /><${PaletteHost} /><${HelpHost} /><${Toasts} />
  </div>`;
}
