//! The part of the table of keys that is about who may call and what is kept of it, and about declared routing.

use super::key_table::{COUNT_MAX, DAY, NO_END, SECOND, key, map, text};
use super::keys::Unset::{Is, Nothing, Required};
use super::keys::{Key, Section};
use super::shape::Shape::{Boolean, Duration, FilesOr, Integer, ListOf, OneOf};
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
    key(
        "issuers",
        ListOf(Section::Issuer),
        Nothing,
        "Who else may say who calls: keys whose signed tokens (JWT) are taken",
    ),
];

pub(super) const ISSUER: &[Key] = &[
    text(
        "issuer",
        Text::Replaced,
        Required,
        "The `iss` of its tokens, letter by letter",
    ),
    text(
        "audience",
        Text::Replaced,
        Required,
        "What `aud` of a token must be, or hold",
    ),
    key(
        "algorithm",
        OneOf(&["EdDSA", "ES256", "RS256"]),
        Required,
        "How it signs; a token that is signed in another way is refused, whatever it says",
    ),
    text(
        "keyId",
        Text::Replaced,
        Nothing,
        "The `kid` of the tokens that this key signs; any when it is absent",
    ),
    text(
        "key",
        Text::PublicKey,
        Nothing,
        "Its public key in PEM; this or `keyFile`",
    ),
    text(
        "keyFile",
        Text::Path,
        Nothing,
        "The file with its public key, read at a start and at each reload",
    ),
    text(
        "tenant",
        Text::NodeName,
        Nothing,
        "The tenant of all its tokens, whatever they say",
    ),
    text(
        "tenantClaim",
        Text::Value,
        Is("tenant"),
        "The claim that names the tenant, where `tenant` is absent",
    ),
    text(
        "scopesClaim",
        Text::Value,
        Is("scope"),
        "The claim with the scopes: a text with spaces, or a list",
    ),
];

/// The modes of pipelines that can be chosen; `inherit` says nothing.
const MODES: &[&str] = &["inherit", "linear", "dag", "shadow"];

pub(super) const TENANT: &[Key] = &[
    text(
        "name",
        Text::NodeName,
        Required,
        "Its name; `default` is always there",
    ),
    map(
        "routing",
        Section::TenantRouting,
        "How its work is routed; while it stands here, the API cannot change it",
    ),
];

pub(super) const TENANT_ROUTING: &[Key] = &[
    text(
        "defaultPool",
        Text::Replaced,
        Nothing,
        "The pool, by id or name, of work that no rule of the tenant takes",
    ),
    key(
        "pipelineMode",
        OneOf(MODES),
        Is("inherit"),
        "How checks run where a pool says nothing; it never changes what is decided",
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
    key(
        "pipelineMode",
        OneOf(MODES),
        Is("linear"),
        "How checks run where neither pool nor tenant say so",
    ),
    map(
        "alertSecret",
        Section::HiddenSecret,
        "What alerts of routing are signed with, as the reports of jobs are",
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
