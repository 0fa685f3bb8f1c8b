//! Files of cronstable and yacron: their words are ours, some of their meanings are not. This rewrites the tree of such a
//! file into one of our own, before any section is read: what has no counterpart here is taken out with a warning, what
//! is only written otherwise is written our way, and what would mean something else is said.
//!
//! Words that neither of us knows stay where they are, and are faults as in every other file.

use std::rc::Rc;

use super::fault::{Fault, Place, shown};
use super::keys::Section;
use super::tree::{self, Node, Value};

/// Sections of theirs that speak of their own program.
const DOCUMENT: [&str; 6] = ["web", "mcp", "cluster", "push", "logging", "statsd"];

/// Keys of `state` beside `path`.
const STATE: [&str; 8] = [
    "topology",
    "deploymentId",
    "maxRunsPerJob",
    "onStoreUnavailable",
    "gcGraceSeconds",
    "maxOpsPerSecond",
    "slotTtlSeconds",
    "jobApi",
];

const OUTCOMES: [&str; 4] = ["onFailure", "onPermanentFailure", "onSuccess", "onLate"];

/// Keys whose value is true or false; theirs may be spelt in more ways.
const BOOLEANS: [&str; 9] = [
    "enabled",
    "captureStdout",
    "captureStderr",
    "onlyIfLastSucceeded",
    "utc",
    "nonzeroReturn",
    "producesStdout",
    "producesStderr",
    "always",
];

type Pair = (Rc<Node>, Rc<Node>);

/// What becomes of one pair of a map.
enum Fate {
    Stays,
    Goes,
    /// The value is written our way.
    Becomes(Rc<Node>),
}

/// Rewrites one document.
pub(super) fn adapt(document: &Rc<Node>, faults: &mut Vec<Fault>) -> Rc<Node> {
    let mut adapting = Adapting { faults };
    let adapted = adapting.map(document, |this, word, key, value| match word {
        "defaults" => Fate::Becomes(this.job(value)),
        "jobs" => Fate::Becomes(this.list(value, Adapting::job)),
        "dags" => Fate::Becomes(this.list(value, Adapting::dag)),
        "state" => Fate::Becomes(this.without(value, "state.", &STATE)),
        "notify" => Fate::Becomes(this.without_later(value, Section::Notify)),
        _ if DOCUMENT.contains(&word) => this.drop(word, &key.at),
        _ => Fate::Stays,
    });
    adapting.tell_of_stderr(&adapted);
    adapting.tell_of_days(&adapted);
    both_days(&adapted)
}

struct Adapting<'f> {
    faults: &'f mut Vec<Fault>,
}

impl Adapting<'_> {
    /// A map with the fate of each pair decided; anything else as it is.
    fn map(
        &mut self,
        node: &Rc<Node>,
        mut fate: impl FnMut(&mut Self, &str, &Rc<Node>, &Rc<Node>) -> Fate,
    ) -> Rc<Node> {
        let Value::Mapping(pairs) = &node.value else {
            return node.clone();
        };
        let mut kept: Vec<Pair> = Vec::new();
        for (key, value) in pairs {
            let Some((word, _)) = key.scalar() else {
                kept.push((key.clone(), value.clone()));
                continue;
            };
            match fate(self, word, key, value) {
                Fate::Stays => kept.push((key.clone(), value.clone())),
                Fate::Goes => {}
                Fate::Becomes(value) => kept.push((key.clone(), value)),
            }
        }
        with_value(node, Value::Mapping(kept))
    }

    fn list(&mut self, node: &Rc<Node>, each: fn(&mut Self, &Rc<Node>) -> Rc<Node>) -> Rc<Node> {
        match &node.value {
            Value::Sequence(items) => {
                let items = items.iter().map(|item| each(self, item)).collect();
                with_value(node, Value::Sequence(items))
            }
            Value::Scalar { .. } | Value::Mapping(_) => node.clone(),
        }
    }

    fn without(&mut self, node: &Rc<Node>, path: &str, words: &[&str]) -> Rc<Node> {
        self.map(node, |this, word, key, _| {
            if words.contains(&word) {
                this.drop(&format!("{path}{word}"), &key.at)
            } else {
                Fate::Stays
            }
        })
    }

    /// Takes out what our own readers refuse for now.
    fn without_later(&mut self, node: &Rc<Node>, section: Section) -> Rc<Node> {
        self.map(node, |this, word, key, _| match section.later(word) {
            Some(name) => this.drop(name, &key.at),
            None => Fate::Stays,
        })
    }

    fn drop(&mut self, name: &str, at: &Place) -> Fate {
        self.warn(
            at,
            format!("'{}' is not supported and has no effect", shown(name)),
        );
        Fate::Goes
    }

    fn warn(&mut self, at: &Place, message: String) {
        self.faults
            .push(Fault::warning("cronstable/not-supported", at, message));
    }

    fn job(&mut self, node: &Rc<Node>) -> Rc<Node> {
        self.map(node, |this, word, key, value| match word {
            "utc" => this.utc(&key.at, value),
            "redactArchivedSecrets" => this.drop(word, &key.at),
            "schedule" => Fate::Becomes(this.schedule(value)),
            "resourceLimits" => Fate::Becomes(this.without_later(value, Section::ResourceLimits)),
            "failsWhen" => Fate::Becomes(this.map(value, |_, word, _, value| truth(word, value))),
            _ if BOOLEANS.contains(&word) => truth(word, value),
            _ => match Section::Job.later(word) {
                Some(name) => this.drop(name, &key.at),
                None if OUTCOMES.contains(&word) => Fate::Becomes(this.outcome(value)),
                None => Fate::Stays,
            },
        })
    }

    /// A dag has the words of a job for its schedule, and its tasks those for their commands.
    fn dag(&mut self, node: &Rc<Node>) -> Rc<Node> {
        self.map(node, |this, word, key, value| match word {
            "utc" => this.utc(&key.at, value),
            "schedule" => Fate::Becomes(this.schedule(value)),
            "tasks" => Fate::Becomes(this.list(value, Adapting::task)),
            _ if BOOLEANS.contains(&word) => truth(word, value),
            _ => this.unless_later(Section::Dag, word, &key.at),
        })
    }

    fn task(&mut self, node: &Rc<Node>) -> Rc<Node> {
        self.map(node, |this, word, key, value| match word {
            "redactArchivedSecrets" => this.drop(word, &key.at),
            "resourceLimits" => Fate::Becomes(this.without_later(value, Section::ResourceLimits)),
            "failsWhen" => Fate::Becomes(this.map(value, |_, word, _, value| truth(word, value))),
            _ if BOOLEANS.contains(&word) => truth(word, value),
            _ => this.unless_later(Section::Task, word, &key.at),
        })
    }

    /// Takes out a word that our own reader refuses for now.
    fn unless_later(&mut self, section: Section, word: &str, at: &Place) -> Fate {
        match section.later(word) {
            Some(name) => self.drop(name, at),
            None => Fate::Stays,
        }
    }

    /// Theirs is true unless said otherwise, as ours always is.
    fn utc(&mut self, at: &Place, value: &Rc<Node>) -> Fate {
        let is_utc = match truth("utc", value) {
            Fate::Becomes(node) => node.scalar().is_some_and(|(text, _)| text == "true"),
            Fate::Stays | Fate::Goes => value.scalar().is_some_and(|(text, _)| text == "true"),
        };
        if !is_utc {
            let message = "'utc: false' is not supported: without `timezone` the schedule goes by UTC";
            self.warn(at, message.to_owned());
        }
        Fate::Goes
    }

    fn schedule(&mut self, node: &Rc<Node>) -> Rc<Node> {
        self.map(node, |this, word, key, value| match word {
            "year" if value.scalar().is_some_and(|(text, _)| text == "*") => Fate::Goes,
            "year" => this.drop("schedule.year", &key.at),
            _ => Fate::Stays,
        })
    }

    /// Who is told: the reporters that there are, with the keys that they have.
    fn outcome(&mut self, node: &Rc<Node>) -> Rc<Node> {
        self.map(node, |this, word, _, value| match word {
            "report" => {
                let report = this.without_later(value, Section::Report);
                let report = this.map(&report, |this, word, _, value| match word {
                    "webhook" => Fate::Becomes(this.without_later(value, Section::Webhook)),
                    _ => Fate::Stays,
                });
                Fate::Becomes(report)
            }
            _ => Fate::Stays,
        })
    }

    /// There a job fails that writes to stderr and does not say otherwise.
    fn tell_of_stderr(&mut self, document: &Node) {
        let says = |node: &Node| {
            tree::entry(node, "failsWhen").is_some_and(|fails| tree::entry(fails, "producesStderr").is_some())
        };
        if tree::entry(document, "defaults").is_some_and(says) {
            return;
        }
        let tasks = items_of(document, "dags")
            .iter()
            .flat_map(|dag| items_of(dag, "tasks"))
            .filter(|task| tree::entry(task, "command").is_some());
        let silent = items_of(document, "jobs")
            .iter()
            .chain(tasks)
            .find(|job| !says(job));
        if let Some(job) = silent {
            let message =
                "output on stderr does not fail a run here, unless failsWhen.producesStderr is true";
            self.faults
                .push(Fault::note("lint/cronstable-stderr", &job.at, message));
        }
    }

    fn tell_of_days(&mut self, document: &Node) {
        if tree::entry(document, "defaults")
            .is_some_and(|defaults| tree::entry(defaults, "dayMatch").is_some())
        {
            return;
        }
        for job in ["jobs", "dags"].iter().flat_map(|word| items_of(document, word)) {
            let schedule = tree::entry(job, "schedule").filter(|schedule| restricts_both_days(schedule));
            if let (Some(schedule), None) = (schedule, tree::entry(job, "dayMatch")) {
                let message =
                    "both days must match, as in cronstable; in our own files and in cron either is enough";
                let help = "the file is read with `dayMatch: and`";
                self.faults
                    .push(Fault::note("lint/cronstable-days", &schedule.at, message).with_help(help));
            }
        }
    }
}

fn items_of<'n>(map: &'n Node, word: &str) -> &'n [Rc<Node>] {
    match tree::entry(map, word).map(|items| &items.value) {
        Some(Value::Sequence(items)) => items,
        Some(Value::Scalar { .. } | Value::Mapping(_)) | None => &[],
    }
}

fn restricts_both_days(schedule: &Node) -> bool {
    let is_open = |field: &str| field.starts_with('*') || field == "?";
    let (day, weekday) = match &schedule.value {
        Value::Scalar { text, .. } => {
            let mut words = text.split_whitespace().rev();
            let weekday = words.next();
            (words.nth(1), weekday)
        }
        Value::Mapping(_) => {
            let field = |word| tree::entry(schedule, word).and_then(Node::scalar);
            (
                field("dayOfMonth").map(|(text, _)| text),
                field("dayOfWeek").map(|(text, _)| text),
            )
        }
        Value::Sequence(_) => (None, None),
    };
    matches!((day, weekday), (Some(day), Some(weekday)) if !is_open(day) && !is_open(weekday) && !weekday.starts_with('+'))
}

/// Yes and no in the ways in which strict YAML takes them.
fn truth(word: &str, value: &Rc<Node>) -> Fate {
    let Some((text, _)) = value.scalar().filter(|_| BOOLEANS.contains(&word)) else {
        return Fate::Stays;
    };
    let is_true = match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" | "y" => "true",
        "no" | "false" | "off" | "0" | "n" => "false",
        _ => return Fate::Stays,
    };
    Fate::Becomes(plain(&value.at, is_true))
}

fn plain(at: &Place, text: &str) -> Rc<Node> {
    Rc::new(Node {
        at: at.clone(),
        value: Value::Scalar {
            text: text.to_owned(),
            plain: true,
        },
    })
}

fn with_value(node: &Node, value: Value) -> Rc<Node> {
    Rc::new(Node {
        at: node.at.clone(),
        value,
    })
}

/// `dayMatch: and` under `defaults`, unless something stands there.
fn both_days(document: &Rc<Node>) -> Rc<Node> {
    let Value::Mapping(pairs) = &document.value else {
        return document.clone();
    };
    let rule = |at: &Place| (plain(at, "dayMatch"), plain(at, "and"));
    let mut pairs = pairs.clone();
    let is_defaults = |(key, _): &&mut Pair| key.scalar().is_some_and(|(word, _)| word == "defaults");
    match pairs.iter_mut().find(is_defaults) {
        Some((key, value)) => {
            let mut inner = match &value.value {
                Value::Mapping(inner) if tree::entry(value, "dayMatch").is_none() => inner.clone(),
                Value::Scalar { .. } if value.is_null() => Vec::new(),
                Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => return document.clone(),
            };
            inner.push(rule(&key.at));
            *value = with_value(value, Value::Mapping(inner));
        }
        None => {
            let at = &document.at;
            let defaults = with_value(document, Value::Mapping(vec![rule(at)]));
            pairs.push((plain(at, "defaults"), defaults));
        }
    }
    with_value(document, Value::Mapping(pairs))
}
