//! Random graphs for the model: a plan that is both written as a document and read by the model itself.

use proptest::prelude::*;
use serde_json::{Value, json};

/// What an expression is, without the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tri {
    True,
    False,
    Fault,
}

impl Tri {
    fn text(self) -> &'static str {
        match self {
            Tri::True => "1 < 2",
            Tri::False => "1 > 2",
            Tri::Fault => "input.missing.deep == 1",
        }
    }
}

/// When an edge is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Success,
    Failure,
    Always,
    Condition(Tri),
}

/// What an incoming step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joins {
    AllSuccess,
    AllDone,
    AnySuccess,
    NoneFailed,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Does {
    Task,
    Command,
    Sensor,
    /// Seconds that it waits until its work is done.
    Route(Option<u64>),
    /// A number.
    Number(i64),
    Fault,
    /// One of the steps that follow, or the default.
    Switch {
        cases: Vec<(bool, usize)>,
        default: Option<usize>,
    },
    /// Seconds.
    Wait(u64),
    /// `None`: the list is a fault.
    Scatter {
        items: Option<u32>,
        parallel: Option<u32>,
        tolerated: u32,
        body: Plan,
    },
    Gather(usize),
    Child {
        waits: bool,
    },
    /// Seconds that it waits.
    Checkpoint(Option<u64>),
    Approval {
        skips: bool,
        patience: Option<u64>,
    },
    Fail,
    /// False: its output is a fault.
    Succeed(bool),
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) does: Does,
    pub(super) when: Option<Tri>,
    pub(super) join: Joins,
    pub(super) attempts: u32,
    /// Seconds between attempts.
    pub(super) interval: u64,
    pub(super) goes_on: bool,
    /// Seconds.
    pub(super) total: Option<u64>,
    pub(super) attempt: Option<u64>,
    pub(super) queue: Option<u64>,
    /// It waits for slots before each attempt.
    pub(super) pooled: bool,
}

/// Steps and edges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// From, to, when; in order.
    pub(super) edges: Vec<(usize, usize, When)>,
}

impl Step {
    pub(super) fn is_executed(&self) -> bool {
        matches!(
            self.does,
            Does::Task | Does::Command | Does::Sensor | Does::Route(_)
        )
    }
}

/// The name of a step below that prefix.
pub(super) fn name(prefix: &str, place: usize) -> String {
    format!("{prefix}s{place}")
}

fn seconds(number: u64) -> String {
    format!("{number}s")
}

impl Plan {
    /// The document that is posted.
    pub(super) fn document(&self, run_timeout: Option<u64>) -> Value {
        let mut document = self.body("");
        document["family_slug"] = json!("w");
        if let Some(limit) = run_timeout {
            document["run_timeout"] = json!(seconds(limit));
        }
        document
    }

    fn body(&self, prefix: &str) -> Value {
        let steps = self.steps.iter().enumerate();
        let steps: Vec<Value> = steps.map(|(at, step)| step.written(prefix, at)).collect();
        let edges = self.edges.iter().map(|(from, to, when)| {
            let (word, condition) = match when {
                When::Success => ("EDGE_TYPE_SUCCESS", None),
                When::Failure => ("EDGE_TYPE_FAILURE", None),
                When::Always => ("EDGE_TYPE_ALWAYS", None),
                When::Condition(tri) => ("EDGE_TYPE_CONDITION", Some(tri.text())),
            };
            let mut edge =
                json!({"source_ref": name(prefix, *from), "target_ref": name(prefix, *to), "type": word});
            if let Some(condition) = condition {
                edge["condition"] = json!(condition);
            }
            edge
        });
        json!({"steps": steps, "edges": edges.collect::<Vec<_>>()})
    }
}

impl Step {
    fn written(&self, prefix: &str, at: usize) -> Value {
        let own = name(prefix, at);
        let (word, args) = self.args(prefix, &own);
        let join = match self.join {
            Joins::AllSuccess => "all_success",
            Joins::AllDone => "all_done",
            Joins::AnySuccess => "any_success",
            Joins::NoneFailed => "none_failed",
        };
        let mut step = json!({"ref": own, "type": word, "args": args, "join": join,
            "on_error": if self.goes_on { "continue" } else { "fail" }});
        if let Some(when) = self.when {
            step["when"] = json!(when.text());
        }
        let mut limits = serde_json::Map::new();
        for (key, limit) in [
            ("total", self.total),
            ("attempt", self.attempt),
            ("queue", self.queue),
        ] {
            if let Some(limit) = limit {
                limits.insert(key.to_owned(), json!(seconds(limit)));
            }
        }
        if !limits.is_empty() {
            step["timeouts"] = Value::Object(limits);
        }
        if self.is_executed() {
            let interval = seconds(self.interval);
            step["retry"] = json!({"max_attempts": self.attempts, "initial_interval": interval, "coefficient": 1.0,
                "max_interval": interval, "jitter": 0.0, "non_retryable": ["fatal"]});
        }
        step
    }

    fn args(&self, prefix: &str, own: &str) -> (&'static str, Value) {
        match &self.does {
            Does::Task => ("STEP_TYPE_TASK", json!({"queue": "q"})),
            Does::Command => ("STEP_TYPE_COMMAND", json!({"command": "true"})),
            Does::Sensor => (
                "STEP_TYPE_SENSOR",
                json!({"command": "true", "poke_interval": "2s", "poke_timeout": "5s"}),
            ),
            Does::Route(patience) => {
                let args = json!({"work": {"kind": "'t'"}, "wait": "completion"});
                ("STEP_TYPE_ROUTE", patient(args, *patience))
            }
            Does::Number(number) => (
                "STEP_TYPE_DATAFLOW",
                json!({"operation": "project", "project": {"v": number.to_string()}}),
            ),
            Does::Fault => (
                "STEP_TYPE_DATAFLOW",
                json!({"operation": "project", "project": {"v": "input.missing.deep"}}),
            ),
            Does::Switch { cases, default } => {
                let cases = cases.iter().map(|(holds, target)| {
                    let when = if *holds { Tri::True } else { Tri::False };
                    json!({"when": when.text(), "ref": name(prefix, *target)})
                });
                let mut args = json!({"cases": cases.collect::<Vec<_>>()});
                if let Some(default) = default {
                    args["default"] = json!(name(prefix, *default));
                }
                ("STEP_TYPE_SWITCH", args)
            }
            Does::Wait(limit) => ("STEP_TYPE_WAIT", json!({"duration": seconds(*limit)})),
            Does::Scatter {
                items,
                parallel,
                tolerated,
                body,
            } => {
                let list: Vec<u32> = (0..items.unwrap_or(0)).collect();
                let items = items.map_or("input.missing.deep".to_owned(), |_| json!(list).to_string());
                let mut args =
                    json!({"items": items, "tolerated_failures": tolerated, "body": body.body(own)});
                if let Some(parallel) = parallel {
                    args["max_parallel"] = json!(parallel);
                }
                ("STEP_TYPE_SCATTER", args)
            }
            Does::Gather(from) => ("STEP_TYPE_GATHER", json!({"from": name(prefix, *from)})),
            Does::Child { waits } => (
                "STEP_TYPE_SUBWORKFLOW",
                json!({"family_slug": "other", "wait": waits}),
            ),
            Does::Checkpoint(limit) => ("STEP_TYPE_CHECKPOINT", patient(json!({}), *limit)),
            Does::Approval { skips, patience } => {
                let word = if *skips { "skip" } else { "fail" };
                (
                    "STEP_TYPE_APPROVAL",
                    patient(json!({"on_reject": word}), *patience),
                )
            }
            Does::Fail => ("STEP_TYPE_FAIL", json!({"code": "stop", "message": "no"})),
            Does::Succeed(true) => ("STEP_TYPE_SUCCEED", json!({"output": "42"})),
            Does::Succeed(false) => ("STEP_TYPE_SUCCEED", json!({"output": "input.missing.deep"})),
        }
    }
}

fn patient(mut args: Value, limit: Option<u64>) -> Value {
    if let Some(limit) = limit {
        args["timeout"] = json!(seconds(limit));
    }
    args
}

fn tri() -> impl Strategy<Value = Tri> {
    prop_oneof![6 => Just(Tri::True), 3 => Just(Tri::False), 1 => Just(Tri::Fault)]
}

fn limit(weight: u32) -> impl Strategy<Value = Option<u64>> {
    prop_oneof![8 => Just(None), weight => (1..8u64).prop_map(Some)]
}

fn does(nested: u32) -> BoxedStrategy<Does> {
    let simple = prop_oneof![
        8 => Just(Does::Task),
        4 => Just(Does::Command),
        2 => Just(Does::Sensor),
        3 => limit(4).prop_map(Does::Route),
        5 => (0..9i64).prop_map(Does::Number),
        1 => Just(Does::Fault),
        3 => (0..4u64).prop_map(Does::Wait),
        2 => any::<bool>().prop_map(|waits| Does::Child { waits }),
        2 => limit(4).prop_map(Does::Checkpoint),
        2 => (any::<bool>(), limit(4)).prop_map(|(skips, patience)| Does::Approval { skips, patience }),
        1 => any::<bool>().prop_map(|holds| Does::Succeed(!holds)),
        1 => Just(Does::Fail),
        // Its targets and its scatter are chosen when the edges are.
        3 => (proptest::collection::vec((any::<bool>(), Just(0)), 1..3), proptest::option::of(Just(0)))
            .prop_map(|(cases, default)| Does::Switch { cases, default }),
    ];
    if nested == 0 {
        return simple.boxed();
    }
    let scatter = (
        prop_oneof![1 => Just(None), 9 => (0..4u32).prop_map(Some)],
        proptest::option::of(1..3u32),
        0..3u32,
        plan(1..4, nested - 1),
    );
    let scatter = scatter.prop_map(|(items, parallel, tolerated, body)| Does::Scatter {
        items,
        parallel,
        tolerated,
        body,
    });
    prop_oneof![5 => simple, 1 => scatter].boxed()
}

fn step(nested: u32) -> impl Strategy<Value = Step> {
    let join = prop_oneof![
        5 => Just(Joins::AllSuccess),
        2 => Just(Joins::AllDone),
        2 => Just(Joins::AnySuccess),
        2 => Just(Joins::NoneFailed),
    ];
    let when = prop_oneof![6 => Just(None), 1 => tri().prop_map(Some)];
    let times = (limit(1), limit(1), limit(1));
    (
        does(nested),
        when,
        join,
        1..4u32,
        0..3u64,
        proptest::bool::weighted(0.2),
        times,
        proptest::bool::weighted(0.3),
    )
        .prop_map(
            |(does, when, join, attempts, interval, goes_on, (total, attempt, queue), pooled)| {
                let mut step = Step {
                    does,
                    when,
                    join,
                    attempts,
                    interval,
                    goes_on,
                    total,
                    attempt: None,
                    queue: None,
                    pooled: false,
                };
                if step.is_executed() {
                    step.queue = queue;
                    step.pooled = pooled;
                    // The worker of a process keeps this time itself.
                    step.attempt = attempt.filter(|_| step.does == Does::Task);
                }
                step
            },
        )
}

/// A random plan of so many steps, with scatters so deep.
pub(super) fn plan(size: std::ops::Range<usize>, nested: u32) -> BoxedStrategy<Plan> {
    let edge = prop_oneof![
        6 => Just(When::Success),
        2 => Just(When::Failure),
        2 => Just(When::Always),
        2 => tri().prop_map(When::Condition),
    ];
    let steps = proptest::collection::vec((step(nested), any::<u16>()), size);
    let edges = proptest::collection::vec((any::<u16>(), any::<u16>(), edge), 0..16);
    (steps, edges)
        .prop_map(|(steps, edges)| joined(steps, edges))
        .boxed()
}

/// Edges go forward only; a switch chooses among what follows it, and a scatter may be gathered.
fn joined(steps: Vec<(Step, u16)>, wishes: Vec<(u16, u16, When)>) -> Plan {
    let count = steps.len();
    let mut edges: Vec<(usize, usize, When)> = Vec::new();
    for (from, to, when) in wishes {
        if count < 2 {
            break;
        }
        let to = 1 + usize::from(to) % (count - 1);
        let from = usize::from(from) % to;
        if !edges.iter().any(|edge| (edge.0, edge.1) == (from, to)) {
            edges.push((from, to, when));
        }
    }
    let mut plan: Vec<Step> = Vec::with_capacity(count);
    for (at, (mut step, salt)) in steps.into_iter().enumerate() {
        let scatters = plan.iter().enumerate();
        let scatter = scatters
            .filter(|(_, step)| matches!(step.does, Does::Scatter { .. }))
            .map(|(at, _)| at)
            .next_back();
        if let (Some(scatter), 0..=2) = (scatter, salt % 4)
            && !matches!(step.does, Does::Scatter { .. })
        {
            step.does = Does::Gather(scatter);
            (step.attempt, step.queue, step.pooled) = (None, None, false);
            if !edges.iter().any(|edge| (edge.0, edge.1) == (scatter, at)) {
                edges.push((scatter, at, When::Always));
            }
        }
        if let Does::Switch { cases, default } = &mut step.does {
            let targets: Vec<usize> = edges
                .iter()
                .filter(|edge| edge.0 == at)
                .map(|edge| edge.1)
                .collect();
            if targets.is_empty() {
                step.does = Does::Number(0);
            } else {
                let pick = |number: usize| targets[(usize::from(salt) + number) % targets.len()];
                for (number, case) in cases.iter_mut().enumerate() {
                    case.1 = pick(number);
                }
                if let Some(default) = default {
                    *default = pick(3);
                }
            }
        }
        plan.push(step);
    }
    // One order, so that the model and the engine look at the same step first.
    edges.sort_by_key(|edge| (edge.0, edge.1));
    Plan { steps: plan, edges }
}

/// Documents of random plans.
pub(crate) fn random_document(size: std::ops::Range<usize>, nested: u32) -> BoxedStrategy<Value> {
    let timeout = proptest::option::weighted(0.2, 3..20u64);
    (plan(size, nested), timeout)
        .prop_map(|(plan, timeout)| plan.document(timeout))
        .boxed()
}
