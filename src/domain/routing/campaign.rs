//! A shadow campaign as it is declared: what it compares, on which decisions, and whether it runs.

use serde_json::{Map, Value};

use super::ask;
use super::fault::Fault;
use super::objects::RecipientPool;
use super::pass::Request;
use super::pipeline;
use super::shadow::Contender;
use crate::words::ids::{CampaignId, DecisionId, RecipientPoolId, WorkId, digest_of_parts};
use crate::words::time::Micros;

/// Whether it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Not yet.
    Draft,
    /// It looks at decisions.
    Running,
    /// Not any more: somebody stopped it, or it itself.
    Stopped,
}

impl Status {
    /// The words of the wire.
    pub const WORDS: &[&str] = &["draft", "running", "stopped"];

    /// The word of the wire.
    pub fn word(self) -> &'static str {
        match self {
            Status::Draft => "draft",
            Status::Running => "running",
            Status::Stopped => "stopped",
        }
    }

    /// The status of a word.
    pub fn of(word: &str) -> Option<Status> {
        [Status::Draft, Status::Running, Status::Stopped]
            .into_iter()
            .find(|status| status.word() == word)
    }
}

/// Whose choices its memory follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateMode {
    /// Those of production.
    Mirrored,
    /// Its own.
    Independent,
}

impl StateMode {
    /// The words of the wire.
    pub const WORDS: &[&str] = &["mirrored", "independent"];

    /// The mode of a word.
    pub fn of(word: &str) -> Option<StateMode> {
        match word {
            "mirrored" => Some(StateMode::Mirrored),
            "independent" => Some(StateMode::Independent),
            _ => None,
        }
    }
}

/// A campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct Campaign {
    /// Its name.
    pub name: String,
    /// Whose decisions it looks at.
    pub recipient_pool: RecipientPoolId,
    /// What it compares with production.
    pub contender: Contender,
    /// Whose choices its memory follows.
    pub state_mode: StateMode,
    /// Of one hundred decisions.
    pub sample_percent: u32,
    /// When the slowest hundredth of its evaluations takes longer, it stops.
    pub max_micros: u64,
    /// Not before.
    pub starts_at: Option<Micros>,
    /// Not from then on.
    pub ends_at: Option<Micros>,
    /// Whether it runs, as declared.
    pub status: Status,
}

impl Campaign {
    /// Whether it runs: one whose time is over does not.
    pub fn status_at(&self, now: Micros) -> Status {
        if self.status == Status::Running && self.ends_at.is_some_and(|end| end <= now) {
            Status::Stopped
        } else {
            self.status
        }
    }

    /// True if both ask the same thing of the same decisions, so that their numbers may be added.
    pub fn asks_as(&self, other: &Campaign) -> bool {
        self.recipient_pool == other.recipient_pool
            && self.contender == other.contender
            && self.state_mode == other.state_mode
    }

    /// What is wrong with its contender in this recipient pool.
    pub fn check(&self, recipient_pool: &RecipientPool) -> Vec<Fault> {
        let any = Map::from_iter([("kind".to_owned(), Value::from("any"))]);
        let work = ask::read_work(&any, Micros(0), WorkId([0; 16])).expect("this is work");
        let mut request = Request::new(work);
        request.strategy.clone_from(&self.contender.strategy);
        request
            .strategy_options
            .clone_from(&self.contender.strategy_options);
        request.pipeline.clone_from(&self.contender.pipeline);
        let Some(Err(faults)) = pipeline::of_request(recipient_pool, &request) else {
            return Vec::new();
        };
        let inside = |fault: Fault| {
            let place = fault
                .pointer
                .strip_prefix("/config")
                .unwrap_or(&fault.pointer)
                .to_owned();
            Fault {
                pointer: format!("/candidate{place}"),
                ..fault
            }
        };
        faults.into_iter().map(inside).collect()
    }
}

/// Whether a campaign looks at a decision: always the same answer, and independent of that of other campaigns.
pub fn is_sampled(campaign: CampaignId, decision: DecisionId, percent: u32) -> bool {
    if percent >= 100 {
        return true;
    }
    let digest = digest_of_parts(&["shadow", &campaign.to_string(), &decision.to_string()]);
    let number = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    // The bias of the remainder is below one in forty million.
    number % 100 < percent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_stable_and_about_as_large_as_asked() {
        let ids: Vec<DecisionId> = (0..2_000_u128).map(|n| DecisionId(n.to_be_bytes())).collect();
        let of = |campaign: u8, percent| {
            let campaign = CampaignId([campaign; 16]);
            let found = ids.iter().filter(|id| is_sampled(campaign, **id, percent));
            found.copied().collect::<Vec<_>>()
        };
        assert_eq!(of(1, 100).len(), 2_000);
        let tenth = of(1, 10);
        assert!((140..=260).contains(&tenth.len()), "{}", tenth.len());
        assert_eq!(tenth, of(1, 10));
        assert_ne!(tenth, of(2, 10));
        // Whoever is among 10 of 100 is among 50 of 100 too.
        let half = of(1, 50);
        assert!(tenth.iter().all(|id| half.contains(id)));
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for word in Status::WORDS {
            assert_eq!(Status::of(word).map(Status::word), Some(*word));
        }
        assert_eq!(Status::of("paused"), None);
        assert!(StateMode::WORDS.iter().all(|word| StateMode::of(word).is_some()));
    }
}
