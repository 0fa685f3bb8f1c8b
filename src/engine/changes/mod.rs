//! Every transaction of the program, one file per event: pure functions over a `Tx`, which the loops of the engine and
//! the workers hand to the store's writer.
//!
//! A change decides by the functions of `domain/` and applies with the writers of `store/`; it may be run again, and a
//! refusal has written nothing. A pair of state and event that must not happen is a broken invariant: the change
//! panics, which rolls it back.

pub mod advance;
pub mod audit;
mod begin_dag;
pub mod bundles;
pub mod campaigns;
pub mod cancel;
pub mod catch_up;
pub mod claim;
pub mod complete;
pub mod dead;
pub mod declared;
pub mod deliver;
pub mod drift;
pub mod fold;
pub mod graph;
pub mod head;
pub mod key_limit;
pub mod keys;
pub mod late;
pub mod maintain;
pub mod matching;
pub mod nodes;
pub mod outdated;
pub mod pause;
pub mod pin;
pub mod publish;
pub mod ready;
pub mod recipient_pools;
pub mod recipients;
pub mod refused;
pub mod remember;
pub mod renew;
pub mod report;
pub mod retire;
pub mod retry;
pub mod routing;
pub mod rules;
pub mod settle;
pub mod signal;
pub mod start;
pub mod task_marks;
pub mod tasks;
pub mod tenants;
pub mod traits;
pub mod try_again;
pub mod workflows;
