//! Which parts of a recipient a pass can have looked at: those that its rules, its traits and its pipeline name.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use std::collections::BTreeSet;

use super::known::Known;
use super::pass::Request;
use super::pipeline::{self, By, Fallback, Pipeline, Stage};
use super::strategies::Kind;
use crate::expr::Program;

/// What was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reads {
    keys: BTreeSet<String>,
    whole: bool,
    pub(super) tags: bool,
    pub(super) location: bool,
}

impl Reads {
    /// What a pass over this can have looked at.
    pub(super) fn of(request: &Request, read: &Known) -> Reads {
        let mut reads = Reads::default();
        for one in read.traits.iter() {
            reads.keys.insert(one.key.clone());
        }
        for prepared in read.recipient_pools.values().flatten() {
            for program in prepared
                .rules
                .iter()
                .filter_map(|ready| ready.program.as_ref().ok())
            {
                reads.program(program);
            }
            let made = pipeline::of_request(&prepared.recipient_pool, request);
            let own = made
                .as_ref()
                .map_or_else(|| prepared.pipeline.as_ref().ok(), |made| made.as_ref().ok());
            if let Some(pipeline) = own {
                reads.pipeline(pipeline);
            }
        }
        reads
    }

    fn program(&mut self, program: &Program) {
        for path in program.references() {
            let parts: Vec<&str> = path.iter().map(String::as_str).collect();
            match parts.as_slice() {
                ["recipient"] => (self.whole, self.tags, self.location) = (true, true, true),
                ["recipient", "attributes"] => self.whole = true,
                ["recipient", "attributes", key, ..] => drop(self.keys.insert((*key).to_owned())),
                ["recipient", "tags", ..] => self.tags = true,
                ["recipient", "location", ..] => self.location = true,
                _ => {}
            }
        }
    }

    fn by(&mut self, by: &By) {
        match by {
            By::Attribute(key) => drop(self.keys.insert(key.clone())),
            By::Distance => self.location = true,
            By::SlaHeadroom => drop(self.keys.insert("declared_eta".to_owned())),
            _ => {}
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        for program in pipeline.programs() {
            self.program(program);
        }
        for stage in &pipeline.stages {
            match stage {
                Stage::Trait(filter) => drop(self.keys.insert(filter.key.clone())),
                Stage::Score(score) => self.by(&score.by),
                Stage::Sort(keys) => keys.iter().for_each(|key| self.by(&key.by)),
                Stage::Filter(_) => {}
            }
        }
        let mut at = Some(&pipeline.pick.used);
        while let Some(used) = at {
            match used.info.kind {
                Kind::Nearest => self.location = true,
                Kind::SlaDeadline => drop(self.keys.insert("declared_eta".to_owned())),
                Kind::Priority => drop(self.keys.insert(used.params.text("tier").to_owned())),
                _ => {}
            }
            at = used.inner.as_deref();
        }
        for fallback in &pipeline.fallback {
            if let Fallback::Pipeline(next) = fallback {
                self.pipeline(next);
            }
        }
    }

    /// Whether an attribute can have been looked at.
    pub(super) fn attribute(&self, key: &str) -> bool {
        self.whole || self.keys.contains(key)
    }
}
