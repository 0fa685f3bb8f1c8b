//! Decisions as a whole, over worlds in memory. `rig` builds them, `chance` makes random ones.

mod capacity;
mod chance;
mod equality;
mod fallbacks;
mod gates;
mod keys;
mod passes;
mod pipelines;
mod prices;
mod rig;
mod seeds;
mod shadows;
mod turns;
