// What the page shows, by the path it was read from. A query lives while somebody shows it, is read anew when an event
// touches it, and keeps its last good answer while a newer one is under way or cannot be had.
import { signal, useEffect, useMemo } from "./dom.js";
import { get } from "./api.js";
import { held, listen } from "./live.js";

const COALESCE_MS = 250;
/** A read that takes long is not repeated at once: the daemon has other work. */
const REST_FACTOR = 3;
const KEPT_MS = 60_000;

/** @typedef {{data: any, next?: string, rest: any, etag?: string, error: any, loading: boolean, at: number}} Answer */

class Query {
  /** @param {string} path @param {string[]} topics @param {((change: object) => boolean) | undefined} touches @param {number} [rest] */
  constructor(path, topics, touches, rest = 0) {
    this.rest = rest;
    this.path = path;
    this.topics = topics;
    this.touches = touches;
    this.users = 0;
    /** @type {{value: Answer, peek: () => Answer}} */
    this.answer = signal({ data: undefined, rest: {}, error: undefined, loading: true, at: 0 });
    this.timer = undefined;
    this.busy = false;
    this.again = false;
    this.restUntil = 0;
  }

  concerns(change) {
    if (change.kind === "resync") return true;
    const group = change.topic?.split(".")[0] ?? "";
    return this.topics.includes(GROUPS[group] ?? group) && (this.touches?.(change) ?? true);
  }

  soon() {
    if (this.timer !== undefined) return;
    const wait = Math.max(COALESCE_MS, this.restUntil - Date.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.read();
    }, wait);
  }

  async read() {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    const began = Date.now();
    try {
      const { body, next, rest, etag } = await get(this.path);
      this.answer.value = { data: body, next, rest, etag, error: undefined, loading: false, at: Date.now() };
    } catch (error) {
      this.answer.value = { ...this.answer.peek(), error, loading: false };
    }
    this.busy = false;
    this.restUntil = Date.now() + Math.max(this.rest, (Date.now() - began) * REST_FACTOR);
    if (this.again) {
      this.again = false;
      if (this.users > 0) this.soon();
    }
  }
}

/** Heads of the feed's topics, and what pages call them. */
const GROUPS = { run: "runs", report: "runs", pool: "slots", job: "jobs", node: "nodes", config: "config", workflow: "workflows", checkpoint: "runs", routing: "routing" };

/** @type {Map<string, Query>} */
const queries = new Map();

listen((change) => {
  if (held.peek()) return;
  for (const query of queries.values()) {
    if (query.users > 0 && query.concerns(change)) query.soon();
  }
});

/**
 * What is at a path, kept true by the feed. `null` as the path asks nothing.
 * @param {string | null} path
 * @param {{topics?: string[], touches?: (change: {topic?: string, id?: string, detail?: string}) => boolean, every?: number, rest?: number}} [options] `rest`: milliseconds between two reads at least
 * @returns {Answer & {reload: () => void}}
 */
export function useQuery(path, options = {}) {
  const query = useMemo(() => {
    if (path === null) return new Query("", [], undefined);
    let known = queries.get(path);
    if (!known) {
      known = new Query(path, options.topics ?? [], options.touches, options.rest);
      queries.set(path, known);
    }
    return known;
  }, [path]);
  useEffect(() => {
    if (path === null) return undefined;
    query.users += 1;
    if (!query.busy) query.read();
    const timer = options.every ? setInterval(() => !held.peek() && query.read(), options.every) : undefined;
    return () => {
      clearInterval(timer);
      query.users -= 1;
      setTimeout(() => {
        if (query.users === 0 && queries.get(path) === query) queries.delete(path);
      }, KEPT_MS);
    };
  }, [path, query, options.every]);
  const answer = query.answer.value;
  return { ...answer, loading: path !== null && answer.loading, reload: () => query.read() };
}

/** Reads everything anew that is shown: after an action, whose events may be late. */
export function refresh() {
  for (const query of queries.values()) if (query.users > 0) query.soon();
}
