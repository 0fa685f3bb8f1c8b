//! What people declare, read and checked, with every default filled in.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::words::ids::{ClaimQueueId, RecipientId, RecipientPoolId, RuleId};
use crate::words::time::Micros;

macro_rules! wire_enum {
    ($($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $wire:literal,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $wire)] $variant,)*
        }

        impl $name {
            /// The words of the wire, in the order of the variants.
            pub const WORDS: &[&str] = &[$($wire),*];

            /// The word of the wire.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $wire,)*
                }
            }

            /// The variant of a word.
            pub fn of(word: &str) -> Option<$name> {
                match word {
                    $($wire => Some($name::$variant),)*
                    _ => None,
                }
            }
        })*
    };
}

wire_enum! {
    /// Whether an object takes part, by administration.
    Status {
        /// It does.
        Active = "STATUS_ACTIVE",
        /// Not now.
        Paused = "STATUS_PAUSED",
        /// Not any more.
        Disabled = "STATUS_DISABLED",
    }

    /// Whether a recipient is there.
    RecipientState {
        /// It takes work.
        Available = "RECIPIENT_STATE_AVAILABLE",
        /// It works; whether it gets more says the recipient pool's busy policy.
        Busy = "RECIPIENT_STATE_BUSY",
        /// It is not online.
        Offline = "RECIPIENT_STATE_OFFLINE",
        /// It was taken out of rotation.
        Paused = "RECIPIENT_STATE_PAUSED",
    }

    /// How work reaches a recipient.
    RoutingMode {
        /// The strategy assigns it.
        Auto = "auto",
        /// Recipients claim it from a queue.
        Claim = "claim",
    }

    /// How checks run; never what they decide.
    PipelineMode {
        /// As the tenant, else the daemon has it.
        Inherit = "inherit",
        /// Check by check for each candidate.
        Linear = "linear",
        /// Check by check for all candidates.
        Dag = "dag",
        /// Linear decides, dag is compared.
        Shadow = "shadow",
    }

    /// What happens when nobody is eligible.
    FallbackKind {
        /// The work waits.
        Queue = "queue",
        /// The work is dropped.
        Drop = "drop",
        /// It goes to `overflow_pool_id`.
        Overflow = "overflow",
        /// It waits for `catchall_delay` and goes to `catchall_pool_id`.
        Catchall = "catchall",
    }

    /// What BUSY means.
    BusyPolicy {
        /// Not eligible.
        Exclude = "exclude",
        /// Eligible when nobody else is.
        LastResort = "last_resort",
        /// Like AVAILABLE.
        Include = "include",
    }

    /// How much of an explanation is made.
    Explain {
        /// The winners only.
        Winners = "winners",
        /// The first failing check of each candidate.
        First = "first",
        /// Every failing check.
        All = "all",
    }

    /// How members are spread over sub-pools.
    ShardBy {
        /// Members by their ids, work by its key.
        Recipient = "recipient",
        /// Work only, by its key.
        Work = "work",
    }

    /// What happens to work that was seen within the window.
    OnDuplicate {
        /// It ends as a duplicate.
        Reject = "reject",
        /// The decision of the first is answered.
        ReturnExisting = "return_existing",
    }

    /// What happens to work beyond the limit.
    OnLimit {
        /// It waits.
        Queue = "queue",
        /// The recipient pool's fallback.
        Fallback = "fallback",
    }

    /// What a rule does.
    ActionKind {
        /// Tenant rule: this recipient pool.
        SelectPool = "select_pool",
        /// The work is dropped.
        Drop = "drop",
        /// The recipient is kept only if true.
        Filter = "filter",
        /// The recipient's weight and score grow.
        Boost = "boost",
        /// The work goes to another recipient pool.
        Redirect = "redirect",
    }

    /// What kind of value a trait has.
    TraitType {
        /// true or false.
        Bool = "bool",
        /// A whole number.
        Int = "int",
        /// A text.
        String = "string",
        /// A list of texts.
        Set = "set",
        /// A pair of numbers.
        Range = "range",
        /// A place.
        Geo = "geo",
    }

    /// How a trait is compared: what the recipient has with what the work wants.
    TraitOp {
        /// Equal.
        Eq = "eq",
        /// The recipient's is one of those wanted.
        In = "in",
        /// The recipient's is at least what is wanted.
        Gte = "gte",
        /// The recipient's list has all that is wanted.
        Contains = "contains",
        /// What is wanted lies within the recipient's.
        Within = "within",
    }
}

/// A place on the Earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Location {
    /// -90 to 90.
    pub latitude: f64,
    /// -180 to 180.
    pub longitude: f64,
}

/// A container of recipients (wire: pool).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecipientPool {
    /// Assigned by ductor.
    pub id: RecipientPoolId,
    /// Unique for its tenant.
    pub name: String,
    /// For people.
    pub description: String,
    /// By administration.
    pub status: Status,
    /// Key of the catalogue, recipe `name@version`, or `pipeline:<name>`.
    pub strategy: Option<String>,
    /// How it routes.
    pub config: RecipientPoolConfig,
    /// Above it.
    pub parent: Option<RecipientPoolId>,
    /// Bookkeeping of its owner.
    pub metadata: BTreeMap<String, String>,
    /// Grows by 1 with each stored change.
    pub record_version: u64,
    /// When it was created.
    pub created_at: Micros,
    /// When it was changed last.
    pub updated_at: Micros,
}

impl RecipientPool {
    /// It is active, and its kill-switch is off.
    pub fn can_route(&self) -> bool {
        self.status == Status::Active && self.config.kill_switch.is_none()
    }
}

/// How a recipient pool routes. Lengths of time are microseconds, 0 for none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecipientPoolConfig {
    /// At most one of the three.
    pub default_strategy: Option<String>,
    /// Name of an entry of `strategy_pipelines`.
    pub default_strategy_pipeline: Option<String>,
    /// `name@version`, pinned when it was checked.
    pub default_recipe: Option<String>,
    /// As written; read and checked by `pipeline`.
    pub strategy_pipelines: BTreeMap<String, Value>,
    /// By strategy.
    pub strategy_options: BTreeMap<String, Map<String, Value>>,
    /// How work reaches a recipient.
    pub routing_mode: RoutingMode,
    /// How checks run.
    pub pipeline_mode: PipelineMode,
    /// Deadline of an assignment.
    pub default_timeout_us: u64,
    /// Hops after the first recipient pool.
    pub max_routing_depth: u32,
    /// How long work waits.
    pub queue_ttl_us: u64,
    /// Sub-pools by hash.
    pub sharding: Option<Sharding>,
    /// The same work twice.
    pub dedup: Option<Dedup>,
    /// How much at once.
    pub flow_control: Option<FlowControl>,
    /// Nobody is eligible.
    pub fallback: FallbackKind,
    /// Set with `overflow`.
    pub overflow: Option<RecipientPoolId>,
    /// Set with `catchall`.
    pub catchall: Option<RecipientPoolId>,
    /// Wait before the hop.
    pub catchall_delay_us: u64,
    /// Beyond capacity, when nobody has room.
    pub allow_over_capacity: bool,
    /// Percent, in millionths of a percent.
    pub over_capacity_budget_micro: u64,
    /// The clock on waiting and answering.
    pub sla: Option<Sla>,
    /// Set with the mode `claim`.
    pub claim_queue: Option<ClaimQueueId>,
    /// Engaged: it does not route.
    pub kill_switch: Option<KillSwitch>,
    /// What BUSY means here.
    pub busy_policy: BusyPolicy,
    /// How much a recipient may claim.
    pub claim_budget: Option<ClaimBudget>,
    /// Chance that a decision explores, 0 to 0.5.
    pub exploration_epsilon: f64,
    /// One step of priority for each of these waited.
    pub age_step_us: u64,
    /// What is explained.
    pub explain: Explain,
}

/// An engaged kill-switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillSwitch {
    /// Why.
    pub reason: String,
    /// Since when.
    pub at: Micros,
    /// By whom.
    pub by: String,
}

/// Sub-pools by rendezvous hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sharding {
    /// What is spread.
    pub by: ShardBy,
    /// CEL over the work.
    pub key: Option<String>,
    /// 2 to 64 of them.
    pub shards: Vec<RecipientPoolId>,
}

/// The same work twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dedup {
    /// CEL over the work.
    pub key: String,
    /// How long it is remembered.
    pub window_us: u64,
    /// What happens then.
    pub on_duplicate: OnDuplicate,
}

/// How much at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowControl {
    /// So many assignments in each of these lengths.
    pub rate: Option<(u32, u64)>,
    /// Open assignments of the recipient pool; 0 for no limit.
    pub concurrency: u32,
    /// What happens to more.
    pub on_limit: OnLimit,
}

/// Speed to lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sla {
    /// From enqueue to assigned or claimed.
    pub max_queue_us: u64,
    /// From assigned to the first response.
    pub max_response_us: u64,
    /// Where it goes on a breach.
    pub escalation: Option<RecipientPoolId>,
    /// Who is told.
    pub alert_webhook_url: Option<String>,
}

/// How much a recipient may claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimBudget {
    /// Claims in the sliding period.
    pub limit: u32,
    /// The period.
    pub per_us: u64,
    /// Claimed and unfinished; 0 for no limit.
    pub max_open: u32,
}

/// Who or what gets work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipient {
    /// Assigned by ductor.
    pub id: RecipientId,
    /// For people.
    pub name: String,
    /// Free: agent, team, queue.
    pub kind: String,
    /// The primary recipient pool first; empty after the last was dropped.
    pub members_of: Vec<RecipientPoolId>,
    /// By administration.
    pub status: Status,
    /// In millionths.
    pub weight_micro: u64,
    /// 0 takes nothing.
    pub max_concurrent: u32,
    /// 0 for no limit.
    pub daily_limit: u32,
    /// Unwrapped, as rules see them.
    pub attributes: Map<String, Value>,
    /// Labels.
    pub tags: Vec<String>,
    /// As checked; none is always open.
    pub schedule: Option<Hours>,
    /// IANA name.
    pub timezone: String,
    /// Where it is.
    pub location: Option<Location>,
    /// The owner's id.
    pub external_id: Option<String>,
    /// Bookkeeping of its owner.
    pub metadata: BTreeMap<String, String>,
    /// Grows by 1 with each stored change.
    pub record_version: u64,
    /// When it was created.
    pub created_at: Micros,
    /// When it was changed last.
    pub updated_at: Micros,
}

/// When a recipient's windows are open, in wall time. Minutes of the day, 1440 only as an end; an end before its start is
/// on the next day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hours {
    /// IANA name; none is the recipient's own.
    pub timezone: Option<String>,
    /// The usual week.
    pub windows: Vec<Window>,
    /// Days (year, month, day) with other windows in place of the usual; an empty list is closed.
    pub exceptions: Vec<Exception>,
}

/// One window of the usual week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Bit 0 is Monday.
    pub days: u8,
    /// Minute of the day.
    pub start: u16,
    /// Minute of the day.
    pub end: u16,
}

/// A day with other windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exception {
    /// Year, month, day.
    pub date: (i16, i8, i8),
    /// Start and end of each.
    pub windows: Vec<(u16, u16)>,
}

/// A rule, of a tenant or of a recipient pool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    /// Assigned by ductor.
    pub id: RuleId,
    /// Unique for its tenant.
    pub name: String,
    /// For people.
    pub description: String,
    /// None for a rule of the tenant.
    pub attached_to: Option<RecipientPoolId>,
    /// Lower wins; then the bytes of the name.
    pub priority: u32,
    /// CEL that gives true or false.
    pub expression: String,
    /// What it does when true.
    pub action: Action,
    /// Whether it takes part.
    pub enabled: bool,
    /// From when, included.
    pub valid_from: Option<Micros>,
    /// Until when, not included.
    pub valid_until: Option<Micros>,
    /// Grows by 1 with each stored change.
    pub record_version: u64,
    /// When it was created.
    pub created_at: Micros,
    /// When it was changed last.
    pub updated_at: Micros,
}

impl Rule {
    /// It takes part at this time.
    pub fn counts_at(&self, now: Micros) -> bool {
        self.enabled
            && self.valid_from.is_none_or(|from| from <= now)
            && self.valid_until.is_none_or(|until| now < until)
    }
}

/// What a rule does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Which of them.
    pub kind: ActionKind,
    /// Where to, for `select_pool` and `redirect`.
    pub target: Option<RecipientPoolId>,
    /// -1 to 100, for `boost`.
    pub boost: f64,
    /// For people.
    pub reason: Option<String>,
}

/// A property of recipients that work may ask for, declared for a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trait {
    /// The attribute of both sides.
    pub key: String,
    /// What kind of value.
    pub kind: TraitType,
    /// How it is compared.
    pub op: TraitOp,
    /// Else it is preferred only.
    pub required: bool,
    /// After so long a wait it is no longer required; 0 for never.
    pub relax_after_us: u64,
}
