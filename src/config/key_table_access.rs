//! The part of the table of keys that is about who may call and what is kept of it, and about declared routing.

use super::key_table::{COUNT_MAX, DAY, NO_END, SECOND, key, text};
use super::keys::Unset::{Is, Nothing, Required};
use super::keys::{Key, Section};
use super::shape::Shape::{Boolean, Duration, FilesOr, Integer};
use super::shape::Text;

pub(super) const AUTH: &[Key] = &[
    text(
        "bootstrapKeyFile",
        Text::Path,
        Nothing,
        "A file with the first admin key; a start makes it with a new key, readable by its user alone, where it is missing; needs a restart",
    ),
    key(
        "sessionTtl",
        Duration(60 * SECOND, 30 * DAY),
        Is("12h"),
        "How long somebody stays signed in on the dashboard",
    ),
    text(
        "hashKeyFile",
        Text::Path,
        Nothing,
        "32 bytes under which keys are hashed; `keys.secret` of the state directory when it is absent; needs a restart",
    ),
];

pub(super) const RATE_LIMIT: &[Key] = &[
    key(
        "perSecond",
        Integer(1, 1_000_000),
        Is("1000"),
        "Requests a second of one key, in the long run",
    ),
    key(
        "burst",
        Integer(1, 1_000_000),
        Is("2000"),
        "How many of them may come at once after a rest",
    ),
];

pub(super) const RETENTION_AUDIT: &[Key] = &[
    key(
        "age",
        Duration(60 * SECOND, NO_END),
        Is("365d"),
        "How long it is kept who did what",
    ),
    key(
        "count",
        Integer(1, COUNT_MAX),
        Is("1000000"),
        "Rows of it that are kept of each tenant; the oldest go first",
    ),
];

pub(super) const ROUTING: &[Key] = &[
    key(
        "bundles",
        FilesOr(Section::RoutingBundle),
        Nothing,
        "Files of declared routing that are applied at the start, at each reload and whenever they change",
    ),
    key(
        "enforce",
        Boolean,
        Is("false"),
        "What somebody changes by hand in what they declare is put back; otherwise `ductor bundle status` shows it",
    ),
];

pub(super) const ROUTING_BUNDLE: &[Key] = &[
    text("path", Text::Path, Required, "The file, YAML or JSON"),
    text("tenant", Text::NodeName, Is("default"), "Whose objects these are"),
    key(
        "prune",
        Boolean,
        Is("false"),
        "Objects that the file no longer has go, if the same bundle has applied them",
    ),
    text(
        "drainTo",
        Text::Value,
        Nothing,
        "With `prune`: the pool where the waiting work of pools and claim queues that go waits then",
    ),
];
