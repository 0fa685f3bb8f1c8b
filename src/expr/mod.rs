//! Expressions: CEL and JSON Schema behind faces of our own. No other module names the crates.
//!
//! An expression is a text by a user, and everything about it is bounded. `scan` looks at the text before the parser does;
//! `parse` runs on a thread with a large stack; `admit` goes through the tree without recursion, by the one table in
//! `limits`; `rewrite` puts our own functions (`guards`) in front of whatever loops, copies or grows, and they pay from
//! the budget of the evaluation (`meter`), because the interpreter has none. So an admitted expression ends, and takes no
//! more memory than its budget, whatever data it meets. `scope` is what it sees; `program` holds it together. Rules of plain comparisons do without
//! the interpreter (`predicate`), wherever it is sure that it would say the same.
//!
//! Maps are gone through in the order of their keys: the same expression over the same data gives the same value in
//! every run, which the interpreter alone does not promise.

mod admit;
mod cache;
#[cfg(test)]
mod conformance_tests;
mod deep;
mod fault;
mod functions;
mod guards;
#[cfg(test)]
mod hostile_rule_tests;
#[cfg(test)]
mod hostile_tests;
mod limits;
mod meter;
mod parse;
mod predicate;
#[cfg(test)]
mod predicate_tests;
mod program;
mod reasons;
mod rewrite;
mod scan;
pub mod schema;
mod schema_cost;
mod schema_words;
mod scope;
#[cfg(test)]
mod tests;

pub use fault::{Fault, Profile, line_and_column};
pub use predicate::{Fact, Facts};
pub use program::{Program, Unguarded};
pub use scope::Scope;
