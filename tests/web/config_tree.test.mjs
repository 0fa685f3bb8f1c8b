// The configuration as lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import { configLines, plain, reloadWords } from "../../web/app/lib/config_tree.js";

const CONFIG = {
  jobs: [{ name: "export", command: "tar c /", user: null, policy: { retry: { initialDelayMs: 1000 } } }, { name: "import", command: "cat", user: null, policy: {} }],
  node: { name: null },
  server: { listen: "127.0.0.1:1", maxBodyBytes: 4194304, allowedHosts: [] },
};
const shown = (options) => configLines(CONFIG, options).lines.map((line) => `${" ".repeat(line.depth)}${line.key}${line.value === undefined ? "" : `=${line.value}`}`);

test("settings stand before jobs, jobs begin folded, what is not set is left out", () => {
  assert.deepEqual(shown(), ["server", " listen=127.0.0.1:1", " maxBodyBytes=4194304", "jobs", " export", " import"]);
  assert.equal(configLines(CONFIG).lines[2].hint, "4.0 MiB");
  assert.equal(configLines(CONFIG).lines[4].href, "/ui/jobs/export");
  assert.ok(shown({ all: true }).includes(" allowedHosts=[]"));
});

test("folding", () => {
  const open = shown({ folded: new Set(["jobs.export", "server"]) });
  assert.deepEqual(open, ["server", "jobs", " export", "  command=tar c /", "  policy", "   retry", "    initialDelayMs=1000", " import"]);
});

test("a search opens what it finds, and a name found keeps what is in it folded", () => {
  assert.deepEqual(shown({ find: "CAT" }), ["jobs", " import", "  command=cat"]);
  const named = configLines(CONFIG, { find: "export" });
  assert.deepEqual(named.lines.map(({ path, open }) => [path, open]), [["jobs", true], ["jobs.export", false]]);
  assert.equal(named.found, 1);
  assert.deepEqual(shown({ find: "export", folded: new Set(["jobs.export"]) }).slice(0, 3), ["jobs", " export", "  command=tar c /"]);
  assert.equal(configLines(CONFIG, { find: "nowhere" }).lines.length, 0);
});

test("no more lines than asked for", () => {
  const { lines, more } = configLines(CONFIG, { max: 2 });
  assert.deepEqual([lines.length, more], [2, 4]);
});

test("what a reload did", () => {
  const nothing = { jobs: { added: [], changed: [], removed: [] }, pools: { added: [], changed: [], removed: [] }, settings: [], needs_restart: [], cancelled_entries: 0 };
  assert.deepEqual(reloadWords(nothing), []);
  const some = { ...nothing, jobs: { added: ["a"], changed: [{ name: "b", keys: ["schedule"] }], removed: ["c", "d"] }, needs_restart: [{ key: "server.listen", from: "x", to: null }], cancelled_entries: 1 };
  assert.deepEqual(reloadWords(some).map(({ what, names }) => [what, names]), [
    ["1 job added", ["a"]],
    ["1 job changed", ["b (schedule)"]],
    ["2 jobs removed", ["c", "d"]],
    ["1 setting needs a restart", ["server.listen: x → not set"]],
    ["1 waiting entry was cancelled: the job was changed, disabled or removed", []],
  ]);
  assert.equal(plain([1]), "[1]");
});
