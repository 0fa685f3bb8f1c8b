//! The promise of `golden`, for what people declare for routing.

use super::codec;
use super::golden::{Sample, sample, why};
use super::routing_rows::{
    BundleLoad, NameRow, ObjectIdRow, ObjectRow, RecipientPoolRow, RecipientRow, RuleRow,
};
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::print::Switched;
use crate::words::ids::RecipientPoolId;
use crate::words::names::NodeName;
use crate::words::payload::JsonText;
use crate::words::time::{Micros, Millis};

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = "\
routing object | any | 1 | 01016e027b7d03fbd007fba00f00
routing object | of a bundle | 1 | 01016e027b7d03fbd007fba00f010162
recipient pool | any | 1 | 01016e027b7d03fbd007fba00f0000
recipient pool | switched | 1 | 01016e027b7d03fbd007fba00f00010103776879fb7017026d65
recipient | any | 1 | 01016e027b7d03fbd007fba00f000101010101010101010101010101010101010165
rule | of the tenant | 1 | 01016e027b7d03fbd007fba00f0000
rule | attached | 1 | 01016e027b7d03fbd007fba00f000101010101010101010101010101010101
name | any | 1 | 01016e
object id | any | 1 | 0101010101010101010101010101010101
bundle load | any | 1 | 01016e0164fbd007
recipient live | available | 1 | 0100fbd0070000000000000000
recipient live | busy | 1 | 0101fbd0070000000000000000
recipient live | offline | 1 | 0102fbd0070000000000000000
recipient live | paused | 1 | 0103fbd0070000000000000000
";

pub(super) fn samples(out: &mut Vec<Sample>) {
    let object = ObjectRow {
        name: "n".to_owned(),
        set: JsonText::parse("{}").unwrap(),
        record_version: 3,
        created_at: Micros(1_000),
        updated_at: Micros(2_000),
        bundle: None,
    };
    out.push(sample("any", &object));
    let of_bundle = ObjectRow {
        bundle: Some("b".to_owned()),
        ..object.clone()
    };
    out.push(sample("of a bundle", &of_bundle));
    let declared = RecipientPoolRow {
        object: object.clone(),
        switched: None,
    };
    out.push(sample("any", &declared));
    let switched = Some(Switched {
        engaged: true,
        reason: why(),
        at: Micros(3_000),
        by: "me".to_owned(),
    });
    out.push(sample("switched", &RecipientPoolRow { switched, ..declared }));
    let recipient = RecipientRow {
        object: object.clone(),
        members_of: vec![RecipientPoolId([1; 16])],
        external_id: Some("e".to_owned()),
    };
    out.push(sample("any", &recipient));
    let rule = RuleRow {
        object,
        attached_to: None,
    };
    out.push(sample("of the tenant", &rule));
    let attached = RuleRow {
        attached_to: Some(RecipientPoolId([1; 16])),
        ..rule
    };
    out.push(sample("attached", &attached));
    out.push(sample("any", &NameRow("n".to_owned())));
    out.push(sample("any", &ObjectIdRow([1; 16])));
    let load = BundleLoad {
        node: NodeName::new("n").unwrap(),
        digest: "d".to_owned(),
        at: Millis(1_000),
    };
    out.push(sample("any", &load));
    for (what, state) in [
        ("available", RecipientState::Available),
        ("busy", RecipientState::Busy),
        ("offline", RecipientState::Offline),
        ("paused", RecipientState::Paused),
    ] {
        out.push(sample(what, &Live::new(state, Micros(1_000))));
    }
}

/// What the reader of each record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<ObjectRow>(bytes));
    drop(codec::decode::<RecipientPoolRow>(bytes));
    drop(codec::decode::<RecipientRow>(bytes));
    drop(codec::decode::<RuleRow>(bytes));
    drop(codec::decode::<NameRow>(bytes));
    drop(codec::decode::<ObjectIdRow>(bytes));
    drop(codec::decode::<Live>(bytes));
    drop(codec::decode::<BundleLoad>(bytes));
}
