// Keys: who may call and what they may do; a new one is shown once. Tenants below, for whoever looks after them.
import { html, signal } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { usePages } from "../lib/pages.js";
import { useQuery } from "../lib/store.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { List, ListFoot } from "../ui/list.js";
import { Card, CopyButton, Fault, Note, Skeleton } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";
import { signIn } from "./sign-in.js";

const DAY_MS = 86_400_000;
/** The key that was just made. It is nowhere else, and goes with the page. */
const fresh = signal(/** @type {{name: string, key: string} | undefined} */ (undefined));

const may = (session, scope) => session !== undefined && (session.scopes.includes("admin") || session.scopes.includes(scope));

/** What is asked for as text, like `job:read, run:write`. @param {string} text */
const scopesOf = (text) => text.split(/[\s,]+/).filter(Boolean);
/** @param {Record<string, string>} values */
const wanted = ({ access, scopes }) => (access === "some" ? scopesOf(scopes) : [access]);
/** @param {Record<string, string>} values */
const endOf = ({ days }) => (days ? new Date(Date.now() + Number(days) * DAY_MS).toISOString() : undefined);

/** @param {boolean} open @param {string[]} tenants @returns {import("../ui/dialog.js").Wish} */
const createWish = (open, tenants) => ({
  title: open ? "Make the first key" : "Make a key",
  will: open
    ? html`<p>From then on every request needs a key, this page too. The first one may do everything, so that somebody can make the next.</p>`
    : html`<p>The key is shown once, after this. Nobody can read it again.</p>`,
  verb: "Make it",
  fields: [
    { name: "name", label: "What it is for", value: open ? "admin" : "", required: true },
    { name: "access", label: "It may", type: "choice", value: open ? "admin" : "*:read", choices: open ? [["admin", "do everything"]] : [["*:read", "read everything"], ["some", "do what I name"], ["admin", "do everything"]] },
    { name: "scopes", label: "Scopes", value: "job:read, job:write", required: true, hint: "<noun>:<read, write or delete>, with commas between them", when: ({ access }) => access === "some" },
    ...(open ? [] : /** @type {import("../ui/dialog.js").Field[]} */ ([{ name: "days", label: "It ends", type: "choice", value: "", choices: [["", "when it is revoked"], ["30", "after 30 days"], ["90", "after 90 days"], ["365", "after a year"]] }])),
    ...(tenants.length > 1 && !open ? /** @type {import("../ui/dialog.js").Field[]} */ ([{ name: "tenant", label: "Tenant", type: "choice", value: "default", choices: tenants.map((name) => [name, name]) }]) : []),
  ],
  request: (values) => ({ method: "POST", path: "/api/keys", body: { name: values.name, scopes: wanted(values), expires_at: endOf(values), tenant: values.tenant === "default" ? undefined : values.tenant } }),
  cli: (values) => ["key", "create", values.name, ...wanted(values).flatMap((scope) => ["--scope", scope]), ...(values.days ? ["--expires", `${values.days}d`] : []), ...(values.tenant && values.tenant !== "default" ? ["--for-tenant", values.tenant] : [])],
  done: (answer) => {
    fresh.value = { name: answer.name, key: answer.key };
    // From now on this page needs a key too, and has one.
    if (open) signIn(answer.key).catch(() => undefined);
    return "The key is made";
  },
});

/** @returns {import("../ui/dialog.js").Wish} */
const revokeWish = (key) => ({
  title: `Revoke ${key.name}?`,
  will: html`<p>What uses <strong>${key.name}</strong> stops working at once, and whoever is signed in with it is signed out. It cannot be undone.</p>`,
  verb: "Revoke",
  danger: true,
  request: () => ({ method: "DELETE", path: `/api/keys/${encodeURIComponent(key.id)}` }),
  cli: () => ["key", "revoke", key.id, "--yes"],
  done: () => `${key.name} opens nothing any more`,
});

/** @returns {import("../ui/dialog.js").Wish} */
const tenantWish = () => ({
  title: "Make a tenant",
  will: html`<p>A tenant sees nothing of the others. It has no keys yet: make its first one here, with its name as the tenant.</p>`,
  verb: "Make it",
  fields: [{ name: "name", label: "Name", value: "", required: true, hint: "Lower-case letters, digits, dots, dashes and underscores" }],
  request: ({ name }) => ({ method: "POST", path: "/api/tenants", body: { name } }),
  cli: ({ name }) => ["tenant", "create", name],
  done: (answer) => `${answer.name} is there`,
});

/** Shown once: until it is put away or the page is left. */
function Fresh() {
  const made = fresh.value;
  if (!made) return null;
  return html`<section class="card fresh-key" role="status" aria-label="The new key">
    <header><h2>The key ‘${made.name}’</h2></header>
    <div class="body stack"><p>Copy it now. It is shown this once, and nobody can read it again.</p>
      <div class="command"><code>${made.key}</code><${CopyButton} text=${made.key} /></div>
      <div><button type="button" class="button" onClick=${() => { fresh.value = undefined; }}>I have it</button></div></div>
  </section>`;
}

const columns = (mayEnd) => [
  { key: "name", title: "Key", lead: true, cell: (key) => html`<div><strong>${key.name}</strong><div class="mono quiet tiny">${key.id}</div></div>` },
  { key: "state", title: "State", cell: (key) => html`<${State} of=${key.state} title=${key.revoked_by ? `Revoked by ${key.revoked_by}` : undefined} />` },
  { key: "scopes", title: "May", cell: (key) => html`<span class="row wrap">${key.scopes.map((scope) => html`<span class="tag">${scope}</span>`)}</span>` },
  { key: "used", title: "Last used", cell: (key) => (key.last_used_at ? html`<${Time} at=${key.last_used_at} form="relative" />` : html`<span class="quiet">never</span>`) },
  { key: "made", title: "Made", cell: (key) => html`<span title=${`By ${key.created_by}`}><${Time} at=${key.created_at} form="relative" /></span>` },
  { key: "ends", title: "Ends", cell: (key) => (key.expires_at ? html`<${Time} at=${key.expires_at} form="relative" />` : html`<span class="quiet">—</span>`) },
  { key: "act", title: "", cell: (key) => key.state === "valid" && mayEnd && html`<${AskButton} wish=${() => revokeWish(key)} className="ghost"><${Icon} of="cross" />Revoke<span class="unseen"> ${key.name}</span><//>` },
];

const TENANT_COLUMNS = [
  { key: "name", title: "Tenant", lead: true, cell: (tenant) => html`<strong>${tenant.name}</strong>` },
  { key: "keys", title: "Keys", number: true, cell: (tenant) => tenant.keys },
  { key: "made", title: "Made", cell: (tenant) => (tenant.created_at ? html`<${Time} at=${tenant.created_at} form="relative" />` : html`<span class="quiet">always there</span>`) },
];

function Tenants({ tenants, session }) {
  const make = may(session, "tenant:write") && session.tenant === "default" && html`<${AskButton} wish=${tenantWish}><${Icon} of="plus" />Tenant<//>`;
  return html`<${Card} title="Tenants" flush more=${make}>
    ${tenants.error && html`<${Fault} error=${tenants.error} again=${tenants.reload} />`}
    <${List} label="Tenants" rows=${tenants.data ?? []} columns=${TENANT_COLUMNS} keyOf=${(tenant) => tenant.name} />
  <//>`;
}

export function Keys() {
  const session = useQuery("/api/session", { every: 15_000 }).data;
  const keys = usePages("/api/keys", { topics: ["config"], keyOf: (key) => key.id });
  const tenants = useQuery("/api/tenants", { topics: ["config"] });
  const open = session?.open ?? false;
  const names = (tenants.data ?? []).map((tenant) => tenant.name);
  const make = may(session, "key:write") && html`<${AskButton} wish=${() => createWish(open, names)}><${Icon} of="plus" />Key<//>`;
  return html`<${Fresh} />
    ${open && html`<${Note} of="wait" icon="late">There are no keys: every user of this machine may do everything, and the daemon listens on this machine alone.<//>`}
    ${keys.error && html`<${Fault} error=${keys.error} again=${keys.reload} />`}
    <${Card} title="API keys" flush more=${make}>
      ${keys.data === undefined ? !keys.error && html`<${Skeleton} lines=${3} />` : keys.rows.length === 0 ? html`<p class="soft body-pad">None was made yet.</p>` : html`<${List} label="API keys" rows=${keys.rows} columns=${columns(may(session, "key:delete"))} keyOf=${(key) => key.id} />
      <${ListFoot} count=${keys.rows.length} what=${keys.rows.length === 1 ? "key" : "keys"} more=${keys.more} loading=${keys.loadingMore} />`}
    <//>
    ${names.length > 0 && html`<${Tenants} tenants=${tenants} session=${session} />`}
    ${session && !open && html`<p class="soft small">You are ${session.principal} of the tenant ${session.tenant}, with ${plural(session.scopes.length, "scope")}: ${session.scopes.join(", ")}.</p>`}`;
}
