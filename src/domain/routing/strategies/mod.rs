//! The strategies: each takes the eligible candidates and says who gets the work, purely.
//!
//! `catalogue` says what there is, `options` checks and resolves parameters, `contract` is what a strategy is given and what
//! it gives back, `ladder` tells equals apart. One family of strategies per file; `dispatch` is the way to them.

pub mod bandits;
mod bids;
pub mod catalogue;
pub mod contract;
pub mod dispatch;
mod draws;
pub mod fair;
mod keyed;
pub mod ladder;
mod load;
mod lookup;
mod matching;
mod nested;
mod offers;
pub mod options;
pub mod pacing;
mod turns;

pub use catalogue::{CATALOGUE, Info, Kind, Parameter, ParameterType};
pub use lookup::{info, nearest};
pub use options::{Params, check_options};
