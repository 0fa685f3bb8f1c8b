//! Which runs are wanted: one meaning for lists, for what is done with all that match, and for `--where`.
//!
//! Terms of one key mean "or", terms of different keys "and". Times come in as text and are read by the caller's own
//! reader, for only it knows the clock and the zone.

use std::collections::BTreeSet;

use super::run::Run;
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::{JobName, SlotPoolName};
use crate::words::time::{Millis, parse_instant, read_length};

/// The words for a state of a run.
pub const STATES: [&str; 8] = [
    "pending",
    "running",
    "paused",
    "succeeded",
    "failed",
    "timed_out",
    "cancelled",
    "skipped",
];
/// The words for what began a run.
pub const TRIGGERS: [&str; 5] = ["schedule", "manual", "catchup", "boot", "run"];
/// The keys of a filter.
pub const KEYS: [&str; 7] = ["state", "job", "trigger", "pool", "since", "until", "q"];
/// States in which a run has not ended.
pub const UNFINISHED: [&str; 3] = ["pending", "running", "paused"];

/// A run's id shows its kind first.
const RUN_HEAD: &str = "run_";
/// So many characters behind it are surely meant as an id.
const ID_CHARS_MIN: usize = 4;
const ID_CHARS: usize = 26;
/// The beginning of an id without `run_`: ids of one month share five characters.
const BARE_ID_CHARS_MIN: usize = 8;

/// What is wrong with a filter, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFilter(pub String);

/// How a time of a filter is read.
pub type ReadTime<'a> = &'a dyn Fn(&str) -> Result<Millis, String>;

/// Which runs are wanted. The default wants all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of these jobs.
    pub jobs: BTreeSet<JobName>,
    /// In these states.
    pub states: BTreeSet<&'static str>,
    /// Begun by these.
    pub triggers: BTreeSet<&'static str>,
    /// Whose definition takes its slots from these.
    pub slot_pools: BTreeSet<SlotPoolName>,
    /// Created then or later.
    pub since: Option<Millis>,
    /// Created before.
    pub until: Option<Millis>,
    /// With one of these in the name of the job, or at the beginning of the id; in small letters.
    pub searches: BTreeSet<String>,
}

impl RunFilter {
    /// Reads `state:failed job:"stock sync" since:1h`; a value with spaces stands in quotes.
    pub fn read(text: &str, time: ReadTime<'_>) -> Result<RunFilter, BadFilter> {
        let mut filter = RunFilter::default();
        filter.read_more(text, time)?;
        Ok(filter)
    }

    /// Adds the terms of a text.
    pub fn read_more(&mut self, text: &str, time: ReadTime<'_>) -> Result<(), BadFilter> {
        for term in terms(text)? {
            let (key, value) = match term.split_once(':') {
                Some((key, value)) if !value.is_empty() => (key, value),
                Some(_) | None => return Err(no_term(&term)),
            };
            self.add(key, value, time)?;
        }
        Ok(())
    }

    /// Adds one term.
    pub fn add(&mut self, key: &str, value: &str, time: ReadTime<'_>) -> Result<(), BadFilter> {
        let of_name = |error: &dyn std::fmt::Display| BadFilter(format!("`{value}`: {error}"));
        match key {
            "state" => {
                self.states.insert(word_of("state", value, &STATES)?);
            }
            "trigger" => {
                self.triggers.insert(word_of("trigger", value, &TRIGGERS)?);
            }
            "job" => {
                self.jobs
                    .insert(JobName::new(value).map_err(|error| of_name(&error))?);
            }
            "pool" => {
                self.slot_pools
                    .insert(SlotPoolName::new(value).map_err(|error| of_name(&error))?);
            }
            "since" => self.since = Some(time(value).map_err(BadFilter)?),
            "until" => self.until = Some(time(value).map_err(BadFilter)?),
            "q" if value.is_empty() || value.len() > limits::NAME_BYTES_MAX => {
                let max = limits::NAME_BYTES_MAX;
                return Err(BadFilter(format!("`q` must have 1 to {max} bytes")));
            }
            "q" => {
                self.searches.insert(value.to_lowercase());
            }
            _ => {
                let near = nearest(key, &KEYS);
                let known = KEYS.join(", ");
                return Err(BadFilter(match near {
                    Some(near) => format!("unknown filter `{key}`; did you mean `{near}`?"),
                    None => format!("unknown filter `{key}`; there are {known}"),
                }));
            }
        }
        if self.terms().len() > limits::FILTER_TERMS_MAX {
            let max = limits::FILTER_TERMS_MAX;
            return Err(BadFilter(format!("a filter may have {max} terms")));
        }
        Ok(())
    }

    /// Its terms, as they would be added again.
    pub fn terms(&self) -> Vec<(&'static str, String)> {
        let mut terms: Vec<(&'static str, String)> = Vec::new();
        terms.extend(self.states.iter().map(|word| ("state", (*word).to_owned())));
        terms.extend(self.jobs.iter().map(|name| ("job", name.to_string())));
        terms.extend(self.triggers.iter().map(|word| ("trigger", (*word).to_owned())));
        terms.extend(self.slot_pools.iter().map(|name| ("pool", name.to_string())));
        terms.extend(self.since.map(|at| ("since", at.to_string())));
        terms.extend(self.until.map(|at| ("until", at.to_string())));
        terms.extend(self.searches.iter().map(|text| ("q", text.clone())));
        terms
    }

    /// True when everything is wanted.
    pub fn is_empty(&self) -> bool {
        *self == RunFilter::default()
    }

    /// True when only runs are wanted that have not ended.
    pub fn wants_only_unfinished(&self) -> bool {
        !self.states.is_empty() && self.states.iter().all(|state| UNFINISHED.contains(state))
    }

    /// True for a run that is wanted; `slot_pool` is that of its definition.
    pub fn matches(&self, run: &Run, slot_pool: Option<&SlotPoolName>) -> bool {
        self.matches_header(run)
            && (self.slot_pools.is_empty() || slot_pool.is_some_and(|name| self.slot_pools.contains(name)))
    }

    /// The same without a look at the slot pool.
    pub fn matches_header(&self, run: &Run) -> bool {
        let any = |empty: bool, found: bool| empty || found;
        any(self.states.is_empty(), self.states.contains(run.state.word()))
            && any(self.jobs.is_empty(), self.jobs.contains(&run.definition))
            && any(
                self.triggers.is_empty(),
                self.triggers.contains(run.trigger.word()),
            )
            && self.since.is_none_or(|since| run.created_at >= since)
            && self.until.is_none_or(|until| run.created_at < until)
            && any(self.searches.is_empty(), self.is_found(run))
    }

    fn is_found(&self, run: &Run) -> bool {
        let id = run.id.to_string();
        let job = run.definition.as_str().to_lowercase();
        self.searches.iter().any(|text| {
            id.starts_with(text.as_str())
                || (text.len() >= BARE_ID_CHARS_MIN && id[RUN_HEAD.len()..].starts_with(text.as_str()))
                || (id_part(text).is_none() && job.contains(text.as_str()))
        })
    }

    /// The first and the last id that can be wanted, if an id was begun.
    pub fn id_range(&self) -> Option<(RunId, RunId)> {
        let mut ranges = self.searches.iter().map(|text| {
            let part = id_part(text)?;
            let filled = |letter: char| {
                let mut whole = format!("{RUN_HEAD}{part}");
                whole.extend(std::iter::repeat_n(letter, ID_CHARS.checked_sub(part.len())?));
                whole.parse::<RunId>().ok()
            };
            Some((filled('0')?, filled('z')?))
        });
        let first = ranges.next()??;
        ranges.try_fold(first, |range, next| {
            let next = next?;
            Some((range.0.min(next.0), range.1.max(next.1)))
        })
    }
}

/// What stands behind `run_`, if this is the beginning of an id and nothing else.
fn id_part(text: &str) -> Option<&str> {
    let part = text.strip_prefix(RUN_HEAD)?;
    let is_id = (ID_CHARS_MIN..=ID_CHARS).contains(&part.len())
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then_some(part)
}

/// Reads a length before `now`, or an RFC 3339 instant.
pub fn time_before(text: &str, now: Millis) -> Result<Millis, String> {
    if let Ok(ms) = read_length(text) {
        return Ok(Millis(now.0.saturating_sub_unsigned(ms)));
    }
    parse_instant(text).ok_or_else(|| {
        format!(
            "`{text}` is no time; write a length like 30s, 5m or 1h, or an instant like 2025-11-30T18:00:00Z"
        )
    })
}

fn no_term(term: &str) -> BadFilter {
    let example = if STATES.contains(&term) {
        format!("did you mean `state:{term}`?")
    } else if term.ends_with(':') {
        format!("`{term}` needs a value, as in state:failed")
    } else {
        "write key:value, as in state:failed".to_owned()
    };
    BadFilter(format!("`{term}` is no filter; {example}"))
}

fn word_of(key: &str, value: &str, words: &'static [&'static str]) -> Result<&'static str, BadFilter> {
    if let Some(word) = words.iter().find(|word| **word == value) {
        return Ok(word);
    }
    let known = words.join(", ");
    Err(BadFilter(match nearest(value, words) {
        Some(near) => format!("`{value}` is no {key}; did you mean `{near}`?"),
        None => format!("`{value}` is no {key}; there are {known}"),
    }))
}

fn nearest(text: &str, words: &[&'static str]) -> Option<&'static str> {
    // The distance costs the product of both, in memory too.
    if text.len() > limits::HINT_BYTES_MAX {
        return None;
    }
    let folded = text.to_lowercase();
    let near = words
        .iter()
        .map(|word| (strsim::damerau_levenshtein(&folded, word), *word));
    let (distance, word) = near.min()?;
    (distance <= 2 && 2 * distance < word.len()).then_some(word)
}

/// Splits at spaces outside quotes.
fn terms(text: &str) -> Result<Vec<String>, BadFilter> {
    let mut terms = Vec::new();
    let mut term = String::new();
    let mut quote = None;
    for letter in text.chars() {
        match quote {
            Some(mark) if letter == mark => quote = None,
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if letter.is_whitespace() => terms.push(std::mem::take(&mut term)),
            Some(_) | None => term.push(letter),
        }
    }
    if quote.is_some() {
        return Err(BadFilter(format!("a quote is not closed in `{text}`")));
    }
    terms.push(term);
    terms.retain(|term| !term.is_empty());
    Ok(terms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::workflow::run::{RunState, Trigger};

    const NOW: Millis = Millis(7_200_000);

    fn read(text: &str) -> Result<RunFilter, String> {
        RunFilter::read(text, &|text| time_before(text, NOW)).map_err(|error| error.to_string())
    }

    fn run(job: &str, created_at: i64, trigger: Trigger) -> Run {
        Run {
            graph: None,
            id: "run_01kb7v0n3gf5tb2h6m8w9x4yza".parse().unwrap(),
            definition: JobName::new(job).unwrap(),
            version: 1,
            trigger,
            node: None,
            created_at: Millis(created_at),
            record_version: 1,
            state: RunState::Pending,
        }
    }

    fn by_hand() -> Trigger {
        Trigger::Manual {
            principal: "me".to_owned(),
        }
    }

    #[test]
    fn terms_of_one_key_mean_or_and_of_different_keys_and() {
        let stock = run("stock sync", 3_600_000, by_hand());
        let slot_pool = SlotPoolName::new("db").unwrap();
        let check = |text: &str, wanted: bool| {
            let filter = read(text).unwrap();
            assert_eq!(filter.matches(&stock, Some(&slot_pool)), wanted, "{text}");
            let terms = filter.terms();
            let mut again = RunFilter::default();
            for (key, value) in &terms {
                again.add(key, value, &|text| time_before(text, NOW)).unwrap();
            }
            assert_eq!(again, filter, "{text}");
        };
        for text in [
            "",
            "state:failed state:pending",
            "job:\"stock sync\" trigger:manual",
            "job:a job:'stock sync'",
            "pool:db",
            "since:1h until:1s",
            "since:1970-01-01T01:00:00Z",
            "q:SYNC",
            "q:run_01kb7v",
            "q:01kb7v0n3gf5tb2h6m8w9x4yza",
            "q:nothing q:stock",
        ] {
            check(text, true);
        }
        for text in [
            "state:failed",
            "job:stock",
            "job:\"stock sync\" trigger:schedule",
            "pool:other",
            "since:59m",
            "until:1h",
            "q:run_01kb7w",
            "q:b7v0n3gf",
            "q:01kb7v",
        ] {
            check(text, false);
        }
        assert!(!read("pool:db").unwrap().matches(&stock, None));
    }

    #[test]
    fn what_is_no_filter_is_told_with_what_was_meant() {
        let table = [
            ("failed", "did you mean `state:failed`?"),
            ("backup", "write key:value"),
            ("state:", "needs a value"),
            ("state:faild", "`faild` is no state; did you mean `failed`?"),
            ("state:broken", "is no state; there are pending"),
            ("trigger:cron", "is no trigger; there are schedule, manual"),
            ("stat:failed", "unknown filter `stat`; did you mean `state`?"),
            (
                "color:red",
                "unknown filter `color`; there are state, job, trigger",
            ),
            ("since:soon", "`soon` is no time; write a length"),
            ("job:a/b", "job name must have"),
            ("job:\"x", "a quote is not closed"),
        ];
        for (text, part) in table {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let many = (0..70).fold("q:a job:x job:x".to_owned(), |text, n| text + &format!(" q:{n}"));
        assert!(read(&many).unwrap_err().contains("terms"));
    }

    #[test]
    fn the_beginning_of_an_id_is_a_range_of_ids() {
        let range = |text: &str| read(text).unwrap().id_range();
        let (first, last) = range("q:run_01kb").unwrap();
        assert_eq!(first.to_string(), "run_01kb0000000000000000000000");
        assert_eq!(last.to_string(), "run_01kbzzzzzzzzzzzzzzzzzzzzzz");
        let two = range("q:run_01kc q:run_01kb").unwrap();
        assert_eq!((two.0, two.1 > last), (first, true));
        for text in [
            "",
            "q:run_",
            "q:run",
            "q:backup",
            "q:run_01kb q:backup",
            "q:run_zzzz",
            "q:run_01ku",
        ] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
