//! The promise of `golden`, for the records of live routing.

use super::codec;
use super::golden::{Sample, sample};
use super::live_rows::{
    AlertRow, CampaignRow, CampaignRuns, DecisionRow, DeclaredRow, DrainRow, PoolCounts, RuleErrors, SeenRow,
    ShadowResult, SnapshotRow, SourceRow, TimerKind, TimerRow, WorkRow, WorkWaiter,
};
use super::routing_rows::ObjectRow;
use crate::domain::routing::assignment::tests::assignment;
use crate::domain::routing::assignment::{Assignment, AssignmentState, ClaimedFrom, EndKind, Lineage, Tried};
use crate::domain::routing::candidate::{Forgetting, Learned};
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::offer::Offer;
use crate::domain::routing::offer::tests::offer;
use crate::domain::routing::pass::Cause;
use crate::domain::routing::shadow::Tally;
use crate::domain::routing::sla::{Breached, SlaKind};
use crate::domain::routing::state::{Holder, StageState};
use crate::domain::routing::waiting::tests::waiting;
use crate::domain::routing::waiting::{WaitKind, Waiting};
use crate::words::ids::{
    AssignmentId, DecisionId, RecipientId, RecipientPoolId, RunId, TenantId, WaitingId, WorkId,
};
use crate::words::names::StepRef;
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = include_str!("golden_routing.txt");

fn json() -> JsonText {
    JsonText::parse("{}").unwrap()
}

fn lineage() -> Lineage {
    Lineage {
        attempt: 2,
        tried: vec![Tried {
            recipient: RecipientId([5; 16]),
            decision: DecisionId([2; 16]),
        }],
        parent: Some(DecisionId([2; 16])),
        parent_assignment: Some(AssignmentId([1; 16])),
        excluded: vec![RecipientId([6; 16])],
        entry: Some(RecipientPoolId([4; 16])),
        cause: Cause::Escalation,
        trail: vec![RecipientPoolId([4; 16])],
        strategy: Some("random".to_owned()),
        strategy_options: Some("{}".to_owned()),
    }
}

pub(super) fn samples(out: &mut Vec<Sample>) {
    let new = Live::new(RecipientState::Available, Micros(1_000));
    out.push(sample("new", &new));
    let busy = Live {
        state: RecipientState::Busy,
        cooldown_until: Some(Micros(9_000)),
        last_finished_at: Some(Micros(3_000)),
        capacity_epoch: 7,
        ..new.charged(Micros(2_000), 4)
    };
    out.push(sample("busy", &busy));
    assignment_samples(out);
    item_samples(out);
    decision_samples(out);
    shadow_samples(out);
}

fn shadow_samples(out: &mut Vec<Sample>) {
    let object = ObjectRow {
        name: "n".to_owned(),
        set: json(),
        record_version: 3,
        created_at: Micros(1_000),
        updated_at: Micros(2_000),
        bundle: None,
    };
    let running = CampaignRow {
        object,
        stop_reason: None,
        began: 2,
    };
    out.push(sample("runs", &running));
    let stop_reason = Some("why".to_owned());
    out.push(sample(
        "stopped",
        &CampaignRow {
            stop_reason,
            ..running
        },
    ));
    let runs = CampaignRuns {
        sample_percent: 50,
        starts_at: Some(Micros(1_000)),
        ends_at: None,
    };
    out.push(sample("any", &runs));
    let result = ShadowResult {
        began: 2,
        winner: Some(RecipientId([5; 16])),
        agrees: true,
        chance: Some(0.5),
        production_chance: Some(0.25),
        valued: false,
    };
    out.push(sample("any", &result));
    let tally = Tally {
        n: 3,
        agreed: 1,
        nobody: 1,
        errors: 2,
        ranks: [(0, 1), (1, 2)].into(),
        wins: [(RecipientId([5; 16]), (2, 1))].into(),
        reasons: [("lost.turn".to_owned(), 2)].into(),
        micros: [(6, 5)].into(),
        drew: true,
        valued: 1,
        weights: 2.0,
        squares: 4.0,
        weighted_value: 1.0,
        direct: (1, 0.5),
    };
    out.push(sample("any", &tally));
    let waiter = WorkWaiter {
        run: RunId([3; 16]),
        step: StepRef::new("s").unwrap(),
        attempt: 2,
    };
    out.push(sample("any", &waiter));
    let errors = RuleErrors {
        count: 2,
        since: Micros(1),
        last_at: Micros(2),
        last_error: "no such key".to_owned(),
        last_decision: DecisionId([5; 16]),
    };
    out.push(sample("any", &errors));
}

fn assignment_samples(out: &mut Vec<Sample>) {
    let open = assignment(7);
    out.push(sample("open", &open));
    let claimed = Assignment {
        claimed: Some(ClaimedFrom {
            offer: WaitingId([7; 16]),
            neglected_at: Some(Micros(5_000)),
        }),
        lineage: lineage(),
        state: AssignmentState::Accepted,
        ..open.clone()
    };
    out.push(sample("accepted claim", &claimed));
    let result = Some("{}".to_owned());
    let done = open.complete(Micros(4_000), "me", Some(900_000), result).unwrap();
    out.push(sample("completed", &done));
    for (what, kind) in [
        ("rejected", EndKind::Rejected),
        ("given back", EndKind::GivenBack),
        ("warranty", EndKind::Warranty),
        ("deadline", EndKind::Deadline),
        ("neglected", EndKind::Neglected),
        ("released", EndKind::Released),
        ("escalated", EndKind::Escalated),
    ] {
        let ended = open.expire(Micros(4_000), kind, "ductor", "why").unwrap();
        out.push(sample(what, &ended));
    }
}

fn item_samples(out: &mut Vec<Sample>) {
    out.push(sample("queued", &waiting()));
    out.push(sample(
        "again",
        &Waiting {
            kind: WaitKind::Again,
            ..waiting()
        },
    ));
    let catchall = WaitKind::Catchall {
        due_at: Micros(5_000),
        to: RecipientPoolId([8; 16]),
    };
    out.push(sample(
        "for a catchall",
        &Waiting {
            kind: catchall,
            lineage: lineage(),
            sla_due_at: Some(Micros(4_000)),
            ..waiting()
        },
    ));
    out.push(sample("open", &offer()));
    let (by, at) = (RecipientId([5; 16]), Micros(2_000));
    out.push(sample("claimed", &offer().claimed(by, at, AssignmentId([1; 16]))));
    out.push(sample("closed", &offer().closed(at, "over")));
}

fn decision_samples(out: &mut Vec<Sample>) {
    out.push(sample("any", &WorkRow { work: json() }));
    out.push(sample(
        "any",
        &DecisionRow {
            at: Micros(1_000),
            work: WorkId([3; 16]),
            recipient_pool: Some(RecipientPoolId([4; 16])),
            outcome: "assigned".to_owned(),
            winners: vec![RecipientId([5; 16])],
            reasons: vec!["lost.turn".to_owned()],
            item: Some(WaitingId([7; 16])),
            snapshot: Some("ab".to_owned()),
            text: json(),
        },
    ));
    out.push(sample(
        "any",
        &SnapshotRow {
            uses: 2,
            text: json(),
        },
    ));
    out.push(sample(
        "any",
        &SourceRow {
            text: json(),
            declared: "cd".to_owned(),
        },
    ));
    out.push(sample("any", &DeclaredRow { text: json() }));
    let mut state = StageState {
        cursor: Some(RecipientId([5; 16])),
        level: -3,
        ..StageState::default()
    };
    state.members.insert(RecipientId([5; 16]), -1_000_000);
    out.push(sample("any", &state));
    out.push(sample("nothing", &Learned::default()));
    let mut learned = Learned::default();
    learned.ended(Micros(1_000), 70_000, Some(0.5), Forgetting::default());
    out.push(sample("any", &learned));
    out.push(sample(
        "any",
        &Holder {
            recipient: RecipientId([5; 16]),
            expires_at: Micros(9_000),
        },
    ));
    out.push(sample(
        "any",
        &SeenRow {
            decision: DecisionId([2; 16]),
            seen_at: Micros(1_000),
            expires_at: Micros(9_000),
        },
    ));
    loop_samples(out);
}

fn loop_samples(out: &mut Vec<Sample>) {
    let recipient_pool = RecipientPoolId([4; 16]);
    out.push(sample("any", &TimerRow { recipient_pool }));
    out.push(sample(
        "any",
        &DrainRow {
            generation: 3,
            since: Micros(1_000),
            why: "why".to_owned(),
            passed: vec![(5, Micros(1_000), WaitingId([7; 16]))],
        },
    ));
    out.push(sample(
        "any",
        &PoolCounts {
            open: 3,
            waiting: 2,
            again: 1,
            offered: 1,
            events: 9,
        },
    ));
    let breached = |kind| Breached {
        kind,
        due_at: Micros(1_000),
        seen_at: Micros(2_000),
        work: WorkId([3; 16]),
        recipient_pool,
        decision: DecisionId([2; 16]),
    };
    for (what, kind) in [("queue", SlaKind::Queue), ("response", SlaKind::Response)] {
        let url = "https://example.com/".to_owned();
        let breached = breached(kind);
        let tenant = TenantId(3);
        out.push(sample(
            what,
            &AlertRow {
                tenant,
                breached,
                url,
            },
        ));
    }
}

/// What the reader of each record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<Live>(bytes));
    drop(codec::decode::<Assignment>(bytes));
    drop(codec::decode::<Waiting>(bytes));
    drop(codec::decode::<Offer>(bytes));
    drop(codec::decode::<WorkRow>(bytes));
    drop(codec::decode::<DecisionRow>(bytes));
    drop(codec::decode::<SnapshotRow>(bytes));
    drop(codec::decode::<SourceRow>(bytes));
    drop(codec::decode::<DeclaredRow>(bytes));
    drop(codec::decode::<StageState>(bytes));
    drop(codec::decode::<Learned>(bytes));
    drop(codec::decode::<Holder>(bytes));
    drop(codec::decode::<SeenRow>(bytes));
    drop(codec::decode::<TimerRow>(bytes));
    drop(codec::decode::<DrainRow>(bytes));
    drop(codec::decode::<PoolCounts>(bytes));
    drop(codec::decode::<AlertRow>(bytes));
    drop(codec::decode::<CampaignRow>(bytes));
    drop(codec::decode::<CampaignRuns>(bytes));
    drop(codec::decode::<ShadowResult>(bytes));
    drop(codec::decode::<Tally>(bytes));
    drop(codec::decode::<WorkWaiter>(bytes));
    drop(codec::decode::<RuleErrors>(bytes));
}

#[test]
fn each_record_has_golden_bytes() {
    for name in super::live_rows::NAMES {
        let has_line = GOLDEN.lines().any(|line| line.split(" | ").next() == Some(name));
        assert!(has_line, "{name} has no golden bytes");
    }
}

#[test]
fn kinds_of_timers_are_their_numbers() {
    for kind in TimerKind::ALL {
        assert_eq!(TimerKind::of(kind.number()), Some(kind));
    }
    assert_eq!(TimerKind::of(10), None);
}
