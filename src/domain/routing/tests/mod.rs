//! Decisions as a whole, over worlds in memory. `rig` builds them.

mod passes;
mod rig;
