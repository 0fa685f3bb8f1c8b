// What the report of a shadow campaign means: agreement, who would have more, and what nobody can say.
import assert from "node:assert/strict";
import { test } from "node:test";
import { agreementOf, contenderOf, shiftOf, shiftsOf, worthOf } from "../../web/app/lib/shadow.js";

const report = (fields = {}) => ({ n: 100, agreement: { k: 61, n: 100, rate: 0.61, wilson95: [0.512, 0.7] }, total_variation: 0.1, no_candidate_rate: 0, errors: 0, value: null, value_reason: "no_overlap", ...fields });

test("agreement is a share, its interval, and what else happened", () => {
  assert.deepEqual(agreementOf(report()), {
    headline: "61.0 %",
    agrees: "61%",
    within: "at 95 % between 51.2 % and 70.0 %",
    beside: ["agreed 61, chose another 39", "10.0 % of all work would change hands"],
  });
  const more = agreementOf(report({ no_candidate_rate: 0.02, errors: 3 })).beside;
  assert.deepEqual(more.slice(2), ["finds nobody in 2.0 %", "3 evaluations failed"]);
});

test("a shift has a sign, and somebody who is gone keeps an id", () => {
  assert.equal(shiftOf({ recipient: "a", recipient_id: "1", production: 0.5, candidate: 0.4 }).said, "−10.0");
  assert.equal(shiftOf({ recipient: "a", recipient_id: "1", production: 0.4, candidate: 0.5 }).said, "+10.0");
  assert.equal(shiftOf({ recipient: "a", recipient_id: "1", production: 0, candidate: 0 }).said, "±0");
  assert.equal(shiftOf({ recipient: null, recipient_id: "1", production: 0, candidate: 0 }).name, "1 (gone)");
});

test("what nobody can know is said plainly", () => {
  assert.match(worthOf(report()).text, /no_overlap.*never draws/);
  assert.match(worthOf(report({ value_reason: "low_ess" })).text, /low_ess/);
  const known = worthOf(report({ value: { snips: 0.5, ips: 0.25, ess: 120.4, direct: { mean: 1, n: 3 } } }));
  assert.equal(known.known, true);
  assert.match(known.text, /^0\.500 \(snips; ips 0\.250, from 120 comparable decisions\)\. .*biased/);
});

test("a campaign is called by what it compares", () => {
  assert.equal(contenderOf({ candidate: { strategy: "nearest" } }), "nearest");
  assert.equal(contenderOf({ candidate: { pipeline: { stages: [] } } }), "a pipeline of its own");
});

test("who would gain or lose most comes first, and the longest bar is full", () => {
  const share = [["a", 0.25, 0.25], ["b", 0.5, 0.1], ["c", 0.25, 0.3]].map(([recipient, production, candidate]) => ({ recipient, recipient_id: recipient, production, candidate }));
  const rows = shiftsOf(share);
  assert.deepEqual(rows.map((row) => row.name), ["b", "c", "a"]);
  assert.deepEqual([rows[0].nowPart, rows[0].thenPart], ["100%", "20%"]);
  assert.deepEqual(shiftsOf([]), []);
});
