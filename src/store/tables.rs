//! Every table on one page. Keys begin with the tenant; `meta`, `nodes`, `changes` and `backups` are exempt.

use super::access::{ApiKey, AuditRow, KeyUse, Session, TenantRow, TenantSettings};
use super::feed::FeedRow;
use super::graph_rows::{
    HistoryRow, KeyHolder, KeyWaiter, OpenCheckpoint, StoredFact, StoredValue, TaskClaim, TaskRow,
};
use super::keys::{DigestKey, HighFirst};
use super::live_rows::{
    AlertRow, CampaignRow, CampaignRuns, DecisionRow, DeclaredRow, DrainRow, PoolCounts, RuleErrors, SeenRow,
    ShadowResult, SnapshotRow, SourceRow, TimerRow, WorkRow, WorkWaiter,
};
use super::routing_rows::{
    BundleLoad, NameRow, ObjectIdRow, ObjectRow, RecipientPoolRow, RecipientRow, RuleRow,
};
use super::rows::{
    BackupRow, Boot, BreachRow, ClosedRow, DeadStep, DefinitionRecord, Delivering, DueRow, EffectDueRow,
    Fire, JobMark, LiveAttempt, NodeDrain, NodeRecord, Number, Owed, Pin, PoisonedRun, Present, PublishedBy,
    PublishedJob, PublishedSlotPool, ReadyStep, Remembered, RunningRow, ScheduleMark, UnseenRow, WaitingRow,
    WorkflowDraft, WorkflowRecord, WorkflowVersion,
};
use super::table::Table;
use crate::domain::report::{Effect, ReportWishes};
use crate::domain::routing::assignment::Assignment;
use crate::domain::routing::candidate::Learned;
use crate::domain::routing::live::Live;
use crate::domain::routing::offer::Offer;
use crate::domain::routing::shadow::Tally;
use crate::domain::routing::state::{Holder, StageState};
use crate::domain::routing::waiting::Waiting;
use crate::domain::slots::admission::{Pause, SlotPoolState};
use crate::domain::slots::entry::SlotEntry;
use crate::domain::workflow::attempt::Attempt;
use crate::domain::workflow::graph::key_limit::KeyCount;
use crate::domain::workflow::run::{RetryRight, Run, StepState};
use crate::words::ids::{
    AssignmentId, CampaignId, ClaimQueueId, DecisionId, EntryId, KeyId, RecipientId, RecipientPoolId, RuleId,
    RunId, TenantId, WaitingId, WorkId,
};
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use crate::words::time::{Micros, Millis};

macro_rules! tables {
    ($($(#[$doc:meta])* $index:literal $constant:ident $name:literal ($($key:ty),*) => $record:ty;)*) => {
        $($(#[$doc])* pub const $constant: Table<($($key,)*), $record> = Table::new($index, $name);)*

        /// The names of all tables, in the order of their index.
        pub(super) const NAMES: &[&str] = &[$($name),*];
        /// How many there are.
        pub const COUNT: usize = NAMES.len();
    };
}

tables! {
    /// Numbers: `sequence`, `next_fence`, `next_entry`, `next_remembered`, `next_audit`, `next_tenant`, `access_changed`, `format`, and `landed NODE`: the newest commit of each
    /// daemon.
    0 META "meta" (String) => Number;
    /// Daemons that have used this state directory.
    1 NODES "nodes" (NodeName) => NodeRecord;
    /// Frozen versions of definitions.
    2 DEFINITIONS "definitions" (TenantId, JobName, u32) => DefinitionRecord;
    /// What the last configuration load said about each job.
    3 PUBLISHED_JOBS "published_jobs" (TenantId, JobName) => PublishedJob;
    /// What the last configuration load said about each slot pool.
    4 PUBLISHED_SLOT_POOLS "published_slot_pools" (TenantId, SlotPoolName) => PublishedSlotPool;
    /// Jobs that an operator holds.
    5 JOB_PAUSES "job_pauses" (TenantId, JobName) => Pause;
    /// Headers of runs.
    6 RUNS "runs" (TenantId, RunId) => Run;
    /// Steps of runs, one row each.
    7 STEPS "steps" (TenantId, RunId, StepRef) => StepState;
    /// Ended executions: (run, step, number, fence).
    8 ATTEMPTS "attempts" (TenantId, RunId, StepRef, u32, u64) => Attempt;
    /// Executions that hold a claim now.
    9 LIVE_ATTEMPTS "live_attempts" (TenantId, RunId, StepRef) => LiveAttempt;
    /// Steps without a slot pool that wait for a daemon.
    10 READY_STEPS "ready_steps" (TenantId, RunId, StepRef) => ReadyStep;
    /// Index: runs of a job that have not ended.
    11 ACTIVE_RUNS "active_runs" (TenantId, JobName, RunId) => Present;
    /// Index: all runs of a job, in the order of time.
    12 JOB_RUNS "job_runs" (TenantId, JobName, RunId) => Present;
    /// What became of each due moment; the node is empty unless every node fires.
    13 FIRES "fires" (TenantId, JobName, Millis, String) => Fire;
    /// Stored capacity, pause and drain of each slot pool.
    14 SLOT_POOLS "slot_pools" (TenantId, SlotPoolName) => SlotPoolState;
    /// Requests for slots.
    15 SLOT_ENTRIES "slot_entries" (TenantId, u64) => SlotEntry;
    /// Index: entry by its id.
    16 SLOT_ENTRY_IDS "slot_entry_ids" (TenantId, EntryId) => Number;
    /// Index: waiting entries in the order of admission.
    17 SLOT_WAITING "slot_waiting" (TenantId, SlotPoolName, HighFirst, Millis, EntryId) => WaitingRow;
    /// How many rows `slot_waiting` has for the slot pool.
    18 SLOT_WAITING_COUNT "slot_waiting_count" (TenantId, SlotPoolName) => Number;
    /// Entries that hold slots, with their leases.
    19 SLOT_RUNNING "slot_running" (TenantId, SlotPoolName, u64) => RunningRow;
    /// Index: waiting entries in the order of their deadlines.
    20 SLOT_DUE "slot_due" (TenantId, Millis, EntryId) => DueRow;
    /// Index: closed entries in the order of their close.
    21 SLOT_CLOSED "slot_closed" (TenantId, SlotPoolName, Millis, EntryId) => ClosedRow;
    /// Runs that were given up because daemons died with them.
    22 POISONED_RUNS "poisoned_runs" (TenantId, RunId) => PoisonedRun;
    /// Answers to requests with an idempotency key, in the order of time.
    23 REMEMBERED "remembered" (TenantId, u64) => Remembered;
    /// Index: remembered answer by the digest of its key.
    24 REMEMBERED_KEYS "remembered_keys" (TenantId, DigestKey) => Number;
    /// What each commit changed: the feed.
    25 CHANGES "changes" (u64) => FeedRow;
    /// Generations of retry scopes; the node is empty unless every node fires.
    26 RETRY_SCOPES "retry_scopes" (TenantId, JobName, String) => Number;
    /// Index: steps of a job whose next attempt waits, for its time, for slots or for a process.
    27 RETRYING "retrying" (TenantId, JobName, RunId, StepRef) => Present;
    /// Index: steps in back-off, in the order of their time.
    28 RETRY_DUE "retry_due" (TenantId, Millis, RunId, StepRef) => Present;
    /// Whether failed attempts of a run are followed by others; no row: none follow.
    29 RETRY_RIGHTS "retry_rights" (TenantId, RunId) => RetryRight;
    /// From where missed moments of a job are counted; the node is empty unless every node fires.
    30 SCHEDULE_MARKS "schedule_marks" (TenantId, JobName, String) => ScheduleMark;
    /// Missed moments that will still run, oldest first.
    31 OWED "owed" (TenantId, JobName, Millis, String) => Owed;
    /// The boot for which a job last ran.
    32 BOOTS "boots" (TenantId, JobName, String) => Boot;
    /// Which reports each configured job asks for; no row for none.
    33 PUBLISHED_REPORTS "published_reports" (TenantId, JobName) => ReportWishes;
    /// What outlives the runs of a configured job: since when it is known, its newest success.
    34 JOB_MARKS "job_marks" (TenantId, JobName) => JobMark;
    /// Reports that are owed, or were decided and are still shown with their run.
    35 EFFECTS "effects" (TenantId, u64) => Effect;
    /// Index: reports that are owed, in the order of their next try.
    36 EFFECT_DUE "effect_due" (TenantId, Millis, u64) => EffectDueRow;
    /// Index: reports that were delivered or given up, in the order of that.
    37 EFFECT_DECIDED "effect_decided" (TenantId, Millis, u64) => Present;
    /// Index: reports of a run.
    38 RUN_EFFECTS "run_effects" (TenantId, RunId, u64) => Present;
    /// How many reports wait or are dead, by state, target and job; the empty job is all jobs.
    39 EFFECT_COUNTS "effect_counts" (TenantId, String, String) => Number;
    /// Limits of jobs that are passed now: (job, limit and run).
    40 BREACHES "breaches" (TenantId, JobName, String) => BreachRow;
    /// The newest backups, by when they began and who made them.
    41 BACKUPS "backups" (Millis, NodeName) => BackupRow;
    /// Reports that a daemon delivers now.
    42 DELIVERING "delivering" (TenantId, u64) => Delivering;
    /// Daemons that an operator has told to begin nothing more.
    43 NODE_DRAINS "node_drains" (NodeName) => NodeDrain;
    /// Whose load said last what is published of a job or a slot pool: `job NAME`, `pool NAME`.
    44 PUBLISHED_BY "published_by" (TenantId, String) => PublishedBy;
    /// The head of a slot pool's queue that was last told of as blocked by a dead node: its seq.
    45 BLOCKED_HEADS "blocked_heads" (TenantId, SlotPoolName) => Number;
    /// Daemons whose lock was found free: nobody of that name lives. Only informs; the lock itself is the proof.
    46 GONE_NODES "gone_nodes" (NodeName) => Present;
    /// Values of runs of graphs: `input`, `result`, `output STEP`, `error STEP`, `items STEP`, `itempage N STEP`, `taskin STEP`, `once STEP`.
    47 VALUES "values" (TenantId, RunId, String) => StoredValue;
    /// Index: steps, and runs (the empty step), that are looked at when nothing happens before.
    48 TIMERS "timers" (TenantId, Millis, RunId, String) => Present;
    /// What happened to runs of graphs and is not folded yet, in the order in which it was said.
    49 FACTS "facts" (TenantId, RunId, u64) => StoredFact;
    /// What happened to runs of graphs, by record version.
    50 HISTORY "history" (TenantId, RunId, u64) => HistoryRow;
    /// Index: steps that wait for somebody.
    51 CHECKPOINTS "checkpoints" (TenantId, RunId, StepRef) => OpenCheckpoint;
    /// Index: steps that wait for a worker: (queue, tier, share, number).
    52 TASKS "tasks" (TenantId, String, u8, String, u64) => TaskRow;
    /// Definitions of the API: what is published of each, and whether a draft waits.
    53 WORKFLOWS "workflows" (TenantId, JobName) => WorkflowRecord;
    /// What was posted of them and is not published.
    54 WORKFLOW_DRAFTS "workflow_drafts" (TenantId, JobName) => WorkflowDraft;
    /// What was posted of each of their versions; `definitions` has what it means.
    55 WORKFLOW_VERSIONS "workflow_versions" (TenantId, JobName, u32) => WorkflowVersion;
    /// Closed entries of graphs' steps that their coordinator has not looked at; they count as if they waited.
    56 SLOT_UNSEEN "slot_unseen" (TenantId, SlotPoolName, EntryId) => UnseenRow;
    /// Claims of remote workers, by fence.
    57 TASK_CLAIMS "task_claims" (TenantId, u64) => TaskClaim;
    /// Runs that went and whose rows are not all removed yet.
    58 REMOVALS "removals" (TenantId, RunId) => Present;
    /// Runs that are kept until somebody says otherwise.
    59 PINS "pins" (TenantId, RunId) => Pin;
    /// Dead letters: steps that were given up because daemons died with them.
    60 DEAD_STEPS "dead_steps" (TenantId, RunId, StepRef) => DeadStep;
    /// How many runs of a definition and key hold a place, and how many wait for one.
    61 KEY_COUNTS "key_counts" (TenantId, JobName, String) => KeyCount;
    /// Index: runs that hold a place among those of their definition and key.
    62 KEY_HOLDERS "key_holders" (TenantId, JobName, String, RunId) => KeyHolder;
    /// Index: runs that wait for such a place, by number.
    63 KEY_WAITERS "key_waiters" (TenantId, JobName, String, u64) => KeyWaiter;
    /// Tenants other than `default`.
    64 TENANTS "tenants" (TenantId) => TenantRow;
    /// API keys, revoked ones too.
    65 API_KEYS "api_keys" (TenantId, KeyId) => ApiKey;
    /// When each key was used last.
    66 KEY_USES "key_uses" (TenantId, KeyId) => KeyUse;
    /// Sessions of the dashboard, by the first half of the hash of their secret.
    67 SESSIONS "sessions" (TenantId, DigestKey) => Session;
    /// What was done, in the order of time.
    68 AUDIT "audit" (TenantId, u64) => AuditRow;
    /// Recipient pools as they were declared.
    69 RECIPIENT_POOLS "recipient_pools" (TenantId, RecipientPoolId) => RecipientPoolRow;
    /// Index: recipient pool by its name.
    70 RECIPIENT_POOL_NAMES "recipient_pool_names" (TenantId, String) => ObjectIdRow;
    /// Recipients as they were declared.
    71 RECIPIENTS "recipients" (TenantId, RecipientId) => RecipientRow;
    /// Index: recipient by each recipient pool it is a member of, and its name.
    72 RECIPIENT_NAMES "recipient_names" (TenantId, RecipientPoolId, String) => ObjectIdRow;
    /// Index: recipient by its owner's id.
    73 RECIPIENT_EXTERNAL_IDS "recipient_external_ids" (TenantId, String) => ObjectIdRow;
    /// Index: members of a recipient pool, with their names.
    74 MEMBERS "members" (TenantId, RecipientPoolId, RecipientId) => NameRow;
    /// What a recipient does now.
    75 RECIPIENT_LIVE "recipient_live" (TenantId, RecipientId) => Live;
    /// Rules of tenants and of recipient pools.
    76 RULES "rules" (TenantId, RuleId) => RuleRow;
    /// Index: rule by its name.
    77 RULE_NAMES "rule_names" (TenantId, String) => ObjectIdRow;
    /// Index: rules of a recipient pool, with their names; those of the tenant stand under the id of zeros.
    78 RULES_OF "rules_of" (TenantId, RecipientPoolId, RuleId) => NameRow;
    /// Traits by their keys.
    79 TRAITS "traits" (TenantId, String) => ObjectRow;
    /// Queues whose items recipients claim.
    80 CLAIM_QUEUES "claim_queues" (TenantId, ClaimQueueId) => ObjectRow;
    /// Index: claim queue by its name.
    81 CLAIM_QUEUE_NAMES "claim_queue_names" (TenantId, String) => ObjectIdRow;
    /// Work that went to recipients.
    82 ASSIGNMENTS "assignments" (TenantId, AssignmentId) => Assignment;
    /// Index: assignments by what they are looked up by (`routing_live::Lookup`).
    83 ASSIGNMENT_INDEX "assignment_index" (TenantId, u8, DigestKey, AssignmentId) => Present;
    /// Decisions.
    84 DECISIONS "decisions" (TenantId, DecisionId) => DecisionRow;
    /// Index: decisions by what they are filtered by (`decisions::Filter`).
    85 DECISION_INDEX "decision_index" (TenantId, u8, DigestKey, DecisionId) => Present;
    /// What decisions were made from, by SHA-256 in hex.
    86 SNAPSHOTS "snapshots" (TenantId, String) => SnapshotRow;
    /// Work that was routed, while a decision over it is kept.
    87 ROUTED_WORK "routed_work" (TenantId, WorkId) => WorkRow;
    /// What the stages of pipelines remember of their members.
    88 STRATEGY_STATES "strategy_states" (TenantId, RecipientPoolId, String) => StageState;
    /// Who has the keys of sticky stages, by the digest of recipient pool, stage and key.
    89 STICKY_HOLDERS "sticky_holders" (TenantId, RecipientPoolId, DigestKey) => Holder;
    /// Work that waits in the queues of recipient pools.
    90 ROUTING_WAITING "routing_waiting" (TenantId, WaitingId) => Waiting;
    /// Index: the same, in the order of each queue.
    91 WAITING_ORDER "waiting_order" (TenantId, RecipientPoolId, u8, Micros, WaitingId) => Present;
    /// Work that recipients claim.
    92 OFFERS "offers" (TenantId, WaitingId) => Offer;
    /// Index: open offers in the order of each claim queue.
    93 OFFER_ORDER "offer_order" (TenantId, ClaimQueueId, u8, Micros, WaitingId) => Present;
    /// Index: open offers of each recipient pool.
    94 OFFERS_OF_POOL "offers_of_pool" (TenantId, RecipientPoolId, WaitingId) => Present;
    /// Claims of each recipient through a recipient pool: what budgets count.
    95 CLAIMS "claims" (TenantId, RecipientPoolId, RecipientId, Micros, AssignmentId) => Present;
    /// Work seen lately, by the digest of recipient pool and key.
    96 SEEN_WORK "seen_work" (TenantId, RecipientPoolId, DigestKey) => SeenRow;
    /// Instants of live routing: (when, what, whose).
    97 ROUTING_TIMERS "routing_timers" (TenantId, Micros, u8, DigestKey) => TimerRow;
    /// Queues that are to be gone through.
    98 DRAINS "drains" (TenantId, RecipientPoolId) => DrainRow;
    /// How much each recipient pool has.
    99 POOL_COUNTS "recipient_pool_counts" (TenantId, RecipientPoolId) => PoolCounts;
    /// What the effects of breaches deliver, by the number of the effect.
    100 ROUTING_ALERTS "routing_alerts" (TenantId, u64) => AlertRow;
    /// What was learned of each member of a recipient pool from the ends of its work.
    101 LEARNED "learned" (TenantId, RecipientPoolId, RecipientId) => Learned;
    /// Shadow campaigns as they were declared.
    102 CAMPAIGNS "shadow_campaigns" (TenantId, CampaignId) => CampaignRow;
    /// Index: shadow campaign by its name.
    103 CAMPAIGN_NAMES "shadow_campaign_names" (TenantId, String) => ObjectIdRow;
    /// Index: shadow campaigns that run, by the recipient pool that they look at.
    104 CAMPAIGNS_OF_POOL "shadow_campaigns_of_pool" (TenantId, RecipientPoolId, CampaignId) => CampaignRuns;
    /// Decisions that campaigns still have to look at, or whose value they do not know yet.
    105 SHADOW_PENDING "shadow_pending" (TenantId, DecisionId, CampaignId) => Present;
    /// What the stages of campaigns remember.
    106 SHADOW_STATES "shadow_states" (TenantId, CampaignId, RecipientPoolId, String) => StageState;
    /// What is counted of each campaign.
    107 SHADOW_TALLIES "shadow_tallies" (TenantId, CampaignId) => Tally;
    /// What campaigns said of decisions.
    108 SHADOW_RESULTS "shadow_results" (TenantId, DecisionId, CampaignId) => ShadowResult;
    /// Steps that wait until work is done, by
    /// the work that is awaited, and the work that the step would have routed itself: the same, unless that is a duplicate.
    109 WORK_WAITERS "work_waiters" (TenantId, WorkId, WorkId) => WorkWaiter;
    /// Bundles that daemons keep in force, by name.
    110 BUNDLE_LOADS "bundle_loads" (TenantId, String) => BundleLoad;
    /// What tenants say of their routing.
    111 TENANT_SETTINGS "tenant_settings" (TenantId) => TenantSettings;
    /// Index: what waits in a queue or is offered, by its work.
    112 WORK_ITEMS "work_items" (TenantId, WorkId, WaitingId) => Present;
    /// What went wrong with rules in decisions.
    113 RULE_ERRORS "rule_errors" (TenantId, RuleId) => RuleErrors;
    /// The declared half of what decisions were made from, by its digest.
    114 DECLARED "declared" (TenantId, String) => DeclaredRow;
    /// How many sources name a declared half.
    115 DECLARED_USES "declared_uses" (TenantId, String) => Number;
    /// What decisions were made from.
    116 SOURCES "sources" (TenantId, DecisionId) => SourceRow;
}

#[cfg(test)]
mod tests {
    #[test]
    fn indexes_are_places_in_the_list_and_names_are_unique() {
        assert_eq!(super::SOURCES.index, super::NAMES.len() - 1);
        assert_eq!(super::NAMES[super::SLOT_WAITING.index], super::SLOT_WAITING.name);
        let mut names = super::NAMES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), super::NAMES.len());
    }
}
