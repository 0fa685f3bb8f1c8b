//! A document, compiled: places instead of names, programs instead of texts.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::document::{Document, EdgeDoc, EdgeKind, OnError, StepDoc};
use super::key::NodeId;
use super::kinds::{Dataflow, Gather, Http, Probe, Scatter, StepKind};
use super::template::Template;
use crate::domain::workflow::run::StepPhase;
use crate::expr::schema::{Issue, Schema};
use crate::expr::{Fault, Profile, Program};
use crate::words::names::StepRef;

/// What every expression of a graph may read.
pub const NAMES: [&str; 4] = ["input", "steps", "vars", "run"];
/// The same inside a scatter, and for expressions over the items of a list.
pub const ITEM_NAMES: [&str; 6] = ["input", "steps", "vars", "run", "item", "index"];
/// The same for expressions that fold a list.
pub const FOLD_NAMES: [&str; 7] = ["input", "steps", "vars", "run", "item", "index", "acc"];
/// What the share of a run and the key by which runs are counted may read.
pub const SHARE_NAMES: [&str; 1] = ["input"];
/// What `retry_if` may read.
pub const RETRY_NAMES: [&str; 7] = ["input", "steps", "vars", "run", "item", "index", "error"];

/// A compiled graph. The steps of scatters' bodies stand beside all others.
#[derive(Debug)]
pub struct Graph {
    /// What it was made of.
    pub document: Document,
    nodes: Vec<Node>,
    by_name: BTreeMap<StepRef, NodeId>,
    roots: Vec<NodeId>,
    top_level: u32,
    pub(super) share: Option<Program>,
    pub(super) limit_key: Option<Program>,
    /// Made when the first run begins.
    pub(super) input_schema: OnceLock<Result<Schema, Vec<Issue>>>,
}

/// A compiled step.
#[derive(Debug)]
pub struct Node {
    /// What it was made of.
    pub doc: StepDoc,
    /// The scatter in whose body it is.
    pub scatter: Option<NodeId>,
    /// How many scatters are around it.
    pub depth: usize,
    /// The edges that lead to it.
    pub incoming: Vec<Incoming>,
    /// The steps to which edges lead from it, each once.
    pub next: Vec<NodeId>,
    /// Its condition.
    pub when: Option<Program>,
    /// What it does.
    pub work: Work,
    /// Whether a failed attempt may be followed by another.
    pub retry_if: Option<Program>,
    /// The key for those who execute it.
    pub idempotency_key: Option<Program>,
}

/// An edge, seen from its target.
#[derive(Debug)]
pub struct Incoming {
    /// From.
    pub from: NodeId,
    /// When it is taken.
    pub kind: EdgeKind,
    /// Of a condition.
    pub condition: Option<Program>,
}

/// What a step does, compiled.
#[derive(Debug)]
pub enum Work {
    /// A value that is computed.
    Project(Vec<(String, Program)>),
    /// The items for which the second is true.
    Filter(Program, Program),
    /// The second for each item.
    Map(Program, Program),
    /// Objects, one over the other.
    Merge(Vec<Program>),
    /// A list folded into one value.
    Reduce(Fold),
    /// What must be true, and what is said when it is not.
    Assert(Vec<(Program, String)>),
    /// A value with places for others.
    Template(Template),
    /// Conditions and the steps that they choose.
    Switch(Vec<(Program, NodeId)>, Option<NodeId>),
    /// Milliseconds from now.
    WaitFor(u64),
    /// An instant.
    WaitUntil(Program),
    /// A branch for each item.
    Scatter(ScatterWork),
    /// What the branches have made.
    Gather(GatherWork),
    /// A run of another definition.
    Subworkflow(Option<Program>),
    /// Somebody resumes it.
    Checkpoint,
    /// Somebody decides.
    Approval,
    /// The run fails.
    Fail(String, Template),
    /// The run succeeds.
    Succeed(Option<Program>),
    /// A process.
    Command,
    /// A probe that is repeated.
    Sensor,
    /// A request.
    Http(Box<HttpWork>),
    /// Remote code.
    Task(Option<Program>),
    /// The fields of work that is routed.
    Route(Vec<(String, Program)>),
}

/// A list folded into one value.
#[derive(Debug)]
pub struct Fold {
    /// The list.
    pub items: Option<Program>,
    /// The first `acc`.
    pub initial: Option<Program>,
    /// The next `acc`.
    pub with: Program,
}

/// A scatter.
#[derive(Debug)]
pub struct ScatterWork {
    /// The list.
    pub items: Program,
    /// The steps of its body.
    pub body: Vec<NodeId>,
    /// Those of them that no edge leads to.
    pub roots: Vec<NodeId>,
}

/// A gather.
#[derive(Debug)]
pub struct GatherWork {
    /// The scatter.
    pub from: NodeId,
    /// The step of its body whose outputs are collected.
    pub step: NodeId,
    /// The key of a map.
    pub key: Option<Program>,
    /// How a list becomes one value.
    pub fold: Option<Fold>,
}

/// A request with places for values.
#[derive(Debug)]
pub struct HttpWork {
    /// Where to.
    pub url: Template,
    /// Headers.
    pub headers: Vec<(String, Template)>,
    /// Query parameters.
    pub query: Vec<(String, Template)>,
    /// What is sent.
    pub body: Option<Template>,
}

/// Why a document cannot be compiled. What the checks of a definition let through never meets it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BuildError {
    /// An expression.
    #[error("step {step}: {fault}")]
    Expression {
        /// Where.
        step: StepRef,
        /// Why.
        fault: Fault,
    },
    /// A name that no step has.
    #[error("no step has the name {0}")]
    Unknown(StepRef),
    /// A name that two steps have.
    #[error("two steps have the name {0}")]
    Twice(StepRef),
    /// The expression of the share.
    #[error("fairness.key: {0}")]
    Share(Fault),
    /// The expression of the key by which runs are counted.
    #[error("concurrency.key: {0}")]
    LimitKey(Fault),
    /// A gather whose scatter is none.
    #[error("step {0} gathers from what is no scatter")]
    NoScatter(StepRef),
}

impl Graph {
    /// Compiles a document.
    pub fn build(document: Document) -> Result<Graph, BuildError> {
        let mut building = Building::default();
        building.name_all(&document.steps, None, 0)?;
        building.compile_all(&document.steps)?;
        building.connect(&document.edges)?;
        building.connect_bodies(&document.steps)?;
        let nodes: Vec<Node> = building.nodes.into_iter().flatten().collect();
        let is_root = |id: &NodeId| nodes[*id].scatter.is_none() && nodes[*id].incoming.is_empty();
        let roots = (0..nodes.len()).filter(is_root).collect();
        let top_level = u32::try_from(document.steps.len()).unwrap_or(u32::MAX);
        let share = document.fairness.key.as_deref();
        let share = share.map(|text| Program::compile(text, Profile::Workflow, &SHARE_NAMES));
        let share = share.transpose().map_err(BuildError::Share)?;
        let limit_key = document.concurrency.as_ref().and_then(|doc| doc.key.as_deref());
        let limit_key = limit_key.map(|text| Program::compile(text, Profile::Workflow, &SHARE_NAMES));
        let limit_key = limit_key.transpose().map_err(BuildError::LimitKey)?;
        Ok(Graph {
            nodes,
            by_name: building.by_name,
            roots,
            top_level,
            share,
            limit_key,
            input_schema: OnceLock::new(),
            document,
        })
    }

    /// A step.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// All steps, those of bodies included.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The step of that name.
    pub fn find(&self, name: &StepRef) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// The step of that name, as expressions write it.
    pub fn find_text(&self, name: &str) -> Option<NodeId> {
        StepRef::new(name).and_then(|name| self.find(&name))
    }

    /// The steps with which a run begins.
    pub fn roots(&self) -> &[NodeId] {
        &self.roots
    }

    /// Steps outside of scatters: a run has ended when so many have.
    pub fn top_level(&self) -> u32 {
        self.top_level
    }
}

impl Node {
    /// Why the run fails when the step ends so, if it does.
    pub fn fails_run_by<'p>(&self, phase: &'p StepPhase) -> Option<&'p str> {
        if let StepPhase::Failed { reason, .. } = phase {
            self.fails_run().then_some(reason)
        } else if let StepPhase::UpstreamFailed { reason, .. } | StepPhase::Cancelled { reason, .. } = phase {
            Some(reason)
        } else {
            None
        }
    }

    /// True if its failure is the run's.
    pub fn fails_run(&self) -> bool {
        self.doc.on_error == OnError::Fail
    }

    /// The scatter that it is.
    pub fn as_scatter(&self) -> Option<&ScatterWork> {
        if let Work::Scatter(scatter) = &self.work {
            Some(scatter)
        } else {
            None
        }
    }
}

#[derive(Default)]
struct Building {
    by_name: BTreeMap<StepRef, NodeId>,
    places: Vec<(Option<NodeId>, usize)>,
    nodes: Vec<Option<Node>>,
}

impl Building {
    fn name_all(
        &mut self,
        steps: &[StepDoc],
        scatter: Option<NodeId>,
        depth: usize,
    ) -> Result<(), BuildError> {
        for step in steps {
            let id = self.places.len();
            self.places.push((scatter, depth));
            self.nodes.push(None);
            if self.by_name.insert(step.name.clone(), id).is_some() {
                return Err(BuildError::Twice(step.name.clone()));
            }
            if let StepKind::Scatter(Scatter { body, .. }) = &step.kind {
                self.name_all(&body.steps, Some(id), depth + 1)?;
            }
        }
        Ok(())
    }

    fn id(&self, name: &StepRef) -> Result<NodeId, BuildError> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| BuildError::Unknown(name.clone()))
    }

    fn compile_all(&mut self, steps: &[StepDoc]) -> Result<(), BuildError> {
        for step in steps {
            let id = self.id(&step.name)?;
            let (scatter, depth) = self.places[id];
            let compiler = Compiler {
                building: self,
                step,
                inside: depth > 0,
            };
            let node = Node {
                scatter,
                depth,
                incoming: Vec::new(),
                next: Vec::new(),
                when: compiler.optional(step.when.as_deref())?,
                work: compiler.work()?,
                retry_if: compiler.with(
                    step.retry.as_ref().and_then(|retry| retry.retry_if.as_deref()),
                    &RETRY_NAMES,
                )?,
                idempotency_key: compiler.optional(step.idempotency_key.as_deref())?,
                doc: step.clone(),
            };
            self.nodes[id] = Some(node);
            if let StepKind::Scatter(Scatter { body, .. }) = &step.kind {
                self.compile_all(&body.steps)?;
            }
        }
        Ok(())
    }

    fn connect(&mut self, edges: &[EdgeDoc]) -> Result<(), BuildError> {
        for edge in edges {
            let (from, to) = (self.id(&edge.source_ref)?, self.id(&edge.target_ref)?);
            let names: &[&str] = if self.places[to].1 > 0 {
                &ITEM_NAMES
            } else {
                &NAMES
            };
            let condition = edge.condition.as_deref();
            let condition = condition
                .map(|text| compile(text, names, &edge.target_ref))
                .transpose()?;
            if let Some(node) = self.nodes[to].as_mut() {
                node.incoming.push(Incoming {
                    from,
                    kind: edge.kind,
                    condition,
                });
            }
            if let Some(node) = self.nodes[from].as_mut()
                && !node.next.contains(&to)
            {
                node.next.push(to);
            }
        }
        Ok(())
    }

    fn connect_bodies(&mut self, steps: &[StepDoc]) -> Result<(), BuildError> {
        for step in steps {
            let StepKind::Scatter(Scatter { body, .. }) = &step.kind else {
                continue;
            };
            self.connect(&body.edges)?;
            self.connect_bodies(&body.steps)?;
            let id = self.id(&step.name)?;
            let inside: Vec<NodeId> = (0..self.places.len())
                .filter(|node| self.places[*node].0 == Some(id))
                .collect();
            let is_root = |node: &NodeId| {
                let node = self.nodes[*node].as_ref();
                node.is_some_and(|node| node.incoming.is_empty())
            };
            let roots = inside.iter().copied().filter(is_root).collect();
            if let Some(Work::Scatter(scatter)) = self.nodes[id].as_mut().map(|node| &mut node.work) {
                scatter.body = inside;
                scatter.roots = roots;
            }
        }
        Ok(())
    }
}

fn compile(text: &str, names: &[&str], step: &StepRef) -> Result<Program, BuildError> {
    Program::compile(text, Profile::Workflow, names).map_err(|fault| BuildError::Expression {
        step: step.clone(),
        fault,
    })
}

struct Compiler<'a> {
    building: &'a Building,
    step: &'a StepDoc,
    inside: bool,
}

impl Compiler<'_> {
    fn names(&self) -> &'static [&'static str] {
        if self.inside { &ITEM_NAMES } else { &NAMES }
    }

    fn one(&self, text: &str) -> Result<Program, BuildError> {
        compile(text, self.names(), &self.step.name)
    }

    fn optional(&self, text: Option<&str>) -> Result<Option<Program>, BuildError> {
        text.map(|text| self.one(text)).transpose()
    }

    fn with(&self, text: Option<&str>, names: &[&str]) -> Result<Option<Program>, BuildError> {
        text.map(|text| compile(text, names, &self.step.name)).transpose()
    }

    fn over_items(&self, text: &str) -> Result<Program, BuildError> {
        compile(text, &ITEM_NAMES, &self.step.name)
    }

    fn template(&self, value: &Value) -> Result<Template, BuildError> {
        Template::compile(value, self.names()).map_err(|fault| BuildError::Expression {
            step: self.step.name.clone(),
            fault,
        })
    }

    fn texts(&self, texts: &BTreeMap<String, String>) -> Result<Vec<(String, Template)>, BuildError> {
        let each = |(name, text): (&String, &String)| Ok((name.clone(), self.text(text)?));
        texts.iter().map(each).collect()
    }

    fn text(&self, text: &str) -> Result<Template, BuildError> {
        self.template(&Value::String(text.to_owned()))
    }

    fn work(&self) -> Result<Work, BuildError> {
        Ok(match &self.step.kind {
            StepKind::Dataflow(dataflow) => self.dataflow(dataflow)?,
            StepKind::Switch(switch) => {
                let mut cases = Vec::with_capacity(switch.cases.len());
                for case in &switch.cases {
                    cases.push((self.one(&case.when)?, self.building.id(&case.target)?));
                }
                let default = switch.default.as_ref();
                Work::Switch(cases, default.map(|name| self.building.id(name)).transpose()?)
            }
            StepKind::Wait(wait) => match (&wait.duration, &wait.until) {
                (_, Some(until)) => Work::WaitUntil(self.one(until)?),
                (duration, None) => Work::WaitFor(duration.map_or(0, |span| span.0)),
            },
            StepKind::Scatter(scatter) => Work::Scatter(ScatterWork {
                items: self.one(&scatter.items)?,
                body: Vec::new(),
                roots: Vec::new(),
            }),
            StepKind::Gather(gather) => Work::Gather(self.gather(gather)?),
            StepKind::Subworkflow(sub) => Work::Subworkflow(self.optional(sub.input.as_deref())?),
            StepKind::Checkpoint(_) => Work::Checkpoint,
            StepKind::Approval(_) => Work::Approval,
            StepKind::Fail(fail) => Work::Fail(fail.code.clone(), self.text(&fail.message)?),
            StepKind::Succeed(succeed) => Work::Succeed(self.optional(succeed.output.as_deref())?),
            StepKind::Command(_) => Work::Command,
            StepKind::Sensor(sensor) => match &sensor.probe {
                Probe::Command(_) => Work::Sensor,
                Probe::Http(http) => Work::Http(Box::new(self.http(http)?)),
            },
            StepKind::Http(http) => Work::Http(Box::new(self.http(http)?)),
            StepKind::Task(task) => Work::Task(self.optional(task.input.as_deref())?),
            StepKind::Route(route) => Work::Route(self.fields(&route.work)?),
        })
    }

    fn fields(&self, texts: &BTreeMap<String, String>) -> Result<Vec<(String, Program)>, BuildError> {
        let each = texts.iter();
        each.map(|(name, text)| Ok((name.clone(), self.one(text)?)))
            .collect()
    }

    fn dataflow(&self, dataflow: &Dataflow) -> Result<Work, BuildError> {
        Ok(match dataflow {
            Dataflow::Project { project } => Work::Project(self.fields(project)?),
            Dataflow::Filter { filter } => {
                Work::Filter(self.one(&filter.items)?, self.over_items(&filter.with)?)
            }
            Dataflow::Map { map } => Work::Map(self.one(&map.items)?, self.over_items(&map.with)?),
            Dataflow::Merge { merge } => {
                let each = merge.iter().map(|text| self.one(text));
                Work::Merge(each.collect::<Result<_, _>>()?)
            }
            Dataflow::Reduce { reduce } => Work::Reduce(Fold {
                items: Some(self.one(&reduce.items)?),
                initial: self.optional(reduce.initial.as_deref())?,
                with: compile(&reduce.with, &FOLD_NAMES, &self.step.name)?,
            }),
            Dataflow::Assert { assert } => {
                let mut all = Vec::with_capacity(assert.len());
                for each in assert {
                    let said = if each.message.is_empty() {
                        format!("`{}` is not true", each.that)
                    } else {
                        each.message.clone()
                    };
                    all.push((self.one(&each.that)?, said));
                }
                Work::Assert(all)
            }
            Dataflow::Template { template } => Work::Template(self.template(template)?),
        })
    }

    fn gather(&self, gather: &Gather) -> Result<GatherWork, BuildError> {
        let from = self.building.id(&gather.from)?;
        let no_scatter = || BuildError::NoScatter(self.step.name.clone());
        let inside = |id: &NodeId| self.building.places[*id].0 == Some(from);
        let step = match &gather.step {
            Some(name) => self.building.id(name)?,
            None => (0..self.building.places.len())
                .rfind(inside)
                .ok_or_else(no_scatter)?,
        };
        if !inside(&step) {
            return Err(no_scatter());
        }
        let fold = self.with(gather.with.as_deref(), &FOLD_NAMES)?;
        let initial = self.optional(gather.initial.as_deref())?;
        Ok(GatherWork {
            from,
            step,
            key: self.with(gather.key.as_deref(), &ITEM_NAMES)?,
            fold: fold.map(|with| Fold {
                items: None,
                initial,
                with,
            }),
        })
    }

    fn http(&self, http: &Http) -> Result<HttpWork, BuildError> {
        Ok(HttpWork {
            url: self.text(&http.url)?,
            headers: self.texts(&http.headers)?,
            query: self.texts(&http.query)?,
            body: http.body.as_ref().map(|body| self.template(body)).transpose()?,
        })
    }
}
