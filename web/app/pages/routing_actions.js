// What can be done with recipient pools and recipients; each asks before it does.
import { html } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { plural } from "../lib/format.js";

const encode = encodeURIComponent;
const REASON = { name: "reason", label: "Reason", hint: "Stays with the switch, and in the audit." };

/**
 * Engages or lifts the kill-switch of the version that is shown; when somebody was faster, shows what has changed.
 * @param {import("../lib/routing.js").RecipientPool} pool @param {any} [moved] @returns {import("../ui/dialog.js").Wish}
 */
export function switchWish(pool, moved) {
  const engaged = Boolean(pool.config?.kill_switch);
  return {
    title: engaged ? `Let ${pool.name} route again` : `Stop routing to ${pool.name}`,
    will: html`${moved && html`<p class="bad">${moved}</p>`}${engaged
      ? html`<p><strong>${pool.name}</strong> routes again at once; what waits in its queue is tried, oldest first.</p>`
      : html`<p>No new work goes to <strong>${pool.name}</strong> from now on. Its ${plural(pool.recipient_ids.length, "recipient keeps", "recipients keep")} what they have; nothing is deleted.</p>`}`,
    verb: engaged ? "Let it route" : "Stop routing",
    danger: !engaged,
    fields: [engaged ? REASON : { ...REASON, required: true }],
    request: ({ reason }) => ({ method: "POST", path: `/api/pools/${encode(pool.id)}:set_enabled`, ifMatch: `"${pool.record_version}"`, body: { enabled: engaged, ...(reason ? { reason } : {}) } }),
    cli: ({ reason }) => ["pool", engaged ? "enable" : "disable", pool.name, ...(reason ? ["--reason", reason] : [])],
    done: () => (engaged ? `${pool.name} routes again` : `${pool.name} no longer routes`),
    refused: async (problem) => {
      if (problem.status !== 412) return undefined;
      const { body } = await get(`/api/pools/${encode(pool.id)}`);
      const now = body.config?.kill_switch ? `engaged by ${body.config?.kill_switch_by}${body.config?.kill_switch_reason ? `: ‘${body.config?.kill_switch_reason}’` : ""}` : "off";
      return switchWish(body, `Somebody has changed it meanwhile: it is at version ${body.record_version}, you looked at ${pool.record_version}. The kill-switch is ${now}.`);
    },
  };
}

/** @param {import("../lib/routing.js").Recipient} recipient @returns {import("../ui/dialog.js").Wish} */
export function pauseWish(recipient) {
  const paused = recipient.state === "RECIPIENT_STATE_PAUSED";
  return {
    title: paused ? `Put ${recipient.name} back` : `Take ${recipient.name} out of rotation`,
    will: paused
      ? html`<p><strong>${recipient.name}</strong> is available again, and what waits for it is tried at once.</p>`
      : html`<p><strong>${recipient.name}</strong> gets no new work. It stays a member of its pools, and keeps its ${plural(recipient.capacity?.current ?? 0, "assignment")}.</p>`,
    verb: paused ? "Put back" : "Take out",
    request: () => ({ method: "POST", path: `/api/recipients/${encode(recipient.id)}/${paused ? "resume" : "pause"}` }),
    cli: () => ["recipient", paused ? "resume" : "pause", recipient.id],
    done: () => (paused ? `${recipient.name} is available` : `${recipient.name} is paused`),
  };
}

/** @param {import("../lib/routing.js").RecipientPool} pool @returns {import("../ui/dialog.js").Wish} */
export const resetWish = (pool) => ({
  title: `Reset the capacity of ${pool.name}`,
  will: html`<p>The counters of all ${plural(pool.recipient_ids.length, "recipient")} of <strong>${pool.name}</strong> begin at 0, those of today too. Assignments that are open stay open, and no longer count. This is for counters that no longer tell the truth.</p>`,
  verb: "Reset",
  danger: true,
  request: () => ({ method: "POST", path: `/api/pools/${encode(pool.id)}/capacity/reset` }),
  cli: () => ["pool", "reset", pool.name, "--yes"],
  done: (answer) => `${plural(answer.affected ?? 0, "recipient")} reset`,
});

/** @param {any} campaign @returns {import("../ui/dialog.js").Wish} */
export function campaignWish(campaign) {
  const running = campaign.status === "running";
  return {
    title: running ? `Stop ${campaign.name}` : `Start ${campaign.name}`,
    will: running
      ? html`<p><strong>${campaign.name}</strong> looks at no further decision. What it has found stays.</p>`
      : html`<p><strong>${campaign.name}</strong> looks at decisions from now on, and begins to count anew. Nobody is sent anything.</p>`,
    verb: running ? "Stop" : "Start",
    request: () => ({ method: "PATCH", path: `/api/shadow-campaigns/${encode(campaign.id)}`, ifMatch: `"${campaign.record_version}"`, body: { status: running ? "stopped" : "running" } }),
    done: () => (running ? `${campaign.name} has stopped` : `${campaign.name} looks at decisions`),
  };
}

/** @param {any} campaign @returns {import("../ui/dialog.js").Wish} */
export const campaignGoneWish = (campaign) => ({
  title: `Remove ${campaign.name}`,
  will: html`<p><strong>${campaign.name}</strong> goes, and with it everything it has found. This cannot be taken back.</p>`,
  verb: "Remove",
  danger: true,
  request: () => ({ method: "DELETE", path: `/api/shadow-campaigns/${encode(campaign.id)}` }),
  done: () => `${campaign.name} is gone`,
});
