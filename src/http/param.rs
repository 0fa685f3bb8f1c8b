//! Parameters and fields of requests, once for the handler that reads them and for the document that describes them.

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Flag,
    /// Any JSON.
    Any,
    /// The name of a time zone.
    Zone,
    /// An RFC 3339 instant.
    Instant,
    /// An RFC 3339 instant, or a length of time before now.
    Moment,
    /// An id as answers have it: a UUID.
    Id,
    /// The number of a version, or `draft`.
    Version,
    /// Terms like `state:failed since:1h`.
    Filter,
    /// The same, or an object of filters.
    Matching,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// A query parameter, or a field of a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) about: &'static str,
    pub(super) repeated: bool,
    pub(super) required: bool,
}

impl Param {
    /// A parameter; of several the last one counts.
    pub(super) const fn query(name: &'static str, kind: Kind, about: &'static str) -> Param {
        Param {
            name,
            kind,
            about,
            repeated: false,
            required: false,
        }
    }

    /// A filter: repeated, it means "or".
    pub(super) const fn filter(name: &'static str, kind: Kind, about: &'static str) -> Param {
        Param {
            repeated: true,
            ..Param::query(name, kind, about)
        }
    }

    /// Without it the request is refused.
    pub(super) const fn needed(mut self) -> Param {
        self.required = true;
        self
    }
}

/// Readers know a parameter by its name.
impl AsRef<str> for Param {
    fn as_ref(&self) -> &str {
        self.name
    }
}
