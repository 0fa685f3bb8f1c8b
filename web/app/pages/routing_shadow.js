// Shadow campaigns: what another strategy would have decided, beside what was decided.
import { html, useState } from "../lib/dom.js";
import { number, plural } from "../lib/format.js";
import { usePages } from "../lib/pages.js";
import { to } from "../lib/route.js";
import { agreementOf, contenderOf, shiftsOf, worthOf } from "../lib/shadow.js";
import { useQuery } from "../lib/store.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Command, Facts, Fault, Loaded, Note } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { campaignGoneWish, campaignWish } from "./routing_actions.js";

/** Recipients shown before "show all": those that would gain or lose most. */
const SHOWN = 10;
const TURN = { running: 0, draft: 1, stopped: 2 };
const STATES = { running: "running", draft: "pending", stopped: "paused" };

/** How the choices of both are shared out. @param {{share: any[], name: string}} props */
function Shares({ share, name }) {
  const [all, setAll] = useState(false);
  const rows = shiftsOf(share);
  const columns = [
    { key: "who", title: "Recipient", lead: true, cell: (row) => html`<strong class="breaks">${row.name}</strong>` },
    { key: "now", title: "Wins now", number: true, cell: (row) => row.now },
    { key: "then", title: "Would win", number: true, cell: (row) => row.then },
    { key: "shift", title: "Shift", number: true, cell: (row) => html`<span class=${row.shift === 0 ? "quiet" : ""}>${row.said}</span>` },
    { key: "bars", title: "Beside each other", className: "of-shift", cell: (row) => html`<div class="shift" role="img" aria-label=${`${row.name}: ${row.now} now, ${row.then} by the campaign`}>
      <div class="meter"><span class="part of-calm" style=${{ width: row.nowPart }}></span></div><div class="meter"><span class="part" style=${{ width: row.thenPart }}></span></div></div>` },
  ];
  return html`<${List} rows=${all ? rows : rows.slice(0, SHOWN)} columns=${columns} keyOf=${(row) => row.id} label=${`Who would have more by ${name}`} />
    ${!all && rows.length > SHOWN && html`<button type="button" class="button" onClick=${() => setAll(true)}>Show all ${rows.length}</button>`}`;
}

/** @param {{report: any, campaign: any}} props */
function Report({ report, campaign }) {
  if (report.n === 0) return html`<p class="small quiet">${campaign.status === "draft" ? "It has looked at nothing yet: start it." : "It has looked at nothing yet: its pool has decided nothing since it began."}</p>`;
  const { headline, agrees, within, beside } = agreementOf(report);
  const worth = worthOf(report);
  return html`<div class="stack">
    <div><p class="capacity"><strong>${headline}</strong> of ${plural(report.n, "decision")} would be the same</p>
      <div class="meter" role="img" aria-label=${`${campaign.name} agrees with ${headline}`}><span class="part" style=${{ width: agrees }}></span></div>
      <p class="small soft">${[within, ...beside].join(" · ")}</p></div>
    <${Shares} share=${report.share} name=${campaign.name} />
    <${Facts} of=${[
      ...(report.disagreements.length === 0 ? [] : [["Another choice because", html`<span class="row wrap">${report.disagreements.map(({ reason, count }) => html`<span class="tag">${number(count)} × ${reason}</span>`)}</span>`]]),
      ["Worth", html`<span class=${worth.known ? "" : "soft"}>${worth.text}</span>`],
      ["Remembers", report.state_mode === "independent" ? "its own choices" : "the choices of production"],
      ["Takes", `${number(report.micros.p50)} µs mostly, ${number(report.micros.p99)} µs for all but the slowest hundredth; ${number(campaign.max_micros_per_decision ?? 1000)} are allowed`],
      ["Digest", html`<code class="breaks">${report.digest}</code>`],
    ]} /></div>`;
}

/** @param {{campaign: any, nameOf: (id: string) => string}} props */
function Campaign({ campaign, nameOf }) {
  const query = useQuery(`/api/shadow-campaigns/${encodeURIComponent(campaign.id)}/report`, { topics: ["routing"], every: 15_000, rest: 2000 });
  const sampled = campaign.sample_percent ?? 100;
  return html`<article class="card" aria-labelledby=${`campaign-${campaign.id}`}>
    <header><h2 id=${`campaign-${campaign.id}`} class="clip">${campaign.name}</h2><${State} of=${STATES[campaign.status]} word=${campaign.status} chip />
      <div class="more">${campaign.status === "running"
        ? html`<${AskButton} className="ghost" wish=${() => campaignWish(campaign)}><${Icon} of="stop" />Stop<span class="unseen"> ${campaign.name}</span><//>`
        : html`<${AskButton} className="ghost" wish=${() => campaignWish(campaign)}><${Icon} of="play" />Start<span class="unseen"> ${campaign.name}</span><//><${AskButton} className="ghost" wish=${() => campaignGoneWish(campaign)}><${Icon} of="cross" />Remove<span class="unseen"> ${campaign.name}</span><//>`}</div></header>
    <div class="body stack">
      ${campaign.stop_reason && html`<${Note} of="wait" icon="stop">It stopped by itself: ${campaign.stop_reason}.<//>`}
      <p class="small soft"><code class="breaks">${contenderOf(campaign)}</code> in place of what <a href=${to.routing(campaign.pool_id)}>${nameOf(campaign.pool_id)}</a> does${sampled < 100 ? `, over ${sampled} % of its decisions` : ""}${campaign.ends_at && campaign.status === "running" ? html`, until <${Time} at=${campaign.ends_at} />` : ""}. It changes nothing.</p>
      <${Loaded} query=${query} lines=${4}>${(report) => html`<${Report} report=${report} campaign=${campaign} />`}<//>
    </div></article>`;
}

const First = ({ pool }) => html`<div class="nothing">
  <p>There are no shadow campaigns. A campaign looks at what a pool has decided, after the answer is out, and says what another strategy would have decided: how often it agrees, and who would have had more. Nobody is sent anything.</p>
  <${Command} text=${`curl -s -H 'content-type: application/json' -d '{"name": "trial", "pool_id": "${pool ?? "…"}", "candidate": {"strategy": "least_utilized"}, "status": "running"}' ${location.origin}/api/shadow-campaigns`} />
</div>`;

/** @param {{list: any, nameOf: (id: string) => string}} props */
export function Shadow({ list: pools, nameOf }) {
  const list = usePages("/api/shadow-campaigns", { topics: ["routing"], rest: 1000, keyOf: (row) => row.id });
  return html`<${Loaded} query=${list} lines=${6}>${() => (list.rows.length === 0 ? html`<${Card} title="Shadow campaigns"><${First} pool=${pools.rows[0]?.id} /><//>` : html`
    ${[...list.rows].sort((one, other) => TURN[one.status] - TURN[other.status]).map((each) => html`<${Campaign} key=${each.id} campaign=${each} nameOf=${nameOf} />`)}
    ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
    ${list.more && html`<${ListFoot} count=${list.rows.length} what="campaigns" more=${list.more} loading=${list.loadingMore} />`}`)}<//>`;
}

/** What campaigns say of one decision. @param {{shadow: any[]}} props */
export const ShadowOf = ({ shadow }) => html`<${Card} title="What shadow campaigns say"><ul class="points">${shadow.map((each) => html`<li key=${each.campaign}><${State} of=${each.agrees ? "good" : "waiting"} word=${each.agrees ? "agrees" : "differs"} /> <strong>${each.campaign}</strong> <span class="soft">${each.agrees ? "would have chosen the same" : each.winner ? `would have chosen ${each.winner}` : "would have found nobody"}</span></li>`)}</ul><//>`;
