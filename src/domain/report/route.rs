//! Where reports go. These are references: an address may name a file, and no value of a secret is here.

use std::collections::BTreeMap;
use std::fmt;

use super::kind::{ReportKind, ReportTarget, ReportWishes};
use super::template::Template;
use crate::domain::workflow::definition::{CommandLine, SecretFrom};

/// A text of the configuration, or a reference to where it is read at each delivery.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// Written in the file. It may be a secret all the same: it is never shown.
    Literal(String),
    /// Read when it is needed.
    From(SecretFrom),
}

/// A literal is not shown.
impl fmt::Debug for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Literal(_) => out.write_str("Literal(..)"),
            Value::From(from) => out.debug_tuple("From").field(from).finish(),
        }
    }
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRoute {
    /// Its address.
    pub url: Value,
    /// Own headers, in the order of the file.
    pub headers: Vec<(String, Value)>,
    /// What its requests are signed with; without it they are not.
    pub secret: Option<SecretFrom>,
    /// The body in the receiver's own words; the document without it.
    pub body: Option<Template>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellRoute {
    /// What is executed.
    pub command: CommandLine,
    /// The shell of a command string.
    pub shell: String,
    /// Its time in milliseconds.
    pub timeout_ms: u64,
}

/// Where the reports of one kind go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RoutesOfKind {
    /// A webhook.
    pub webhook: Option<WebhookRoute>,
    /// A command.
    pub shell: Option<ShellRoute>,
}

/// Where all reports of a job go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routes(pub BTreeMap<ReportKind, RoutesOfKind>);

impl Routes {
    /// Those of one kind.
    pub fn of(&self, kind: ReportKind) -> Option<&RoutesOfKind> {
        self.0.get(&kind)
    }

    /// The same without their addresses.
    pub fn wishes(&self) -> ReportWishes {
        let mut wishes = ReportWishes::default();
        for (kind, routes) in &self.0 {
            if routes.webhook.is_some() {
                wishes.add(*kind, ReportTarget::Webhook);
            }
            if routes.shell.is_some() {
                wishes.add(*kind, ReportTarget::Shell);
            }
        }
        wishes
    }
}
