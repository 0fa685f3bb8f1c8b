//! Losses of power, simulated: the real store on a disk that forgets, reorders and tears what was not synced.
//!
//! `disk` is the disk, `work` what happens on it, `record` a stretch of work with what was acknowledged when, `campaign` cuts
//! it at many moments, opens what is left and compares. The bench `power_cuts` does the same for as long as one likes.

pub(crate) mod campaign;
pub(crate) mod chance;
pub(crate) mod disk;
pub(crate) mod graphs;
pub(crate) mod record;
pub(crate) mod routing;
pub(crate) mod work;
