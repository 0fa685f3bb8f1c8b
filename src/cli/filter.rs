//! `--where 'state:failed job:backup since:1h'`: read here with the times of this terminal, and asked of the daemon.

use super::times::{self, Clockface};
use crate::domain::workflow::bulk::BulkWish;
use crate::domain::workflow::filter::RunFilter;
use crate::words::time::Millis;

/// Which runs are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter(RunFilter);

impl Filter {
    /// Reads the filter; a value with spaces stands in quotes.
    pub(super) fn read(text: &str, face: &Clockface, now: Millis) -> Result<Filter, String> {
        let filter = RunFilter::read(text, &|value| past(value, face, now));
        filter.map(Filter).map_err(|error| error.to_string())
    }

    /// Only runs for which this can be wished.
    pub(super) fn narrowed(self, wish: BulkWish) -> Result<Filter, String> {
        wish.narrowed(self.0)
            .map(Filter)
            .map_err(|error| error.to_string())
    }

    /// True when everything is wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The query parameters that ask for it.
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        self.0.terms()
    }
}

/// A length before now, or an instant.
pub(super) fn past(value: &str, face: &Clockface, now: Millis) -> Result<Millis, String> {
    match times::read_length(value) {
        Ok(ms) => Ok(Millis(now.0.saturating_sub_unsigned(ms))),
        Err(_) => face.read(value, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(7_200_000);

    fn read(text: &str) -> Result<Filter, String> {
        Filter::read(text, &Clockface::utc(), NOW)
    }

    #[test]
    fn filters_become_parameters() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let seen = read(text).unwrap().query();
            let seen: Vec<(&str, &str)> = seen.iter().map(|(key, value)| (*key, value.as_str())).collect();
            assert_eq!(seen, expected, "{text}");
        };
        check("", &[]);
        check(
            "state:failed state:skipped job:\"stock sync\" job:a",
            &[
                ("state", "failed"),
                ("state", "skipped"),
                ("job", "a"),
                ("job", "stock sync"),
            ],
        );
        check("job:a:b", &[("job", "a:b")]);
        check(
            "since:1h until:\"1970-01-01 01:30\" trigger:manual",
            &[
                ("trigger", "manual"),
                ("since", "1970-01-01T01:00:00.000Z"),
                ("until", "1970-01-01T01:30:00.000Z"),
            ],
        );
        assert!(read("").unwrap().is_empty() && !read("q:a").unwrap().is_empty());
    }

    #[test]
    fn only_runs_that_have_not_ended_can_be_cancelled() {
        let states = |text: &str| {
            let filter = read(text).unwrap().narrowed(BulkWish::Cancel)?;
            let values = filter.query().into_iter().map(|(_, value)| value);
            Ok(values.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(states("job:a"), Ok("paused pending running a".to_owned()));
        assert_eq!(states("state:pending"), Ok("pending".to_owned()));
        let refused: Result<String, String> = states("state:pending state:failed");
        assert!(refused.unwrap_err().contains("has failed cannot be cancelled"));
    }

    #[test]
    fn what_is_no_filter_is_told() {
        let table = [
            ("failed", "is no filter"),
            ("state:broken", "is no state; there are pending"),
            ("color:red", "unknown filter `color`"),
            ("since:soon", "is no time; write 2025-11-30T18:00:00Z, \"2025"),
        ];
        for (text, part) in table {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
