//! Looks at the secrets when a configuration is loaded: one that is there and too short to be masked is worth a word. One
//! that is not there yet is not: its value is read at each launch.

use std::collections::HashMap;

use super::book;
use crate::config::{Config, Fault};
use crate::worker::mask::MASKED_CHARS_MIN;
use crate::worker::secrets::value_of;

/// A warning for each secret whose value is too short.
pub(super) fn short_secrets(config: &Config) -> Vec<Fault> {
    let mut seen = HashMap::new();
    let mut found = Vec::new();
    let jobs = config
        .jobs
        .iter()
        .map(|job| (format!("job '{}'", job.name), &job.launch));
    let tasks = config.dags.iter().flat_map(|dag| {
        let worked = dag.tasks.iter().filter_map(|task| Some((task, task.work()?)));
        worked.map(|(task, work)| (format!("task '{}.{}'", dag.name, task.id), &work.launch))
    });
    for (subject, launch) in jobs.chain(tasks) {
        for secret in &launch.secrets {
            let reference = book::secret_of(secret);
            let from = reference.from.clone();
            let is_short = *seen.entry(reference.from).or_insert_with(|| {
                value_of(&from)
                    .is_ok_and(|value| value.trim_matches(['\r', '\n']).chars().count() < MASKED_CHARS_MIN)
            });
            if is_short {
                let message = format!(
                    "{subject}: secret '{}' is shorter than {MASKED_CHARS_MIN} characters and cannot be masked",
                    secret.name
                );
                found.push(Fault::warning("lint/short-secret", &secret.at, message));
            }
        }
    }
    found
}
