//! Names of jobs and dags: one space of names over all files.

use std::collections::HashMap;

use super::fault::{Fault, Place, shown};

/// Bytes of a name.
const BYTES_MAX: usize = 128;

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Job,
    Dag,
}

impl Owner {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Dag => "dag",
        }
    }
}

/// Names that are taken, each with its owner and place.
#[derive(Default)]
pub(super) struct Names(HashMap<String, (Owner, Place)>);

impl Names {
    /// Makes a name somebody's; a name that is none, or is somebody's already, is a fault.
    pub(super) fn take(&mut self, owner: Owner, name: &str, at: &Place) -> Result<(), Fault> {
        let word = owner.word();
        if !is_name(name) {
            let rule =
                format!("{word} name must have 1 to {BYTES_MAX} bytes and no control character, `/` or `#`");
            return Err(Fault::error("config/bad-value", at, rule));
        }
        if let Some((other, first)) = self.0.get(name) {
            let message = format!("duplicate {word} '{}'", shown(name));
            let fault = Fault::error("config/duplicate-name", at, message);
            let where_ = if *other == owner {
                "the first one stands here".to_owned()
            } else {
                format!("a {} of this name stands here", other.word())
            };
            return Err(fault.with_related(first, where_));
        }
        self.0.insert(name.to_owned(), (owner, at.clone()));
        Ok(())
    }
}

pub(super) fn is_name(name: &str) -> bool {
    (1..=BYTES_MAX).contains(&name.len())
        && !name.trim().is_empty()
        && !name.contains(|letter: char| letter.is_control() || letter == '/' || letter == '#')
}
