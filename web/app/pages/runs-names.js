// Names of jobs and slot pools for completions, and the zones of jobs. Read once; a new job is found by its full name too.
import { signal, useEffect } from "../lib/dom.js";
import { get, withQuery } from "../lib/api.js";

const PAGES_MAX = 4;
const FRESH_MS = 60_000;

/** `of`: the slot pool of a job.
 * @type {{value: {jobs: string[], pools: string[], zones: Map<string, string>, of: Map<string, string>, at: number}, peek: () => any}}
 */
export const names = signal({ jobs: [], pools: [], zones: new Map(), of: new Map(), at: 0 });

async function load() {
  const jobs = [];
  const zones = new Map();
  const of = new Map();
  let cursor;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const { body, next } = await get(withQuery("/api/jobs", { "pagination.page_size": 500, "pagination.cursor": cursor }));
    for (const job of body) {
      jobs.push(job.name);
      if (job.pool) of.set(job.name, job.pool.name);
      if (job.schedule?.timezone) zones.set(job.name, job.schedule.timezone);
    }
    cursor = next;
    if (!next) break;
  }
  const pools = await get("/pools?entries=none").then(({ body }) => body.map(({ name }) => name), () => []);
  names.value = { jobs, pools, zones, of, at: Date.now() };
}

/** Reads the names once the page has settled. */
export function useNames() {
  useEffect(() => {
    if (Date.now() - names.peek().at < FRESH_MS) return undefined;
    const timer = setTimeout(() => load().catch(() => {}), 400);
    return () => clearTimeout(timer);
  }, []);
}

/** @param {string} job */
export const zoneOf = (job) => names.value.zones.get(job);
