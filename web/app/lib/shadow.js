// What the report of a shadow campaign means, in words and widths. Pure.
import { number } from "./format.js";

const part = (value) => `${(value * 100).toFixed(1)} %`;
const width = (value) => `${Math.min(Math.max(value, 0), 1) * 100}%`;

/** What is compared with production. @param {any} campaign */
export const contenderOf = (campaign) => campaign.candidate?.strategy ?? "a pipeline of its own";

/** How often both choose the same. @param {any} report */
export function agreementOf(report) {
  const { k, n, rate, wilson95 } = report.agreement;
  const within = wilson95 ? `at 95 % between ${part(wilson95[0])} and ${part(wilson95[1])}` : `${number(k)} of ${number(n)}`;
  const beside = [`agreed ${number(k)}, chose another ${number(n - k)}`, `${part(report.total_variation)} of all work would change hands`];
  if (report.no_candidate_rate > 0) beside.push(`finds nobody in ${part(report.no_candidate_rate)}`);
  if (report.errors > 0) beside.push(`${number(report.errors)} evaluations failed`);
  return { headline: part(rate), agrees: width(rate), within, beside };
}

/** A recipient beside itself. @param {any} share */
export function shiftOf(share) {
  const shift = share.candidate - share.production;
  return {
    id: share.recipient_id,
    name: share.recipient ?? `${share.recipient_id} (gone)`,
    now: part(share.production),
    then: part(share.candidate),
    shift,
    said: shift === 0 ? "±0" : `${shift > 0 ? "+" : "−"}${(Math.abs(shift) * 100).toFixed(1)}`,
  };
}

/**
 * Who would gain or lose most first; widths by the largest share of all.
 * @param {any[]} share
 */
export function shiftsOf(share) {
  const most = Math.max(...share.map((one) => Math.max(one.production, one.candidate)), 0) || 1;
  return share.map((one) => ({ ...shiftOf(one), nowPart: width(one.production / most), thenPart: width(one.candidate / most) }))
    .sort((one, other) => Math.abs(other.shift) - Math.abs(one.shift) || one.name.localeCompare(other.name));
}

/** What its choices would have been worth, or why nobody can say. @param {any} report */
export function worthOf(report) {
  const { value } = report;
  if (value) {
    const direct = value.direct ? ` Where both agree the work was worth ${value.direct.mean.toFixed(3)}, which is biased by selection.` : "";
    return { known: true, text: `${value.snips.toFixed(3)} (snips; ips ${value.ips.toFixed(3)}, from ${number(Math.round(value.ess))} comparable decisions).${direct}` };
  }
  if (report.value_reason === "no_overlap") return { known: false, text: "Nobody can say (no_overlap): production never draws, so it never tried what this campaign would have chosen. exploration_epsilon of the pool lets it try." };
  if (report.value_reason === "low_ess") return { known: false, text: "Nobody can say yet (low_ess): fewer than 100 comparable decisions were completed with a value." };
  return { known: false, text: report.value_reason ?? "not known" };
}
