//! Names that people give: nodes, jobs, slot pools, steps. Checked once, then carried in the type.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::limits;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
    };
}

name! {
    /// The configured or generated name of a daemon: `[a-z0-9][a-z0-9._-]{0,62}`.
    NodeName
}
name! {
    /// The name of a job: 1 to 128 bytes, no control character, no `/`, no `#`.
    JobName
}
name! {
    /// The name of a slot pool: 1 to 128 bytes, no control character.
    SlotPoolName
}
name! {
    /// The name of a step inside its definition.
    StepRef
}

/// Why a text is not a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// The node name has a character or length that file names and logs could not carry.
    #[error("node name must match [a-z0-9][a-z0-9._-]{{0,62}}")]
    Node,
    /// The job name is empty, too long or has a forbidden character.
    #[error("job name must have 1 to 128 bytes without control characters, `/` or `#`")]
    Job,
    /// The slot pool name is empty, too long or has a control character.
    #[error("pool name must be non-empty and printable")]
    SlotPool,
}

impl NodeName {
    /// Checks `text`.
    pub fn new(text: &str) -> Result<NodeName, BadName> {
        let tail_ok = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
        let first_ok = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        if first_ok && text.len() <= limits::NODE_NAME_BYTES_MAX && text.bytes().all(tail_ok) {
            Ok(NodeName(text.to_owned()))
        } else {
            Err(BadName::Node)
        }
    }
}

impl JobName {
    /// Checks `text`.
    pub fn new(text: &str) -> Result<JobName, BadName> {
        if is_printable(text) && !text.contains(['/', '#']) {
            Ok(JobName(text.to_owned()))
        } else {
            Err(BadName::Job)
        }
    }
}

impl SlotPoolName {
    /// Checks `text`.
    pub fn new(text: &str) -> Result<SlotPoolName, BadName> {
        if is_printable(text) {
            Ok(SlotPoolName(text.to_owned()))
        } else {
            Err(BadName::SlotPool)
        }
    }
}

impl StepRef {
    /// The one step of a job.
    pub fn main() -> StepRef {
        StepRef("main".to_owned())
    }

    /// Checks `text`: without control characters or `/`; 1 to 128 bytes, and some more for the branches of an instance.
    pub fn new(text: &str) -> Option<StepRef> {
        let name = text.split('#').next().unwrap_or_default();
        let short = text.len() <= limits::STEP_NAME_BYTES_MAX;
        (is_printable(name) && short && !text.contains(|sign: char| sign == '/' || sign.is_control()))
            .then(|| StepRef(text.to_owned()))
    }

    /// The instance of this step in a branch of the scatters around it, outermost first.
    #[must_use]
    pub fn instance(&self, path: &[u32]) -> StepRef {
        let mut text = self.0.clone();
        for branch in path {
            text.push('#');
            text.push_str(&branch.to_string());
        }
        StepRef(text)
    }

    /// The step and the branches of an instance; `None` if what follows a `#` is no number.
    pub fn split_instance(&self) -> Option<(StepRef, Vec<u32>)> {
        let mut parts = self.0.split('#');
        let step = StepRef(parts.next()?.to_owned());
        let path: Option<Vec<u32>> = parts.map(|part| part.parse().ok()).collect();
        Some((step, path?))
    }
}

fn is_printable(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= limits::NAME_BYTES_MAX
        && !text.bytes().any(|byte| byte < 0x20 || byte == 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        assert!(NodeName::new("n-0a1b2c").is_ok());
        for text in ["", "-a", "A", "a b", "a/b", &"a".repeat(64)] {
            assert_eq!(NodeName::new(text), Err(BadName::Node), "{text}");
        }
        assert!(JobName::new("stock sync \u{e9}").is_ok());
        for text in ["", "a/b", "a#1", "a\tb", "a\u{7f}", &"a".repeat(129)] {
            assert_eq!(JobName::new(text), Err(BadName::Job), "{text}");
        }
        assert!(StepRef::new("").is_none() && StepRef::new("#1").is_none() && StepRef::new("a/b").is_none());
        let long = StepRef::new(&"x".repeat(128)).unwrap();
        let instance = long.instance(&[9_999, 12]);
        assert_eq!(StepRef::new(instance.as_str()), Some(instance.clone()));
        assert_eq!(instance.split_instance(), Some((long, vec![9_999, 12])));
        assert_eq!(StepRef::new("a#b").unwrap().split_instance(), None);
        assert!(SlotPoolName::new("a/b").is_ok());
        assert_eq!(SlotPoolName::new("a\nb"), Err(BadName::SlotPool));
    }
}
