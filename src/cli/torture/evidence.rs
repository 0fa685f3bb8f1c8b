//! What the steps wrote, read back.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::str::FromStr;

use super::step::{EVIDENCE, VIOLATIONS};
use crate::words::ids::RunId;

/// One execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Executed {
    /// Where its beginning stands among all lines.
    pub(super) line: usize,
    /// The fence.
    pub(super) fence: u64,
    /// The job.
    pub(super) job: String,
    /// The daemon that started it.
    pub(super) node: String,
    /// The due moment, or `-`.
    pub(super) scheduled_at: String,
    /// With what code it ended; `None` if nobody let it.
    pub(super) code: Option<i32>,
}

/// All that the steps saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Evidence {
    /// Executions by run, in the order of their beginnings.
    pub(super) runs: BTreeMap<RunId, Vec<Executed>>,
    /// Lines so far.
    pub(super) lines: usize,
    /// Lines that were cut: a disk was full.
    pub(super) cut: usize,
    /// What must not be, one sentence each.
    pub(super) violations: Vec<String>,
}

impl Evidence {
    /// Reads the folder. No file means that nothing has begun.
    pub(super) fn of_folder(folder: &Path) -> io::Result<Evidence> {
        let text = |name: &str| match std::fs::read(folder.join(name)) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error),
        };
        Ok(Evidence::read(&text(EVIDENCE)?, &text(VIOLATIONS)?))
    }

    /// Reads the two files.
    pub(super) fn read(lines: &str, violations: &str) -> Evidence {
        let mut evidence = Evidence::default();
        for line in lines.lines().filter(|line| !line.is_empty()) {
            evidence.lines += 1;
            if evidence.add(line).is_none() {
                evidence.cut += 1;
            }
        }
        let told = violations.lines().filter(|line| !line.is_empty());
        evidence.violations = told
            .map(|line| line.strip_suffix(" .").unwrap_or(line).to_owned())
            .collect();
        evidence
    }

    fn add(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.strip_suffix(" .")?.split(' ').collect();
        match words.as_slice() {
            ["begin", run, fence, _attempt, job, node, scheduled_at, _at] => {
                let executed = Executed {
                    line: self.lines,
                    fence: fence.parse().ok()?,
                    job: (*job).to_owned(),
                    node: (*node).to_owned(),
                    scheduled_at: (*scheduled_at).to_owned(),
                    code: None,
                };
                let run = RunId::from_str(run).ok()?;
                self.runs.entry(run).or_default().push(executed);
            }
            ["end", run, fence, code, _at] => {
                let fence: u64 = fence.parse().ok()?;
                let executions = self.runs.get_mut(&RunId::from_str(run).ok()?)?;
                let executed = executions
                    .iter_mut()
                    .find(|executed| executed.fence == fence && executed.code.is_none())?;
                executed.code = Some(code.parse().ok()?);
            }
            _ => return None,
        }
        Some(())
    }

    /// Executions, and how many of them were not the first of their run.
    pub(super) fn counts(&self) -> (usize, usize) {
        let all = self.runs.values().map(Vec::len).sum();
        (all, all - self.runs.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_executions_and_a_cut_line_is_counted() {
        let (one, two) = (RunId([1; 16]), RunId([2; 16]));
        let text = format!(
            "\nbegin {one} 7 1 tick a 2026-01-01T00:00:00.000Z 5 .\n\nend {one} 7 0 9 .\n\nbegin {two} 8 1 j b - 6 .\n\
             \nbegin {one} 9 1 ti\nbegin {two} 10 1 j b - 6 .\n"
        );
        let evidence = Evidence::read(&text, "\nrun_x: two live copies .\n");
        assert_eq!((evidence.lines, evidence.cut), (5, 1));
        assert_eq!(evidence.runs[&one][0].code, Some(0));
        assert_eq!(evidence.runs[&one][0].scheduled_at, "2026-01-01T00:00:00.000Z");
        let fences: Vec<u64> = evidence.runs[&two]
            .iter()
            .map(|executed| executed.fence)
            .collect();
        assert_eq!(fences, [8, 10]);
        assert_eq!(evidence.violations, ["run_x: two live copies"]);
        assert_eq!(evidence.counts(), (3, 1));
    }

    #[test]
    fn what_a_step_writes_is_read() {
        let folder = super::super::step::tests::place();
        let run = RunId([3; 16]);
        let execution = super::super::step::tests::execution(&run.to_string(), 4);
        let asked = super::super::step::Asked {
            folder: folder.path().to_owned(),
            slots: None,
            alone: false,
            flaky: false,
        };
        super::super::step::execute(&asked, &execution, std::time::Duration::ZERO).unwrap();
        let evidence = Evidence::of_folder(folder.path()).unwrap();
        assert_eq!((evidence.lines, evidence.cut), (2, 0));
        assert_eq!(
            (evidence.runs[&run][0].fence, evidence.runs[&run][0].code),
            (4, Some(0))
        );
    }
}
