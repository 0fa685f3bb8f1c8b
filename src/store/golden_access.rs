//! The promise of `golden`, for the records of who may do what and of what was done.

use super::access::{ApiKey, AuditRow, KeyUse, Revoked, Session, TenantRow, TenantSettings};
use super::codec;
use super::golden::{Sample, sample};
use crate::domain::access::scopes::Scopes;
use crate::domain::routing::objects::PipelineMode;
use crate::words::ids::KeyId;
use crate::words::time::Millis;

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = "\
tenant | any | 1 | 010461636d65fbd007026d65
tenant settings | plain | 1 | 01000000
tenant settings | full | 1 | 010107737570706f72740201
api key | valid | 1 | 01026369020561646d696e086a6f623a726561640909090909090909090909090909090909090909090909090909090909090909fbd007026d6501fce022020000
api key | revoked | 1 | 01026369020561646d696e086a6f623a726561640909090909090909090909090909090909090909090909090909090909090909fbd007026d650001fbd007026d65
key use | any | 1 | 01fbd007
session | any | 1 | 01020202020202020202020202020202020909090909090909090909090909090909090909090909090909090909090909fbd007fce0220200
audit row | by a key | 1 | 01fbd007026d65010202020202020202020202020202020201720870617573654a6f620d2f6a6f62732f612f7061757365010131010132
audit row | plain | 1 | 01fbd007026d650001720870617573654a6f620d2f6a6f62732f612f70617573650000
";

pub(super) fn samples(out: &mut Vec<Sample>) {
    let (at, by) = (Millis(1_000), "me".to_owned());
    let tenant = TenantRow {
        name: "acme".to_owned(),
        created_at: at,
        by: by.clone(),
    };
    out.push(sample("any", &tenant));
    out.push(sample("plain", &TenantSettings::default()));
    let settings = TenantSettings {
        default_recipient_pool: Some("support".to_owned()),
        pipeline_mode: PipelineMode::Dag,
        from_file: true,
    };
    out.push(sample("full", &settings));
    let key = ApiKey {
        name: "ci".to_owned(),
        scopes: Scopes::of(["job:read", "admin"]).unwrap(),
        hash: [9; 32],
        created_at: at,
        by: by.clone(),
        expires_at: Some(Millis(70_000)),
        revoked: None,
    };
    out.push(sample("valid", &key));
    let revoked = ApiKey {
        expires_at: None,
        revoked: Some(Revoked { at, by: by.clone() }),
        ..key
    };
    out.push(sample("revoked", &revoked));
    out.push(sample("any", &KeyUse { at }));
    let session = Session {
        key: KeyId([2; 16]),
        hash: [9; 32],
        begun_at: at,
        ends_at: Millis(70_000),
    };
    out.push(sample("any", &session));
    let row = AuditRow {
        at,
        who: by,
        key: Some(KeyId([2; 16])),
        request: "r".to_owned(),
        what: "pauseJob".to_owned(),
        thing: "/jobs/a/pause".to_owned(),
        before: Some("1".to_owned()),
        after: Some("2".to_owned()),
    };
    out.push(sample("by a key", &row));
    let plain = AuditRow {
        key: None,
        before: None,
        after: None,
        ..row
    };
    out.push(sample("plain", &plain));
}

/// What the reader of each record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<TenantRow>(bytes));
    drop(codec::decode::<TenantSettings>(bytes));
    drop(codec::decode::<ApiKey>(bytes));
    drop(codec::decode::<KeyUse>(bytes));
    drop(codec::decode::<Session>(bytes));
    drop(codec::decode::<AuditRow>(bytes));
}
