// Fires to come, for the part of the picture behind now: of one job its own next ones, else the nearest of all, and over
// hours the first of each job in each hour.
import { useMemo } from "../lib/dom.js";
import { withQuery } from "../lib/api.js";
import { firesOf } from "../lib/runs.js";
import { useQuery } from "../lib/store.js";
import { names } from "./runs-names.js";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DAYS_MAX = 7;
const ONE_JOB_MAX = 50;
const ALL_TOPICS = ["runs", "slots", "jobs", "nodes", "config"];

/**
 * @param {any} asked what the list is filtered by
 * @param {number} now @param {number} until where the picture ends
 * @returns {{job: string, at: string, count?: number}[]}
 */
export function useFires(asked, now, until) {
  const job = asked.query.job?.length === 1 ? asked.query.job[0] : undefined;
  const wide = !job && until - now > HOUR_MS;
  const status = useQuery("/api/status", { topics: ALL_TOPICS, every: 15_000 });
  const isScheduled = job !== undefined && names.value.zones.has(job);
  const own = useQuery(isScheduled ? withQuery(`/api/schedules/${encodeURIComponent(job)}/next`, { count: ONE_JOB_MAX }) : null, { topics: ["jobs", "config"], every: 60_000 });
  const days = Math.min(DAYS_MAX, Math.ceil((until - now) / DAY_MS));
  const from = new Date(Math.floor(now / HOUR_MS) * HOUR_MS).toISOString();
  const hours = useQuery(wide ? withQuery("/api/calendar", { from, days }) : null, { topics: ["config"] });
  return useMemo(() => {
    if (job) return firesOf(asked, (own.data?.next ?? []).map(({ instant }) => ({ job, at: instant })), names.peek().of);
    const near = status.data?.next_fires ?? [];
    const known = new Set(near.map((fire) => `${fire.job} ${fire.at}`));
    const later = (hours.data?.hours ?? []).flatMap((hour) => hour.fires).filter((fire) => !known.has(`${fire.job} ${fire.at}`));
    return firesOf(asked, [...near, ...later], names.peek().of);
  }, [asked, job, own.data, status.data?.next_fires, hours.data]);
}
