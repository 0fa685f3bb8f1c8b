// The one live feed of the page: what changed, and whether anybody still tells us.
//
// It holds no data. Queries (store.js) listen and read anew what an event touches. A connection that ends is resumed at the
// last event; a hidden page lets go of its connection, so that many tabs do not use up a browser's few.
import { computed, effect, signal } from "./dom.js";
import { open } from "./api.js";
import { readEvents } from "./sse.js";

const SILENT_AFTER_MS = 30_000;
const PAUSES_MS = [500, 1000, 2000, 3000];
/** Failed attempts in a row after which nobody is thought to be there. */
const FAILURES_MAX = 3;

/** The user holds the page still. */
export const held = signal(false);
const hidden = signal(document.visibilityState === "hidden");
const heard = signal(Date.now());
const failures = signal(0);
const connected = signal(false);
/** Ticks once a second; whoever shows a span of time reads it. */
export const now = signal(Date.now());

/** Milliseconds that the daemon's clock is ahead of this one's. */
export const skew = signal(0);

/** @type {Set<(change: {kind: "change" | "resync", topic?: string, id?: string, detail?: string}) => void>} */
const listeners = new Set();

/** `live`, `connecting`, `paused` or `lost`. */
export const state = computed(() => {
  const silent = now.value - heard.value > SILENT_AFTER_MS || failures.value >= FAILURES_MAX;
  if (held.value || hidden.value) return silent && failures.value > 0 ? "lost" : "paused";
  if (silent) return "lost";
  return connected.value ? "live" : "connecting";
});

/** When something was last heard, for the banner. */
export const heardAt = computed(() => heard.value);

/**
 * @param {(change: {kind: "change" | "resync", topic?: string, id?: string, detail?: string}) => void} listener
 * @returns {() => void} ends it
 */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const tell = (change) => listeners.forEach((listener) => listener(change));

let last;
let controller;

function take(event) {
  heard.value = Date.now();
  failures.value = 0;
  if (event.id) last = event.id;
  if (event.comment) return;
  if (event.event === "resync") tell({ kind: "resync" });
  else if (event.event !== "bye") {
    try {
      const { topic, id, detail } = JSON.parse(event.data);
      tell({ kind: "change", topic, id, detail });
    } catch {
      tell({ kind: "resync" });
    }
  }
}

async function follow(signal_) {
  const resumed = last !== undefined;
  /** @type {Record<string, string>} */
  const headers = resumed ? { "Last-Event-ID": last } : {};
  const body = await open("/api/stream", { signal: signal_, headers });
  const wasLost = failures.value > 0 || !resumed;
  connected.value = true;
  failures.value = 0;
  heard.value = Date.now();
  // What was shown before may be older than where the stream begins.
  if (wasLost) tell({ kind: "resync" });
  await readEvents(body, take);
}

async function run(signal_) {
  while (!signal_.aborted) {
    try {
      await follow(signal_);
    } catch {
      if (signal_.aborted) break;
      failures.value += 1;
      // Perhaps another state directory answers at this address now: its feed has other numbers.
      if (failures.value > PAUSES_MS.length) last = undefined;
    }
    connected.value = false;
    const pause = PAUSES_MS[Math.min(failures.value, PAUSES_MS.length) - 1] ?? PAUSES_MS[0];
    await new Promise((go) => setTimeout(go, pause));
  }
  connected.value = false;
}

/** Begins; called once by the page. */
export function begin() {
  setInterval(() => {
    now.value = Date.now();
    // A connection that is open and silent is dead all the same.
    if (connected.value && Date.now() - heard.value > SILENT_AFTER_MS) {
      controller?.abort();
      failures.value = FAILURES_MAX;
      start();
    }
  }, 1000);
  document.addEventListener("visibilitychange", () => {
    hidden.value = document.visibilityState === "hidden";
  });
  effect(() => {
    if (held.value || hidden.value) controller?.abort();
    else start();
  });
}

function start() {
  controller?.abort();
  controller = new AbortController();
  run(controller.signal);
}
