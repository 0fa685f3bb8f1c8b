//! Which steps of a run are shown as bars when there are more than people read: what goes on, what failed, what took long.

use super::timeline::Timeline;

/// The life of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLine {
    /// Its name, with its place in a scatter.
    pub step: String,
    /// Its place in the definition; steps of a body follow the scatter around them.
    pub order: usize,
    /// The word for where it stands.
    pub state: &'static str,
    /// Since it was reached.
    pub line: Timeline,
}

impl StepLine {
    fn is_open(&self) -> bool {
        self.line.segments.iter().any(|segment| segment.to.is_none())
    }

    fn has_failed(&self) -> bool {
        self.state == "failed"
    }

    /// Its number among the branches of its scatter.
    fn branch(&self) -> Vec<u32> {
        let numbers = self.step.split('#').skip(1);
        numbers.filter_map(|number| number.parse().ok()).collect()
    }

    fn length(&self) -> u64 {
        self.line.to.since(self.line.from)
    }
}

/// At most `most` of them in the order in which they were reached, and how many are left out.
pub fn chosen(mut lines: Vec<StepLine>, most: usize) -> (Vec<StepLine>, usize) {
    let left_out = lines.len().saturating_sub(most);
    if left_out > 0 {
        // Stable, so that of two that are alike the earlier one stays.
        lines.sort_by_key(|line| {
            let rank = match (line.is_open(), line.has_failed()) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 2,
            };
            (rank, std::cmp::Reverse(line.length()))
        });
        lines.truncate(most);
    }
    lines.sort_by_cached_key(|line| (line.line.from, line.order, line.branch()));
    (lines, left_out)
}

#[cfg(test)]
mod tests {
    use super::super::timeline::{Segment, SegmentKind};
    use super::*;
    use crate::words::time::Millis;

    fn line(step: &str, state: &'static str, (from, to): (i64, Option<i64>)) -> StepLine {
        let (from, until) = (Millis(from), to.map(Millis));
        StepLine {
            step: step.to_owned(),
            order: 0,
            state,
            line: Timeline {
                from,
                to: until.unwrap_or(Millis(1_000)),
                segments: vec![Segment {
                    kind: SegmentKind::Running,
                    attempt: 1,
                    from,
                    to: until,
                    outcome: None,
                    node: None,
                    text: String::new(),
                }],
                marks: Vec::new(),
            },
        }
    }

    fn names(found: &(Vec<StepLine>, usize)) -> Vec<&str> {
        found.0.iter().map(|line| line.step.as_str()).collect()
    }

    #[test]
    fn what_goes_on_failed_or_took_long_is_kept_in_the_order_of_time() {
        let lines = || {
            vec![
                line("short", "succeeded", (0, Some(1))),
                line("long", "succeeded", (1, Some(500))),
                line("failed", "failed", (600, Some(601))),
                line("goes on", "running", (700, None)),
                line("skipped", "skipped", (2, Some(2))),
            ]
        };
        let all = chosen(lines(), 5);
        assert_eq!(
            (names(&all), all.1),
            (vec!["short", "long", "skipped", "failed", "goes on"], 0)
        );
        let three = chosen(lines(), 3);
        assert_eq!((names(&three), three.1), (vec!["long", "failed", "goes on"], 2));
        assert_eq!(names(&chosen(lines(), 1)), ["goes on"]);
        assert_eq!(chosen(lines(), 0).1, 5);
    }

    #[test]
    fn what_was_reached_together_is_told_in_the_order_of_the_definition() {
        let lines = [("b#10", 1), ("b#2", 1), ("each", 0), ("a", 2)].map(|(step, order)| StepLine {
            order,
            ..line(step, "succeeded", (5, Some(9)))
        });
        assert_eq!(names(&chosen(lines.into(), 9)), ["each", "b#2", "b#10", "a"]);
    }
}
