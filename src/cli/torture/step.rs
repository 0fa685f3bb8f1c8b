//! The command of all jobs of a torture: an oracle that asks the kernel, not the store.
//!
//! While it lives it holds a lock on a file of its run, so that a second live copy finds it taken; one lock for each of its
//! slots out of as many files as the slot pool has slots, so that one slot too many finds none free; and one for its job
//! if that forbids two instances. Locks die with the process that holds them, so nothing is guessed. What it sees it
//! appends to files that only grow.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::os::clock;
use crate::words::chance::Chance;

/// The first argument of such a command.
pub const STEP_WORD: &str = "__torture_step";
/// The variable that says where the evidence is.
pub(super) const FOLDER_VARIABLE: &str = "TORTURE_EVIDENCE";
/// What was begun and ended.
pub(super) const EVIDENCE: &str = "evidence.log";
/// What must not be.
pub(super) const VIOLATIONS: &str = "violations.log";
/// The exit code of a step that cannot write its evidence (the disk is full): it counts as not having run.
pub(super) const NO_EVIDENCE: u8 = 75;
/// The exit code of a step that fails on purpose.
pub(super) const ON_PURPOSE: u8 = 9;

/// What a step was told: the arguments after the word, and a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// Where the evidence is.
    pub(super) folder: PathBuf,
    /// The slot pool, its slots, and how many of them this step takes; `None` without a slot pool.
    pub(super) slots: Option<(String, u32, u32)>,
    /// No second instance of the job may live.
    pub(super) alone: bool,
    /// The first execution of each run fails.
    pub(super) flaky: bool,
}

/// What the daemon said about the execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Execution {
    pub(super) run: String,
    pub(super) job: String,
    pub(super) node: String,
    pub(super) fence: u64,
    pub(super) attempt: u32,
    pub(super) scheduled_at: String,
}

impl Asked {
    /// The words that [`Asked::read`] reads. The folder is not among them: it goes by the environment of the daemon, so
    /// that one on a copy of the store, which has the same definitions, leaves its evidence elsewhere.
    pub(super) fn words(&self) -> Vec<String> {
        let (pool, slots, width) = self.slots.clone().unwrap_or(("-".to_owned(), 0, 0));
        let mut words = vec![pool, slots.to_string(), width.to_string()];
        words.extend(self.alone.then(|| "alone".to_owned()));
        words.extend(self.flaky.then(|| "flaky".to_owned()));
        words
    }

    fn read(folder: PathBuf, words: &[String]) -> Option<Asked> {
        let [pool, slots, width, more @ ..] = words else {
            return None;
        };
        let (slots, width) = (slots.parse().ok()?, width.parse().ok()?);
        Some(Asked {
            folder,
            slots: (pool != "-").then(|| (pool.clone(), slots, width)),
            alone: more.iter().any(|word| word == "alone"),
            flaky: more.iter().any(|word| word == "flaky"),
        })
    }
}

impl Execution {
    fn of_environment() -> Option<Execution> {
        let variable = |name: &str| std::env::var(name).ok();
        Some(Execution {
            run: variable("DUCTOR_RUN_ID")?,
            job: variable("DUCTOR_JOB_NAME")?,
            node: variable("DUCTOR_NODE")?,
            fence: variable("DUCTOR_FENCE")?.parse().ok()?,
            attempt: variable("DUCTOR_ATTEMPT")?.parse().ok()?,
            scheduled_at: variable("DUCTOR_SCHEDULED_AT").unwrap_or_else(|| "-".to_owned()),
        })
    }

    /// How long it works, by its run: mostly short, sometimes long enough to be met by a fault.
    fn work(&self) -> Duration {
        let seed = self.run.bytes().fold(0_u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut chance = Chance::new(seed);
        Duration::from_millis(if chance.one_in(8) {
            chance.between(500, 1_800)
        } else {
            chance.between(0, 120)
        })
    }
}

/// The whole life of the process; its exit code.
pub fn run_step(words: &[String]) -> ExitCode {
    let folder = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let asked = folder.and_then(|folder| Asked::read(folder, words));
    let asked = asked.zip(Execution::of_environment());
    let Some((asked, execution)) = asked else {
        return ExitCode::from(2);
    };
    let ended = execute(&asked, &execution, execution.work());
    ExitCode::from(ended.unwrap_or(NO_EVIDENCE))
}

/// Begins, works for that long, ends; the exit code.
pub(super) fn execute(asked: &Asked, execution: &Execution, work: Duration) -> io::Result<u8> {
    let folder = asked.folder.as_path();
    let mut held = Vec::new();
    let mut own = open(&folder.join("runs").join(&execution.run))?;
    if !try_take(&own)? {
        violation(folder, execution, "two live copies of this run")?;
    }
    let before = Memory::read(&mut own)?;
    if execution.fence <= before.fence {
        let text = format!("its fence is not above the last one, {}", before.fence);
        violation(folder, execution, &text)?;
    }
    before.with(execution.fence).write(&mut own)?;
    if asked.alone {
        let of_job = open(&folder.join("jobs").join(&execution.job))?;
        if !try_take(&of_job)? {
            violation(
                folder,
                execution,
                "two live instances although the job forbids them",
            )?;
        }
        held.push(of_job);
    }
    if let Some((pool, slots, width)) = &asked.slots {
        let taken = take_slots(&folder.join("slots"), pool, *slots, *width)?;
        if taken.len() < usize::try_from(*width).unwrap_or(0) {
            let text = format!("pool {pool}: more than its {slots} slots in use");
            violation(folder, execution, &text)?;
        }
        held.extend(taken);
    }
    let Execution {
        run,
        job,
        node,
        fence,
        attempt,
        scheduled_at,
    } = execution;
    let at = clock::boottime_ms();
    let begin = format!("begin {run} {fence} {attempt} {job} {node} {scheduled_at} {at}");
    append(folder, EVIDENCE, &begin)?;
    #[expect(clippy::disallowed_methods, reason = "this is the work")]
    std::thread::sleep(work);
    let code = if asked.flaky && before.executions == 0 {
        ON_PURPOSE
    } else {
        0
    };
    let at = clock::boottime_ms();
    append(folder, EVIDENCE, &format!("end {run} {fence} {code} {at}"))?;
    drop(held);
    Ok(code)
}

/// What the file of a run remembers: the highest fence, and how many executions there were.
#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    fence: u64,
    executions: u64,
}

impl Memory {
    fn read(file: &mut File) -> io::Result<Memory> {
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let mut numbers = text.split(' ').map(|word| word.trim().parse().unwrap_or(0));
        Ok(Memory {
            fence: numbers.next().unwrap_or(0),
            executions: numbers.next().unwrap_or(0),
        })
    }

    fn with(self, fence: u64) -> Memory {
        Memory {
            fence: self.fence.max(fence),
            executions: self.executions + 1,
        }
    }

    fn write(self, file: &mut File) -> io::Result<()> {
        file.seek(SeekFrom::Start(0))?;
        // Of one width, so that a shorter text never leaves digits of a longer one.
        writeln!(file, "{:020} {:020}", self.fence, self.executions)
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

fn try_take(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// As many locks as asked for, if they are free. Those who look take turns: a lock that is given back meanwhile is free
/// for the one who looks, and nobody else can take it, so a short count is never bad luck.
fn take_slots(folder: &Path, pool: &str, slots: u32, width: u32) -> io::Result<Vec<File>> {
    let turn = open(&folder.join(format!("{pool}.turn")))?;
    turn.lock()?;
    let mut taken = Vec::new();
    for number in 0..slots {
        if taken.len() == usize::try_from(width).unwrap_or(0) {
            break;
        }
        let slot = open(&folder.join(format!("{pool}.{number}")))?;
        if try_take(&slot)? {
            taken.push(slot);
        }
    }
    Ok(taken)
}

fn violation(folder: &Path, execution: &Execution, text: &str) -> io::Result<()> {
    let Execution {
        run,
        job,
        fence,
        node,
        ..
    } = execution;
    let line = format!("{run} of job {job}, fence {fence}, on node {node}: {text}");
    append(folder, VIOLATIONS, &line)
}

/// One write. A disk that was full may have cut the line before: each one begins with a line end of its own.
fn append(folder: &Path, name: &str, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(folder.join(name))?;
    let bytes = format!("\n{line} .\n");
    match file.write(bytes.as_bytes())? {
        all if all == bytes.len() => Ok(()),
        _ => Err(io::Error::from(io::ErrorKind::StorageFull)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn place() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        super::super::site::make_evidence(folder.path()).unwrap();
        folder
    }

    pub(in super::super) fn execution(run: &str, fence: u64) -> Execution {
        Execution {
            run: run.to_owned(),
            job: "j".to_owned(),
            node: "a".to_owned(),
            fence,
            attempt: 1,
            scheduled_at: "-".to_owned(),
        }
    }

    fn asked(folder: &Path, width: u32) -> Asked {
        Asked {
            folder: folder.to_owned(),
            slots: Some(("p".to_owned(), 2, width)),
            alone: false,
            flaky: false,
        }
    }

    fn violations(folder: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(folder.join(VIOLATIONS)).unwrap_or_default();
        text.lines()
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Holds everything of one execution while `work` runs.
    fn while_it_runs(asked: &Asked, execution: &Execution, work: impl FnOnce()) {
        std::thread::scope(|scope| {
            let running = scope.spawn(|| super::execute(asked, execution, Duration::from_millis(400)));
            let begun = || {
                std::fs::read_to_string(asked.folder.join(EVIDENCE))
                    .is_ok_and(|text| text.contains(&format!("begin {}", execution.run)))
            };
            while !begun() {
                std::thread::yield_now();
            }
            work();
            assert_eq!(running.join().unwrap().unwrap(), 0);
        });
    }

    #[test]
    fn what_is_right_leaves_no_violation() {
        let folder = place();
        let asked = asked(folder.path(), 1);
        while_it_runs(&asked, &execution("run_a", 1), || {
            assert_eq!(
                super::execute(&asked, &execution("run_b", 2), Duration::ZERO).unwrap(),
                0
            );
        });
        assert_eq!(
            super::execute(&asked, &execution("run_a", 3), Duration::ZERO).unwrap(),
            0
        );
        assert_eq!(violations(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn two_live_copies_are_found() {
        let folder = place();
        let asked = asked(folder.path(), 1);
        while_it_runs(&asked, &execution("run_a", 1), || {
            super::execute(&asked, &execution("run_a", 2), Duration::ZERO).unwrap();
        });
        let found = violations(folder.path());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("run_a of job j, fence 2, on node a: two live copies"),
            "{found:?}"
        );
    }

    #[test]
    fn a_slot_too_many_is_found() {
        let folder = place();
        let wide = asked(folder.path(), 2);
        while_it_runs(&wide, &execution("run_a", 1), || {
            super::execute(&asked(folder.path(), 1), &execution("run_b", 2), Duration::ZERO).unwrap();
        });
        assert!(violations(folder.path())[0].contains("pool p: more than its 2 slots in use"));
    }

    #[test]
    fn a_second_instance_is_found_where_it_is_forbidden() {
        let folder = place();
        let alone = Asked {
            slots: None,
            alone: true,
            ..asked(folder.path(), 0)
        };
        while_it_runs(&alone, &execution("run_a", 1), || {
            super::execute(&alone, &execution("run_b", 2), Duration::ZERO).unwrap();
        });
        assert!(violations(folder.path())[0].contains("two live instances"));
    }

    #[test]
    fn a_fence_that_does_not_rise_is_found() {
        let folder = place();
        let asked = asked(folder.path(), 1);
        for fence in [5, 5] {
            super::execute(&asked, &execution("run_a", fence), Duration::ZERO).unwrap();
        }
        assert!(violations(folder.path())[0].contains("its fence is not above the last one, 5"));
    }

    #[test]
    fn a_flaky_step_fails_once() {
        let folder = place();
        let flaky = Asked {
            flaky: true,
            ..asked(folder.path(), 1)
        };
        let codes =
            [1, 2].map(|fence| super::execute(&flaky, &execution("run_a", fence), Duration::ZERO).unwrap());
        assert_eq!(codes, [ON_PURPOSE, 0]);
        let read = Asked::read(flaky.folder.clone(), &flaky.words());
        assert_eq!(read, Some(flaky));
    }

    #[test]
    fn without_a_place_for_evidence_nothing_counts() {
        let folder = tempfile::tempdir().unwrap();
        let asked = asked(&folder.path().join("gone"), 1);
        assert!(super::execute(&asked, &execution("run_a", 1), Duration::ZERO).is_err());
    }
}
