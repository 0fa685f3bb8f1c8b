//! Who works on the parts of one large check at the same time. Threads are not made here: whoever runs a pass brings them.

use std::fmt;

/// One part; parts do not wait for each other, and their order does not matter.
pub type Part<'p> = Box<dyn FnOnce() + Send + 'p>;

/// Runs parts, and comes back when all of them are done.
pub trait Crew: Sync {
    /// Into how many parts work should be cut.
    fn hands(&self) -> usize;
    /// Runs them.
    fn run(&self, parts: Vec<Part<'_>>);
}

/// One part after the other.
pub struct Alone;

impl Crew for Alone {
    fn hands(&self) -> usize {
        1
    }

    fn run(&self, parts: Vec<Part<'_>>) {
        for part in parts {
            part();
        }
    }
}

/// A crew that a world brings. Worlds are equal whoever works in them.
#[derive(Clone, Copy)]
pub struct Hands(pub &'static dyn Crew);

impl PartialEq for Hands {
    fn eq(&self, _: &Hands) -> bool {
        true
    }
}

impl fmt::Debug for Hands {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Hands({})", self.0.hands())
    }
}
