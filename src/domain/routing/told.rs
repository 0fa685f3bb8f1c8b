//! An explanation as text, straight from what is known: its members stand in the order of their names, as everything does that
//! is told of a decision, so that one decision has one text. A value of JSON is made only where somebody asks for one.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;

use super::explanation::{Explanation, HopLine, NearestMiss, Numbers, StageLine, Verdict};
use super::numbers;
use super::objects::Explain;
use super::reason::Reason;

/// An explanation, as much of it as is asked for.
pub(super) struct Told<'e> {
    explanation: &'e Explanation,
    explain: Explain,
    with_times: bool,
}

impl<'e> Told<'e> {
    pub(super) fn new(explanation: &'e Explanation, explain: Explain, with_times: bool) -> Told<'e> {
        Told {
            explanation,
            explain,
            with_times,
        }
    }
}

impl Serialize for Told<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let explanation = self.explanation;
        let several_hops = explanation.hops.len() > 1;
        let kept = explanation.kept(self.explain);
        let left_out = explanation.candidates.len() - kept.len();
        let candidates = List(kept.into_iter().map(|verdict| Line {
            verdict,
            several_hops,
        }));
        let stages = explanation.stages.iter().map(|line| Stage {
            line,
            several_hops,
            with_times: self.with_times,
        });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("candidates", &candidates)?;
        map.serialize_entry("histogram", &explanation.histogram())?;
        map.serialize_entry("hops", &List(explanation.hops.iter().map(Hop)))?;
        if left_out > 0 {
            map.serialize_entry("left_out", &left_out)?;
        }
        if let Some(miss) = &explanation.nearest_miss {
            map.serialize_entry("nearest_miss", &Miss(miss))?;
        }
        let rules: Vec<_> = explanation
            .rules
            .iter()
            .map(super::explanation::RuleLine::to_json)
            .collect();
        map.serialize_entry("rules", &rules)?;
        map.serialize_entry("stages", &List(stages))?;
        map.end()
    }
}

/// What an iterator gives, as a list.
struct List<I>(I);

impl<I: Iterator + Clone> Serialize for List<I>
where
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

struct Line<'e> {
    verdict: &'e Verdict,
    several_hops: bool,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let verdict = self.verdict;
        let mut map = serializer.serialize_map(None)?;
        if !verdict.also.is_empty() {
            map.serialize_entry("also", &verdict.also)?;
        }
        if self.several_hops {
            map.serialize_entry("hop", &verdict.hop)?;
        }
        if let Some(numbers) = &verdict.numbers {
            map.serialize_entry("numbers", numbers)?;
        }
        if let Some(reason) = &verdict.reason {
            map.serialize_entry("reason", reason)?;
        }
        map.serialize_entry("recipient", &verdict.recipient.name)?;
        map.serialize_entry("recipient_id", &verdict.recipient.id)?;
        map.serialize_entry("stage", &verdict.stage)?;
        map.serialize_entry("verdict", verdict.word())?;
        map.end()
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (used, limit) = self.utilization;
        let mut map = serializer.serialize_map(None)?;
        if let Some(cur) = self.cur {
            map.serialize_entry("cur", &cur)?;
        }
        map.serialize_entry("idle_ms", &self.idle_ms)?;
        if let Some(score) = self.score {
            map.serialize_entry("score", &numbers::rounded(score))?;
        }
        map.serialize_entry("utilization", &Share(used, limit))?;
        map.serialize_entry("w_micro", &self.w_micro)?;
        map.end()
    }
}

struct Share(u64, u64);

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", self.0, self.1))
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // These stand in every decision as often as it has candidates; the others are few.
        let (first, second) = match self {
            Reason::LostTurn {
                current,
                winner_current,
            } => (("current", *current), ("winner_current", *winner_current)),
            Reason::CapacityConcurrent { current, max } => {
                (("current", i64::from(*current)), ("max", i64::from(*max)))
            }
            Reason::LostScore {
                score,
                winner,
                margin,
            } => {
                let mut map = serializer.serialize_map(Some(4))?;
                map.serialize_entry("code", self.code())?;
                map.serialize_entry("margin", &numbers::rounded(*margin))?;
                map.serialize_entry("score", &numbers::rounded(*score))?;
                map.serialize_entry("winner", &numbers::rounded(*winner))?;
                return map.end();
            }
            other => return other.to_json().serialize(serializer),
        };
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("code", self.code())?;
        map.serialize_entry(first.0, &first.1)?;
        map.serialize_entry(second.0, &second.1)?;
        map.end()
    }
}

#[derive(Clone, Copy)]
struct Hop<'e>(&'e HopLine);

impl Serialize for Hop<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let hop = self.0;
        json!({
            "pool": hop.recipient_pool, "pool_id": hop.id, "depth": hop.depth,
            "considered": hop.considered, "eligible": hop.eligible,
        })
        .serialize(serializer)
    }
}

struct Miss<'e>(&'e NearestMiss);

impl Serialize for Miss<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("recipient", &self.0.recipient.name)?;
        map.serialize_entry("recipient_id", &self.0.recipient.id)?;
        map.serialize_entry("would_win_if", &self.0.would_win_if)?;
        map.end()
    }
}

struct Stage<'e> {
    line: &'e StageLine,
    several_hops: bool,
    with_times: bool,
}

impl Serialize for Stage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let stage = self.line;
        let mut members: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
        members.insert("n", json!(stage.n));
        members.insert("kind", json!(stage.kind));
        if self.several_hops {
            members.insert("hop", json!(stage.hop));
        }
        if let Some((name, value)) = &stage.with {
            members.insert(name, json!(value));
        }
        if let Some(how) = stage.how {
            members.insert("how", json!(how));
        }
        members.insert("in", json!(stage.entered));
        members.insert("out", json!(stage.left));
        if self.with_times {
            members.insert("micros", json!(stage.micros));
        }
        let behind = members.split_off("state");
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in members {
            map.serialize_entry(name, &value)?;
        }
        if !stage.moved.is_empty() {
            map.serialize_entry("state", &Moved(stage))?;
        }
        for (name, value) in behind {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// Where members stood after and before, each side by name; with the id when two have the same.
struct Moved<'e>(&'e StageLine);

impl Serialize for Moved<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let moved = &self.0.moved;
        let mut names: Vec<&str> = moved
            .iter()
            .map(|(recipient, ..)| recipient.name.as_str())
            .collect();
        names.sort_unstable();
        let is_shared = |name: &str| {
            let first = names.partition_point(|other| *other < name);
            names.get(first + 1).is_some_and(|next| *next == name)
        };
        let lines = moved.iter().map(|(recipient, before, after)| {
            let label = match recipient.name.as_str() {
                name if is_shared(name) => Cow::Owned(format!("{name} ({})", recipient.id)),
                name => Cow::Borrowed(name),
            };
            (label, *before, *after)
        });
        let mut lines: Vec<MovedLine<'_>> = lines.collect();
        lines.sort_unstable();
        lines.dedup_by(|next, line| next.0 == line.0);
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("after", &Side(&lines, |line| line.2))?;
        map.serialize_entry("before", &Side(&lines, |line| line.1))?;
        map.end()
    }
}

type MovedLine<'l> = (Cow<'l, str>, i64, i64);

struct Side<'l>(&'l [MovedLine<'l>], fn(&MovedLine<'l>) -> i64);

impl Serialize for Side<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|line| (&line.0, self.1(line))))
    }
}
