//! Which execution of which step: a step of a scatter's body is executed once for each branch.

use std::fmt;

use super::build::Graph;
use crate::words::names::StepRef;

/// The place of a step in its [`Graph`].
pub type NodeId = usize;

/// One instance of a step: `review`, or `review#7` in the branch of item 7, or `review#7#0` two scatters deep.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The step.
    pub node: NodeId,
    /// The branches in which it is, outermost first.
    pub path: Vec<u32>,
}

impl Key {
    /// The instance of a step that is in no scatter.
    pub fn top(node: NodeId) -> Key {
        Key {
            node,
            path: Vec::new(),
        }
    }

    /// Another step seen from here: of the same branch, or of one that is around it.
    #[must_use]
    pub fn beside(&self, graph: &Graph, node: NodeId) -> Key {
        let depth = graph.node(node).depth.min(self.path.len());
        Key {
            node,
            path: self.path[..depth].to_vec(),
        }
    }

    /// A step of a branch of this scatter.
    #[must_use]
    pub fn inside(&self, node: NodeId, branch: u32) -> Key {
        let mut path = self.path.clone();
        path.push(branch);
        Key { node, path }
    }

    /// The scatter around it.
    pub fn around(&self, graph: &Graph) -> Option<(Key, u32)> {
        let scatter = graph.node(self.node).scatter?;
        let (branch, path) = self.path.split_last()?;
        let key = Key {
            node: scatter,
            path: path.to_vec(),
        };
        Some((key, *branch))
    }

    /// True for a step in a branch of that scatter, or in one of a scatter inside of it.
    pub fn is_in(&self, graph: &Graph, scatter: &Key) -> bool {
        let mut inner = self.clone();
        while let Some((around, _)) = inner.around(graph) {
            if around == *scatter {
                return true;
            }
            inner = around;
        }
        false
    }

    /// Its name in the store and on the wire.
    pub fn name(&self, graph: &Graph) -> StepRef {
        graph.node(self.node).doc.name.instance(&self.path)
    }

    /// The instance of that name.
    pub fn of_name(graph: &Graph, name: &StepRef) -> Option<Key> {
        let (step, path) = name.split_instance()?;
        let node = graph.find(&step)?;
        (graph.node(node).depth == path.len()).then_some(Key { node, path })
    }
}

/// A value that belongs to a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueName {
    /// The input of the run.
    Input,
    /// The output of the run.
    Result,
    /// The output of a step.
    Output(StepRef),
    /// `{code, message}` of a failed step.
    Error(StepRef),
    /// What a scatter is over: how many items, and how they are cut into pages.
    Items(StepRef),
    /// Some of the items of a scatter.
    ItemPage(StepRef, u32),
    /// What a remote worker gets.
    TaskInput(StepRef),
    /// The idempotency key of a step that has one of its own.
    OnceKey(StepRef),
}

/// The key in the store.
impl fmt::Display for ValueName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueName::Input => out.write_str("input"),
            ValueName::Result => out.write_str("result"),
            ValueName::Output(step) => write!(out, "output {step}"),
            ValueName::Error(step) => write!(out, "error {step}"),
            ValueName::Items(step) => write!(out, "items {step}"),
            ValueName::ItemPage(step, page) => write!(out, "itempage {page} {step}"),
            ValueName::TaskInput(step) => write!(out, "taskin {step}"),
            ValueName::OnceKey(step) => write!(out, "once {step}"),
        }
    }
}
