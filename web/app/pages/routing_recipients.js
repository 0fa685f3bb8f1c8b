// The recipients of a pool: availability, how full each is, weight; taken out of rotation and put back here.
import { html } from "../lib/dom.js";
import { usePages } from "../lib/pages.js";
import { fullness, standing } from "../lib/routing.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, Fault, Loaded } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { pauseWish } from "./routing_actions.js";

/** @param {{recipient: import("../lib/routing.js").Recipient}} props */
function Fullness({ recipient }) {
  const { part, over, full, text, day } = fullness(recipient.capacity);
  return html`<div class="fullness"><span class=${full ? "wait" : ""}>${text}</span>
    <div class="meter" role="img" aria-label=${`${recipient.name}: ${text}`}>${part > 0 && html`<span class=${`part ${over || full ? "over" : ""}`} style=${{ width: `${part * 100}%` }}></span>`}</div>
    ${day && html`<span class="tiny quiet nowrap">${day}</span>`}</div>`;
}

/** @param {{recipient: import("../lib/routing.js").Recipient}} props */
function Standing({ recipient }) {
  const { state, word } = standing(recipient);
  return html`<${State} of=${state} word=${word} />`;
}

/** @param {{pool: import("../lib/routing.js").RecipientPool}} props */
export function Recipients({ pool }) {
  const list = usePages(`/api/pools/${encodeURIComponent(pool.id)}/recipients?order=asc`, { topics: ["routing"], rest: 700, keyOf: (row) => row.id });
  const columns = [
    { key: "name", title: "Recipient", lead: true, cell: (row) => html`<div class="two"><strong>${row.name}</strong><span class="tiny quiet">${[row.type, row.external_id].filter(Boolean).join(" · ")}</span></div>` },
    { key: "state", title: "State", cell: (row) => html`<${Standing} recipient=${row} />` },
    { key: "full", title: "In use", cell: (row) => html`<${Fullness} recipient=${row} />` },
    { key: "weight", title: "Weight", number: true, cell: (row) => row.weight ?? 1 },
    { key: "tags", title: "Tags", cell: (row) => (row.tags?.length ? html`<span class="row wrap">${row.tags.map((tag) => html`<span class="tag">${tag}</span>`)}</span>` : "") },
    { key: "do", title: html`<span class="unseen">Actions</span>`, className: "of-actions", cell: (row) => (row.state === "RECIPIENT_STATE_PAUSED"
      ? html`<${AskButton} className="tiny" wish=${() => pauseWish(row)}><${Icon} of="play" />Put back<span class="unseen"> ${row.name}</span><//>`
      : html`<${AskButton} className="ghost tiny" wish=${() => pauseWish(row)}><${Icon} of="pause" />Take out<span class="unseen"> ${row.name}</span><//>`) },
  ];
  return html`<${Card} title="Recipients" flush><${Loaded} query=${list} lines=${4}>${() => (list.rows.length === 0 ? html`<p class="pad small quiet">Nobody belongs to this pool, so nothing can be assigned.</p>` : html`
    <${List} rows=${list.rows} columns=${columns} keyOf=${(row) => row.id} label=${`Recipients of ${pool.name}`} />
    ${list.moreError && html`<${Fault} error=${list.moreError} again=${list.more} />`}
    <${ListFoot} count=${list.rows.length} what=${list.rows.length === 1 ? "recipient" : "recipients"} more=${list.more} loading=${list.loadingMore} />`)}<//><//>`;
}
