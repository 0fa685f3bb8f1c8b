//! When the jobs and dags of a configuration fire next, for who reads it without a daemon.

use super::book::{self, Scheduled};
use crate::config::Config;
use crate::domain::schedule::Schedule;
use crate::words::time::Millis;

/// A job or dag and its next fire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextFire {
    /// Its name.
    pub job: String,
    /// How many tasks it has; `None` for a job.
    pub tasks: Option<usize>,
    /// The schedule as written; `None` = started by hand only.
    pub schedule: Option<String>,
    /// In plain words.
    pub words: Option<String>,
    /// The zone's name.
    pub zone: Option<String>,
    /// The instant; `None` when it is disabled, has no schedule, or never fires.
    pub at: Option<Millis>,
    /// The same on the clock of the zone, with its offset.
    pub local: Option<String>,
    /// False: no fires and no starts.
    pub enabled: bool,
}

/// Of all jobs and dags, in the order of the files.
pub fn next_fires(config: &Config, now: Millis) -> Vec<NextFire> {
    book::scheduled(config).map(|one| of_one(one, now)).collect()
}

fn of_one(one: Scheduled<'_>, now: Millis) -> NextFire {
    let schedule = one.schedule();
    let known = schedule.as_ref().filter(|_| one.enabled());
    let at = known.and_then(|schedule| schedule.next_after(now.0));
    NextFire {
        job: one.name().to_owned(),
        tasks: match one {
            Scheduled::Job(_) => None,
            Scheduled::Dag(dag) => Some(dag.tasks.len()),
        },
        schedule: one.text().map(|text| text.text.clone()),
        words: schedule.as_ref().map(Schedule::describe),
        zone: schedule.as_ref().map(|schedule| schedule.timezone().to_owned()),
        at: at.map(Millis),
        local: at.and_then(|at| schedule.as_ref()?.local_time(at)),
        enabled: one.enabled(),
    }
}
