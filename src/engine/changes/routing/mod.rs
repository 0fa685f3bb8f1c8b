//! Live routing: what is read for a decision, how it is written, and what becomes of work afterwards.
//!
//! * `world`, `shelf`: what a pass reads; `crew`: who works on large checks. `route`: decided outside of the writer, compared inside; `write`: all that follows.
//! * `assignments`, `waiting`, `claims`: what people do with work. `drain`: what waits is tried again, by events.
//! * `timers`: what time does; `closing`: how work ends that nobody took; `alerts`: who is told of a breach.
//! * `steps`: steps of runs that route, and wait until their work is done.
//! * `shadows`: what campaigns would have decided, after the commit.
//! * `retire`: decisions that are old enough go. `reconcile`: numbers of recipients, computed anew.

pub mod alerts;
pub mod assignments;
pub mod claims;
pub mod closing;
pub mod crew;
mod draft;
pub mod drain;
pub mod reconcile;
pub mod retire;
pub mod rivalry;
pub mod route;
pub mod shadows;
pub mod shelf;
pub mod steps;
pub mod timers;
pub mod waiting;
pub mod world;
pub mod write;
