//! Reports: what is told outside when a run ends or is late, to whom, and how long it is tried.
//!
//! An [`Effect`] is stored in the transaction of its cause and delivered after it, at least once. It says *that* a
//! webhook or a command is owed and what happened; where the webhook goes and what the command is stands in [`Routes`],
//! which the configuration in force gives at the delivery: an address that was mended is used for what still waits.
//!
//! * `kind`: which reports there are, and which of them a job asks for.
//! * `effect`: the stored row, its states, its back-off.
//! * `route`: where reports go; no value of a secret.
//! * `document`: the JSON and the variables that a receiver gets. `template`: a body in the receiver's own words.

mod document;
mod effect;
mod kind;
mod route;
mod template;

pub use document::{Context, Document, document, variables};
#[cfg(test)]
pub(crate) use effect::tests::effect as sample_effect;
pub use effect::{Delivery, Effect, EffectState, Facts, LateFacts, Tails, backoff_ms};
pub use kind::{ReportKind, ReportTarget, ReportWishes};
pub use route::{Routes, RoutesOfKind, ShellRoute, Value, WebhookRoute};
pub use template::{FIELDS, Template, TemplateFault};
