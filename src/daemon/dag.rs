//! A dag of the configuration as a definition of the engine: its tasks become steps, what they depend on becomes edges.

use super::book;
use crate::config::{self, DagConfig, ExpandConfig, TaskConfig, TaskKind, TriggerRule, WorkConfig};
use crate::domain::workflow::definition::{ConcurrencyPolicy, Definition};
use crate::domain::workflow::graph::document::{
    Document, EdgeDoc, EdgeKind, FairnessDoc, Join, OnError, RetentionDoc, RetryDoc, StepDoc, TimeoutsDoc,
};
use crate::domain::workflow::graph::kinds::{
    Approval, Body, OnReject, Probe, Scatter, Sensor, StepKind, Tolerance,
};
use crate::domain::workflow::graph::span::Span;
use crate::words::names::{BadName, JobName, StepRef};

/// Instances of one task.
const ITEMS_MAX: u32 = 1_000;
/// Bytes of the list, as JSON.
const ITEMS_BYTES_MAX: u32 = 1 << 20;

/// The definition of a dag. Names were checked when the file was read; a name that is none is an error here too.
pub(super) fn definition_of(dag: &DagConfig) -> Result<Definition, BadName> {
    let mut document = Document {
        family_slug: dag.name.clone(),
        title: dag.name.clone(),
        description: String::new(),
        input_schema: None,
        steps: Vec::new(),
        edges: Vec::new(),
        concurrency: None,
        run_timeout: None,
        retention: Some(RetentionDoc {
            runs: Some(dag.retain_runs),
            age: None,
        }),
        labels: std::collections::BTreeMap::new(),
        fairness: FairnessDoc::default(),
    };
    for task in &dag.tasks {
        document.steps.push(step_of(dag, task)?);
        let target = outer_name(dag, task)?;
        for from in &task.depends_on {
            let source = dag.tasks.iter().find(|known| known.id == *from);
            document.edges.push(EdgeDoc {
                source_ref: outer_name(dag, source.ok_or(BadName::Job)?)?,
                target_ref: target.clone(),
                kind: match task.trigger_rule {
                    TriggerRule::AllSuccess => EdgeKind::Success,
                    TriggerRule::AllDone => EdgeKind::Always,
                },
                condition: None,
            });
        }
    }
    Ok(Definition {
        name: JobName::new(&dag.name)?,
        enabled: dag.enabled,
        schedule: book::schedule_text(dag.schedule.as_ref(), &book::timing_of_dag(dag)),
        concurrency: ConcurrencyPolicy::Allow,
        policy: book::policy_of(&dag.policy),
        sla: book::sla_of(&dag.sla),
        reports: book::reports_of_dag(dag).wishes(),
        steps: Vec::new(),
        graph: Some(Box::new(document)),
    })
}

/// The step that stands for a task: itself, or what runs it for each item of a list.
fn step_of(dag: &DagConfig, task: &TaskConfig) -> Result<StepDoc, BadName> {
    let one = StepDoc {
        name: name_of(&task.id)?,
        title: String::new(),
        kind: kind_of(&task.kind),
        when: None,
        join: Join::AllSuccess,
        retry: task.work().map(retry_of),
        timeouts: TimeoutsDoc::default(),
        slots: match task.work().and_then(|work| work.slots.as_ref()) {
            Some(slots) => Some(book::demand_of(slots)?),
            None => None,
        },
        on_error: OnError::Fail,
        idempotency_key: None,
    };
    let join = match task.trigger_rule {
        TriggerRule::AllSuccess => Join::AllSuccess,
        TriggerRule::AllDone => Join::AllDone,
    };
    let Some(expand) = task.work().and_then(|work| work.expand.as_ref()) else {
        return Ok(StepDoc { join, ..one });
    };
    Ok(StepDoc {
        name: outer_name(dag, task)?,
        title: task.id.clone(),
        kind: StepKind::Scatter(Scatter {
            items: items_of(expand),
            body: Body {
                steps: vec![one],
                edges: Vec::new(),
            },
            max_parallel: None,
            max_items: Some(ITEMS_MAX),
            max_bytes: Some(ITEMS_BYTES_MAX),
            tolerated_failures: Tolerance::default(),
        }),
        when: None,
        join,
        retry: None,
        timeouts: TimeoutsDoc::default(),
        slots: None,
        on_error: OnError::Fail,
        idempotency_key: None,
    })
}

fn kind_of(kind: &TaskKind) -> StepKind {
    match kind {
        TaskKind::Task(work) => StepKind::Command(Box::new(book::command_of(&work.launch))),
        TaskKind::Sensor {
            work,
            poke_interval_ms,
            poke_timeout_ms,
        } => StepKind::Sensor(Box::new(Sensor {
            probe: Probe::Command(Box::new(book::command_of(&work.launch))),
            poke_interval: Span(*poke_interval_ms),
            poke_timeout: Span(*poke_timeout_ms),
        })),
        TaskKind::Approval { on_reject } => StepKind::Approval(Approval {
            approvers: Vec::new(),
            on_reject: match on_reject {
                config::OnReject::Fail => OnReject::Fail,
                config::OnReject::Skip => OnReject::Skip,
            },
            timeout: None,
        }),
    }
}

/// A constant delay.
fn retry_of(work: &WorkConfig) -> RetryDoc {
    RetryDoc {
        max_attempts: work.retries.saturating_add(1),
        initial_interval: Span(work.retry_delay_ms),
        coefficient: 1.0,
        max_interval: Span(work.retry_delay_ms),
        jitter: 0.0,
        non_retryable: Vec::new(),
        retry_if: None,
    }
}

fn name_of(id: &str) -> Result<StepRef, BadName> {
    StepRef::new(id).ok_or(BadName::Job)
}

/// The name under which other steps know a task. One that is expanded has its own name inside, for its instances, and
/// `load[]` is all of them together; where a task is called so, it has more brackets.
fn outer_name(dag: &DagConfig, task: &TaskConfig) -> Result<StepRef, BadName> {
    let mut name = task.id.clone();
    if task.work().is_some_and(|work| work.expand.is_some()) {
        while dag.tasks.iter().any(|known| known.id == name) {
            name.push_str("[]");
        }
    }
    name_of(&name)
}

/// CEL for the list: any id and any key can be written as text in brackets.
fn items_of(expand: &ExpandConfig) -> String {
    let text = |text: &str| serde_json::Value::from(text).to_string();
    let member = |name: &str| {
        let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_plain {
            format!(".{name}")
        } else {
            format!("[{}]", text(name))
        }
    };
    format!("steps{}.output{}", member(&expand.from_task), member(&expand.key))
}
