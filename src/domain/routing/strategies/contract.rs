//! What a strategy is given, and what it gives back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::options::Params;
use crate::domain::routing::candidate::Candidate;
use crate::domain::routing::objects::Trait;
use crate::domain::routing::reason::{Note, Reason};
use crate::domain::routing::sight::Sight;
use crate::domain::routing::state::{Holder, StageState};
use crate::domain::routing::work::Work;
use crate::words::ids::{DecisionId, RecipientId};
use crate::words::time::Micros;

/// A candidate that passed the gate and the stages before the pick. They come sorted by id.
#[derive(Debug, Clone, Copy)]
pub struct Eligible<'c> {
    /// Who.
    pub candidate: &'c Candidate,
    /// Where it stands among all candidates of the hop.
    pub index: usize,
    /// Its weight with boosts, in millionths.
    pub weight: i64,
    /// The score of the stages before, with boosts; 0 without.
    pub score: f64,
    /// The sum of its boosts.
    pub boost: f64,
    /// It would be beyond its capacity.
    pub over: bool,
}

impl Eligible<'_> {
    /// Its id.
    pub fn id(&self) -> RecipientId {
        self.candidate.recipient.id
    }
}

/// Everything else that a strategy may look at.
#[derive(Debug, Clone, Copy)]
pub struct Round<'r> {
    /// What is routed.
    pub work: &'r Work,
    /// The time of the decision.
    pub now: Micros,
    /// Since when the work is in this recipient pool.
    pub hop_since: Micros,
    /// Chance follows from it.
    pub decision: DecisionId,
    /// What expressions see.
    pub sight: &'r Sight,
    /// The traits of the tenant.
    pub traits: &'r [Trait],
    /// Every member of the recipient pool, eligible or not, sorted by id.
    pub members: &'r [Candidate],
    /// What the stages remember.
    pub memory: &'r Memory,
    /// Turns move on as if this one had won.
    pub forced: Option<RecipientId>,
}

impl Round<'_> {
    /// Whose turn it counts as: the winner's, unless another one is forced.
    pub fn charged(&self, eligible: &[Eligible], winner: usize) -> usize {
        let forced = self
            .forced
            .and_then(|id| eligible.iter().position(|one| one.id() == id));
        forced.unwrap_or(winner)
    }
}

/// What the stages of a pick remember, loaded before it is made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Memory {
    /// By name of the stage.
    pub states: BTreeMap<String, Arc<StageState>>,
    /// By name of the stage: who holds the key of this work, and the key.
    pub holders: BTreeMap<String, Held>,
}

/// The key of this work in a sticky stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// What the expression gives.
    pub key: String,
    /// Who holds it.
    pub holder: Option<Holder>,
}

impl Memory {
    /// What a stage remembers.
    pub fn state(&self, stage: &str) -> StageState {
        let known = self.states.get(stage);
        known.map_or_else(StageState::default, |state| state.as_ref().clone())
    }
}

/// How likely each candidate was to be chosen.
#[derive(Debug, Clone, PartialEq)]
pub enum Chances {
    /// Nothing was drawn: the winner surely.
    Certain,
    /// One for each eligible candidate.
    Known(Vec<f64>),
    /// Nobody can say.
    Unknown,
}

/// What a strategy says of each eligible candidate, in their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It gets the work.
    Won,
    /// Why not.
    Not(Reason),
}

/// Who may claim the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fan {
    /// Those it is offered to.
    pub to: Vec<RecipientId>,
    /// How long, in microseconds.
    pub window_us: u64,
}

/// What a strategy gives back.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// For each eligible candidate.
    pub fates: Vec<Fate>,
    /// Those who lost, best first, as far as anybody asks (indexes into the eligible).
    pub runners_up: Vec<usize>,
    /// Its own number for each, where it has one.
    pub scores: Vec<f64>,
    /// Where each stood in a turn when the pick was made; empty for others.
    pub turns: Vec<i64>,
    /// What stages remember from now on.
    pub states: Vec<(String, StageState)>,
    /// Keys that have a holder from now on: stage, key, holder.
    pub bound: Vec<(String, String, Holder)>,
    /// Whether anything was drawn.
    pub drew: bool,
    /// How likely each was.
    pub chances: Chances,
    /// The work is offered and not assigned.
    pub fan: Option<Fan>,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
    /// Why the winner won, where the strategy has more than one way.
    pub how: Option<&'static str>,
    /// What it pays, or is paid, in micros of its currency.
    pub price: Option<i64>,
}

impl Selection {
    /// Nobody yet.
    pub fn of(fates: Vec<Fate>) -> Selection {
        Selection {
            fates,
            runners_up: Vec::new(),
            scores: Vec::new(),
            turns: Vec::new(),
            states: Vec::new(),
            bound: Vec::new(),
            drew: false,
            chances: Chances::Certain,
            fan: None,
            notes: Vec::new(),
            how: None,
            price: None,
        }
    }

    /// The same over `count` candidates of which only those at `kept` were looked at; each other one leaves with a reason.
    #[must_use]
    pub fn spread(mut self, kept: &[usize], count: usize, reason: impl Fn(usize) -> Reason) -> Selection {
        if kept.len() == count {
            return self;
        }
        let mut places: Vec<Option<usize>> = vec![None; count];
        for (at, place) in kept.iter().enumerate() {
            places[*place] = Some(at);
        }
        self.fates = places
            .iter()
            .enumerate()
            .map(|(place, at)| match at.and_then(|at| self.fates.get(at)) {
                Some(fate) => fate.clone(),
                None => Fate::Not(reason(place)),
            })
            .collect();
        let wide = |values: &[f64], missing: f64| -> Vec<f64> {
            places
                .iter()
                .map(|at| at.and_then(|at| values.get(at).copied()).unwrap_or(missing))
                .collect()
        };
        if !self.scores.is_empty() {
            self.scores = wide(&self.scores, f64::NAN);
        }
        if !self.turns.is_empty() {
            let turns = &self.turns;
            self.turns = places
                .iter()
                .map(|at| at.and_then(|at| turns.get(at).copied()).unwrap_or(0))
                .collect();
        }
        if let Chances::Known(chances) = &self.chances {
            self.chances = Chances::Known(wide(chances, 0.0));
        }
        self.runners_up = self
            .runners_up
            .iter()
            .filter_map(|at| kept.get(*at).copied())
            .collect();
        self
    }

    /// Those who won.
    pub fn winners(&self) -> impl Iterator<Item = usize> {
        self.fates
            .iter()
            .enumerate()
            .filter(|(_, fate)| **fate == Fate::Won)
            .map(|(at, _)| at)
    }

    /// How likely a candidate was to be chosen.
    pub fn chance_of(&self, at: usize) -> Option<f64> {
        match &self.chances {
            Chances::Unknown => None,
            Chances::Known(chances) => chances.get(at).copied(),
            Chances::Certain => Some(f64::from(u8::from(self.fates.get(at) == Some(&Fate::Won)))),
        }
    }
}

/// A strategy with its parameters, its place, and the one inside of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// Which.
    pub info: &'static super::Info,
    /// Its parameters.
    pub params: Params,
    /// The name of its stage: what it remembers stands under it.
    pub stage: String,
    /// The one inside of it.
    pub inner: Option<Box<Use>>,
}
