//! What a person and a program are told of a torture.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::super::failure::Failure;
use super::super::paragraph::wrapped;
use super::super::show::Show;
use super::super::times;
use super::plan::Round;
use super::round::Outcome;

/// Sentences of the whole test that are told.
const SENTENCES_MAX: usize = 50;
/// Columns of the numbers in front of the deeds.
const INDENT: usize = 8;
/// Columns of a line when it is not for a terminal.
const WIDTH: usize = 80;

/// The sums over all rounds.
#[derive(Debug, Clone, Default)]
pub(super) struct Totals {
    pub(super) rounds: u64,
    pub(super) deeds: u64,
    pub(super) by_kind: BTreeMap<&'static str, u64>,
    pub(super) idle: u64,
    pub(super) damaged: u64,
    pub(super) acknowledged: u64,
    pub(super) refused: u64,
    pub(super) executed: u64,
    pub(super) again: u64,
    pub(super) ended: u64,
    pub(super) took_ms: u64,
    pub(super) findings: Vec<String>,
}

fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl Totals {
    /// Adds what came of a round, or of the end.
    pub(super) fn add(&mut self, outcome: &Outcome) {
        self.idle += wide(outcome.idle);
        self.acknowledged += wide(outcome.acknowledged);
        self.executed += wide(outcome.executed);
        self.again += wide(outcome.again);
        self.ended += wide(outcome.ended);
        self.took_ms += outcome.took_ms;
        self.findings.extend(outcome.findings.iter().cloned());
    }

    /// Adds the round's own numbers.
    pub(super) fn add_round(&mut self, round: &Round) {
        self.rounds += 1;
        self.deeds += wide(round.deeds.len());
        for deed in &round.deeds {
            *self.by_kind.entry(deed.act.kind()).or_default() += 1;
        }
        self.damaged += u64::from(round.damage.is_some());
    }

    /// One sentence.
    pub(super) fn verdict(&self, seed: u64) -> String {
        let what = format!(
            "{} rounds with {} deeds in {}, seed {seed}",
            self.rounds,
            self.deeds,
            times::length(self.took_ms)
        );
        if self.findings.is_empty() {
            format!(
                "Nothing lost: {what}. All {} acknowledged starts are accounted for, {} runs ended, {} executions were \
                 repeated after a crash or a failure; no two live copies, no slot too many.",
                self.acknowledged, self.ended, self.again
            )
        } else {
            let end = if self.findings.len() == 1 { "" } else { "s" };
            format!("LOST: {} finding{end} in {what}.", self.findings.len())
        }
    }

    /// For a program.
    pub(super) fn document(&self, head: &Head<'_>, clean: &str) -> Value {
        json!({
            "lost": !self.findings.is_empty(), "seed": head.seed, "directory": head.directory, "daemons": head.daemons,
            "rounds": self.rounds, "deeds": self.deeds, "deeds_by_kind": self.by_kind, "deeds_without_effect": self.idle,
            "damaged_copies": self.damaged, "starts_acknowledged": self.acknowledged,
            "starts_refused": self.refused, "executions": self.executed, "executions_repeated": self.again,
            "runs_ended": self.ended, "duration_ms": self.took_ms, "not_tried": head.not_tried,
            "findings": self.findings, "left": clean,
        })
    }

    /// For a person: the findings, and the verdict.
    pub(super) fn tell(&self, seed: u64, show: &Show) -> Result<(), Failure> {
        for finding in self.findings.iter().take(SENTENCES_MAX) {
            show.data(&format!("  {}\n", wrapped(finding, Some(WIDTH), 4)))?;
        }
        if self.findings.len() > SENTENCES_MAX {
            show.data(&format!("  and {} more\n", self.findings.len() - SENTENCES_MAX))?;
        }
        show.data(&format!("{}\n", wrapped(&self.verdict(seed), Some(WIDTH), 0)))
    }
}

/// What is known before the first round.
#[derive(Debug, Clone)]
pub(super) struct Head<'a> {
    pub(super) directory: &'a str,
    pub(super) seed: u64,
    pub(super) daemons: usize,
    /// Faults that cannot be made here, and why.
    pub(super) not_tried: Vec<String>,
}

impl Head<'_> {
    pub(super) fn tell(&self, show: &Show) -> Result<(), Failure> {
        let daemons = if self.daemons == 1 { "daemon" } else { "daemons" };
        let mut text = format!(
            "Torture of {}: {} {daemons}, seed {}\n",
            self.directory, self.daemons, self.seed
        );
        for sentence in &self.not_tried {
            text.push_str(&format!(
                "{}\n",
                wrapped(&format!("  not tried: {sentence}"), Some(WIDTH), 4)
            ));
        }
        show.data(&text)
    }
}

/// The lines of a round.
pub(super) fn round_line(round: &Round, outcome: &Outcome) -> String {
    let mut deeds: Vec<String> = round.deeds.iter().map(|deed| deed.act.to_string()).collect();
    deeds.extend(round.damage.map(|_| "a damaged copy".to_owned()));
    // A deed is not broken in two.
    let deeds: Vec<String> = deeds.iter().map(|deed| deed.replace(' ', "\u{a0}")).collect();
    let deeds = wrapped(&deeds.join(", "), Some(WIDTH), INDENT).replace('\u{a0}', " ");
    let mark = if outcome.findings.is_empty() { "ok" } else { "LOST" };
    let numbers = format!(
        "{:>4}  {mark}  {}: {} starts acknowledged, {} runs ended, {} repeated",
        round.number,
        times::length(outcome.took_ms),
        outcome.acknowledged,
        outcome.ended,
        outcome.again
    );
    format!("{numbers}\n{}{deeds}\n", " ".repeat(INDENT))
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Abilities, round};
    use super::*;

    #[test]
    fn lines_fit_a_terminal_and_say_what_was_done() {
        let abilities = Abilities {
            daemons: 3,
            planned_faults: true,
            fill: true,
        };
        for number in 1..40 {
            let round = round(3, number, abilities);
            let text = round_line(&round, &Outcome::default());
            assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
            let shown = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for deed in &round.deeds {
                assert!(shown.contains(&deed.act.to_string()), "{text}");
            }
        }
    }

    #[test]
    fn the_verdict_is_a_sentence() {
        let mut totals = Totals {
            rounds: 3,
            deeds: 12,
            acknowledged: 70,
            took_ms: 21_000,
            ..Totals::default()
        };
        assert!(
            totals
                .verdict(5)
                .starts_with("Nothing lost: 3 rounds with 12 deeds in 21 s, seed 5. All 70")
        );
        totals.add(&Outcome {
            findings: vec!["x".to_owned()],
            ..Outcome::default()
        });
        assert_eq!(
            totals.verdict(5),
            "LOST: 1 finding in 3 rounds with 12 deeds in 21 s, seed 5."
        );
        let head = Head {
            directory: "d",
            seed: 5,
            daemons: 1,
            not_tried: Vec::new(),
        };
        assert_eq!(totals.document(&head, "left")["lost"], true);
    }
}
