//! What depends on what among the tasks of a dag: every task named is there, and none waits for itself.

use std::collections::HashMap;

use super::fault::{Fault, Place, shown};
use super::keys::nearest;
use super::reading::Reading;
use super::tasks::{ReadTask, TaskType};

/// Ids of a cycle that are shown.
const CYCLE_SHOWN_MAX: usize = 12;

/// Reports what is wrong between tasks; `subject` is that of the dag.
pub(super) fn check(reading: &mut Reading<'_>, subject: &str, tasks: &[ReadTask]) {
    let by_id: HashMap<&str, usize> = tasks
        .iter()
        .enumerate()
        .filter_map(|(index, task)| Some((task.id.as_deref()?, index)))
        .collect();
    for task in tasks {
        for wanted in &task.depends_on {
            if !by_id.contains_key(wanted.value.as_str()) {
                let message = format!("{}unknown dependency '{}'", task.subject, shown(&wanted.value));
                let own = task.id.as_deref();
                let others = by_id.keys().copied().filter(|id| Some(*id) != own);
                let near = reading
                    .has_room_for_hints()
                    .then(|| nearest(&wanted.value, others));
                let help = near.flatten().map(|id| format!("did you mean `{}`?", shown(id)));
                let fault = Fault::error("config/unknown-task", &wanted.at, message);
                reading.report(fault.with_help_if(help));
            }
        }
        expand(reading, task, tasks, &by_id);
    }
    if let Some((ids, at)) = cycle(tasks, &by_id) {
        let ids: Vec<_> = ids.iter().map(|id| shown(id).clone()).collect();
        let message = format!("{subject}cycle: {}", ids.join(" -> "));
        reading.error("config/cycle", &at, message);
    }
}

fn expand(reading: &mut Reading<'_>, task: &ReadTask, tasks: &[ReadTask], by_id: &HashMap<&str, usize>) {
    let Some(from) = &task.expands else { return };
    let is_direct = task.depends_on.iter().any(|known| known.value == from.value);
    let named = by_id.get(from.value.as_str()).map(|index| &tasks[*index]);
    let why = match named {
        _ if !is_direct => Some(format!("add `{}` to `dependsOn`", shown(&from.value))),
        Some(named) if named.expands.is_some() => Some(format!(
            "`{}` is expanded itself: it has an output for each of its instances, not one",
            shown(&from.value)
        )),
        Some(named) if named.kind == Some(TaskType::Approval) => Some(format!(
            "`{}` is an approval and writes nothing",
            shown(&from.value)
        )),
        // One that is not there has been told as an unknown dependency.
        Some(_) | None => None,
    };
    if let Some(why) = why {
        let message = format!("{}expand.fromTask must be a direct dependency", task.subject);
        let fault = Fault::error("config/bad-value", &from.at, message);
        reading.report(fault.with_help(why));
    }
}

/// The tasks of one cycle, the first one again at the end, each followed by one that it depends on; and the place where the
/// cycle closes.
fn cycle<'t>(tasks: &'t [ReadTask], by_id: &HashMap<&str, usize>) -> Option<(Vec<&'t str>, Place)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        Not,
        OnTheWay,
        Done,
    }
    let mut seen = vec![Seen::Not; tasks.len()];
    for start in 0..tasks.len() {
        if seen[start] != Seen::Not {
            continue;
        }
        // Each task on the way, with how many of its dependencies have been looked at.
        let mut way: Vec<(usize, usize)> = vec![(start, 0)];
        seen[start] = Seen::OnTheWay;
        while let Some((task, looked)) = way.last_mut() {
            let Some(wanted) = tasks[*task].depends_on.get(*looked) else {
                seen[*task] = Seen::Done;
                way.pop();
                continue;
            };
            *looked += 1;
            let Some(next) = by_id.get(wanted.value.as_str()).copied() else {
                continue;
            };
            match seen[next] {
                Seen::Done => {}
                Seen::Not => {
                    seen[next] = Seen::OnTheWay;
                    way.push((next, 0));
                }
                Seen::OnTheWay => {
                    let from = way.iter().position(|(task, _)| *task == next).unwrap_or(0);
                    let ring = way[from..].iter().map(|(task, _)| *task).chain([next]);
                    let ids: Vec<&str> = ring.filter_map(|task| tasks[task].id.as_deref()).collect();
                    return Some((shortened(ids), wanted.at.clone()));
                }
            }
        }
    }
    None
}

/// The beginning and the end of a long cycle.
fn shortened(mut ids: Vec<&str>) -> Vec<&str> {
    if ids.len() > CYCLE_SHOWN_MAX {
        let rest = ids.split_off(ids.len() - CYCLE_SHOWN_MAX / 2);
        ids.truncate(CYCLE_SHOWN_MAX / 2);
        ids.push("...");
        ids.extend(rest);
    }
    ids
}
