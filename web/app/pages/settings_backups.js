// Copies of the store: the newest ones, and one more.
import { html } from "../lib/dom.js";
import { asCli } from "../lib/clip.js";
import { bytes, plural } from "../lib/format.js";
import { useQuery } from "../lib/store.js";
import { AskButton } from "../ui/dialog.js";
import { Icon } from "../ui/icons.js";
import { List } from "../ui/list.js";
import { Card, Command, Loaded } from "../ui/parts.js";
import { State } from "../ui/state.js";
import { Time } from "../ui/time.js";

/** @type {import("../ui/dialog.js").Wish} */
const WISH = {
  title: "Back up the store",
  will: html`<p>Copies one moment of the whole store to a file that does not exist yet, on the daemon's machine and outside of its state directory. The daemon goes on working. Logs of attempts are not in it.</p>`,
  verb: "Back up",
  fields: [{ name: "path", label: "File, absolute", value: "", required: true, hint: "Such as /var/backups/ductor.redb" }],
  request: ({ path }) => ({ method: "POST", path: "/api/backups", body: { path } }),
  cli: ({ path }) => ["backup", "--to", path],
  done: (answer) => ((answer.data ?? answer).state === "running" ? "The backup goes on" : "The backup is done"),
};

const COLUMNS = [
  { key: "path", title: "File", lead: true, cell: (one) => html`<code>${one.path}</code>` },
  { key: "state", title: "State", cell: (one) => html`<${State} of=${one.state === "done" ? "succeeded" : one.state} title=${one.reason ?? ""} />` },
  { key: "size", title: "Size", number: true, cell: (one) => (one.bytes === null ? "—" : bytes(one.bytes)) },
  { key: "node", title: "By", cell: (one) => one.node },
  { key: "began", title: "Begun", cell: (one) => html`<${Time} at=${one.began_at} form="relative" />` },
];
const SHOWN_MAX = 10;

export function Backups() {
  const backups = useQuery("/api/backups", { topics: ["nodes"] });
  return html`<${Card} title="Backups" more=${html`<${AskButton} wish=${() => WISH}><${Icon} of="copy" />Back up<//>`}>
    <${Loaded} query=${backups}>${(found) => found.length === 0
      ? html`<p class="soft">None was made yet. A backup is one file, made while the daemon works.</p>
        <${Command} text=${asCli(["backup", "--to", "ductor-backup.redb"], "http://127.0.0.1:8470")} />`
      : html`<${List} label="Backups" rows=${found.slice(0, SHOWN_MAX)} columns=${COLUMNS} keyOf=${(one) => one.id} />
        ${found.length > SHOWN_MAX && html`<p class="soft">The newest of ${plural(found.length, "backup")}.</p>`}`}<//>
  <//>`;
}
