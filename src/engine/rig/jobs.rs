//! Small builders: a job in one line, and the book that holds it. They know what a test wants to say, nothing else.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::schedule::{ParseOptions, Schedule};
use crate::domain::workflow::definition::tests::sample;
use crate::domain::workflow::definition::{
    CommandLine, ConcurrencyPolicy, Definition, Policy, ScheduleText, SlotDemand,
};
use crate::domain::workflow::graph::build::Graph;
use crate::engine::book::{Book, BookJob, BookSlots, Notify};
use crate::words::names::{JobName, NodeName, SlotPoolName};

/// A job under construction.
#[derive(Debug, Clone)]
pub(super) struct JobPlan(pub(super) Definition);

/// A job without a slot pool that allows several instances.
pub(super) fn job(name: &str) -> JobPlan {
    JobPlan(sample(name, None))
}

impl JobPlan {
    /// It needs one slot of this slot pool.
    pub(super) fn on(mut self, slot_pool: &str) -> JobPlan {
        self.0.steps = sample("x", Some(slot_pool)).steps;
        self
    }

    fn demand(&mut self) -> &mut SlotDemand {
        self.0.steps[0].slots.as_mut().expect("call `on` first")
    }

    /// It needs that many slots.
    pub(super) fn slots(mut self, slots: u32) -> JobPlan {
        self.demand().slots = slots;
        self
    }

    /// Its priority.
    pub(super) fn priority(mut self, priority: i32) -> JobPlan {
        self.demand().priority = priority;
        self
    }

    /// How long it waits.
    pub(super) fn queue_timeout_ms(mut self, ms: u64) -> JobPlan {
        self.demand().queue_timeout_ms = ms;
        self
    }

    /// What it does while an instance is live.
    pub(super) fn policy(mut self, policy: ConcurrencyPolicy) -> JobPlan {
        self.0.concurrency = policy;
        self
    }

    /// It fires by this schedule, in UTC.
    pub(super) fn schedule(mut self, text: &str) -> JobPlan {
        self.0.schedule = Some(ScheduleText {
            text: text.to_owned(),
            seconds: false,
            day_match: None,
            timezone: None,
        });
        self
    }

    /// Changes when it may begin and begin again.
    pub(super) fn with(mut self, edit: impl FnOnce(&mut Policy)) -> JobPlan {
        edit(&mut self.0.policy);
        self
    }

    /// That many attempts follow a failed one, a second, two, four and so on later.
    pub(super) fn retries(self, most: u32) -> JobPlan {
        self.with(|policy| policy.retry.retries_max = Some(most))
    }

    /// What it runs.
    pub(super) fn command(mut self, text: &str) -> JobPlan {
        self.0.steps[0].command.command = CommandLine::Shell(text.to_owned());
        self
    }
}

/// A slot pool of that many slots, with a long queue.
pub(super) fn slot_pool(name: &str, slots: u32) -> (SlotPoolName, BookSlots) {
    slot_pool_of(name, slots, 1_000)
}

/// A slot pool of that many slots and that long a queue.
pub(super) fn slot_pool_of(name: &str, slots: u32, max_queued: u32) -> (SlotPoolName, BookSlots) {
    (SlotPoolName::new(name).unwrap(), BookSlots { slots, max_queued })
}

/// A book of these jobs; each has version 1 until it is published.
pub(super) fn book(node: &str, slot_pools: &[(SlotPoolName, BookSlots)], jobs: &[JobPlan]) -> Book {
    let entry = |plan: &JobPlan| (plan.0.name.clone(), book_job(&plan.0, 1));
    Book {
        node: NodeName::new(node).unwrap(),
        jobs: jobs.iter().map(entry).collect(),
        slot_pools: slot_pools.iter().cloned().collect::<BTreeMap<_, _>>(),
        raise_immediately: false,
        locks_trusted: true,
        notify: Notify::default(),
        egress: [].into(),
        pipeline_mode: crate::domain::routing::objects::PipelineMode::Linear,
        alert_secret: None,
    }
}

/// A definition as a book has it.
pub(super) fn book_job(definition: &Definition, version: u32) -> BookJob {
    BookJob {
        definition: Arc::new(definition.clone()),
        version,
        digest: definition.digest(),
        graph: definition
            .graph
            .as_deref()
            .map(|document| Arc::new(Graph::build(document.clone()).unwrap())),
        content: definition.stored().1,
        reports: Arc::default(),
        schedule: definition.schedule.as_ref().map(|text| {
            let options = ParseOptions {
                seconds: text.seconds,
                day_match: None,
                timezone: text.timezone.as_deref(),
                job_name: definition.name.as_str(),
            };
            Arc::new(Schedule::parse(&text.text, options).unwrap())
        }),
    }
}

/// A job's name.
pub(super) fn name(text: &str) -> JobName {
    JobName::new(text).unwrap()
}

/// A slot pool's name.
pub(super) fn slot_pool_name(text: &str) -> SlotPoolName {
    SlotPoolName::new(text).unwrap()
}
