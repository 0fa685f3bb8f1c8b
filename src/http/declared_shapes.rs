//! The shapes of the answers of routing, for the document of the API. Here: what people declare.
//!
//! Objects are answered as what was set of them, so they are JSON inside and no type has them; these say which fields there may
//! be, and the tests of the document compare them with what a real router answers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::shapes::shapes;

shapes! {
    /// A pool of recipients: the fields that were set, or with `view=effective` all of them.
    PoolShape as RecipientPool {
        id: String,
        name: String,
        /// Its members, by name.
        recipient_ids: Vec<String>,
        /// Its rules, by name.
        rule_ids: Vec<String>,
        /// Grows by 1 with each stored change.
        record_version: u64,
        created_at: String,
        updated_at: String,
        ;
        description: String,
        /// `STATUS_ACTIVE`, `STATUS_PAUSED` or `STATUS_DISABLED`.
        status: String,
        /// A strategy of the catalogue, a recipe `name@version`, or `pipeline:<name>`.
        strategy: String,
        config: PoolConfigShape,
        parent_pool_id: Option<String>,
        metadata: BTreeMap<String, String>,
    }

    /// How a pool routes. Lengths of time are texts like `30s` or `1h30m`.
    PoolConfigShape as RecipientPoolConfig {
        ;
        default_strategy: Option<String>,
        default_strategy_pipeline: Option<String>,
        default_recipe: Option<String>,
        /// Pipelines by name.
        strategy_pipelines: BTreeMap<String, Value>,
        /// Options by strategy.
        strategy_options: BTreeMap<String, Value>,
        /// `auto` or `claim`.
        routing_mode: String,
        /// `linear`, `dag`, `shadow`, or as the tenant has it.
        pipeline_mode: String,
        default_timeout: String,
        max_routing_depth: u32,
        queue_ttl_seconds: f64,
        sharding: ShardingShape,
        dedup: DedupShape,
        flow_control: FlowControlShape,
        /// `queue`, `drop`, `overflow` or `catchall`.
        fallback: String,
        overflow_pool_id: Option<String>,
        catchall_pool_id: Option<String>,
        catchall_delay: String,
        allow_over_capacity: bool,
        /// Percent.
        over_capacity_budget: f64,
        sla: SlaShape,
        claim_queue_id: Option<String>,
        /// `exclude`, `last_resort` or `include`.
        busy_policy: String,
        claim_budget: ClaimBudgetShape,
        exploration_epsilon: f64,
        age_step: String,
        /// `winners`, `first` or `all`.
        explain: String,
        /// On: nothing is routed. Written by `:set_enabled`.
        kill_switch: bool,
        kill_switch_reason: String,
        kill_switch_at: String,
        kill_switch_by: String,
    }

    /// Sub-pools by hash.
    ShardingShape as PoolSharding {
        ;
        enabled: bool,
        /// `recipient` or `work`.
        by: String,
        /// An expression over the work.
        key: Option<String>,
        pool_ids: Vec<String>,
    }

    /// What happens to the same work twice.
    DedupShape as PoolDedup {
        ;
        enabled: bool,
        /// An expression over the work.
        key: String,
        window: String,
        /// `reject` or `return_existing`.
        on_duplicate: String,
    }

    /// How much at once.
    FlowControlShape as PoolFlowControl {
        ;
        rate: FlowRateShape,
        /// Open assignments; 0 is without a limit.
        concurrency: u32,
        /// `queue` or `fallback`.
        on_limit: String,
    }

    /// So many in each length of time.
    FlowRateShape as PoolFlowRate {
        count: u32,
        per: String,
        ;
    }

    /// The clocks on waiting and answering.
    SlaShape as PoolSla {
        ;
        enabled: bool,
        max_queue_time: String,
        max_response_time: String,
        escalation_pool_id: Option<String>,
        /// `https://`, with a public host or one that the configuration lists.
        alert_webhook_url: Option<String>,
    }

    /// How much a recipient may claim.
    ClaimBudgetShape as PoolClaimBudget {
        ;
        limit: u32,
        per: String,
        max_open: u32,
    }

    /// A recipient.
    RecipientShape as Recipient {
        id: String,
        name: String,
        /// The first pool that it is a member of.
        pool_id: Option<String>,
        pool_ids: Vec<String>,
        /// `RECIPIENT_STATE_AVAILABLE`, `…_BUSY`, `…_OFFLINE` or `…_PAUSED`.
        state: String,
        capacity: RecipientCapacityShape,
        record_version: u64,
        created_at: String,
        updated_at: String,
        ;
        r#type: String,
        /// `STATUS_ACTIVE`, `STATUS_PAUSED` or `STATUS_DISABLED`.
        status: String,
        weight: f64,
        /// Each as `{"string_value": …}`, `number_value`, `bool_value`, `list_value` or `object_value`.
        attributes: BTreeMap<String, Value>,
        tags: Vec<String>,
        schedule: ScheduleShape,
        timezone: String,
        location: LocationShape,
        external_id: Option<String>,
        metadata: BTreeMap<String, String>,
    }

    /// What a recipient can take, and what it has.
    RecipientCapacityShape as RecipientCapacity {
        /// Units of open assignments.
        current: u64,
        daily_count: u64,
        ;
        max_concurrent: u32,
        daily_limit: u32,
        daily_reset_at: String,
    }

    /// When a recipient works.
    ScheduleShape as RecipientSchedule {
        ;
        timezone: String,
        windows: Vec<WindowShape>,
        exceptions: Vec<ExceptionShape>,
    }

    /// Hours of some days; one over midnight belongs to the day on which it starts.
    WindowShape as ScheduleWindow {
        start: String,
        end: String,
        ;
        /// `mon` to `sun`; every day when it is absent.
        days: Vec<String>,
    }

    /// A day that is unlike others of its name.
    ExceptionShape as ScheduleException {
        date: String,
        ;
        closed: bool,
        windows: Vec<WindowShape>,
    }

    /// A place on the Earth, in degrees.
    LocationShape as RecipientLocation {
        latitude: f64,
        longitude: f64,
        ;
    }

    /// A rule of a tenant, or of a pool.
    RuleShape as RoutingRule {
        id: String,
        name: String,
        expression: String,
        action: RuleActionShape,
        record_version: u64,
        created_at: String,
        updated_at: String,
        ;
        description: String,
        pool_id: Option<String>,
        priority: u32,
        enabled: bool,
        valid_from: Option<String>,
        valid_until: Option<String>,
        r#continue: bool,
    }

    /// What a rule does.
    RuleActionShape as RoutingRuleAction {
        /// `select_pool` or `drop` of a tenant; `filter`, `boost`, `redirect` or `drop` of a pool.
        r#type: String,
        ;
        pool_id: Option<String>,
        boost: Option<f64>,
        reason: Option<String>,
    }

    /// A trait.
    TraitShape as RoutingTrait {
        key: String,
        /// `bool`, `int`, `string`, `set`, `range` or `geo`.
        r#type: String,
        /// `eq`, `in`, `gte`, `contains` or `within`.
        op: String,
        record_version: u64,
        created_at: String,
        updated_at: String,
        ;
        required: bool,
        preferred: bool,
        relax_after: String,
    }

    /// A queue whose items recipients claim.
    ClaimQueueShape as ClaimQueue {
        id: String,
        name: String,
        record_version: u64,
        created_at: String,
        updated_at: String,
        ;
        /// JSON pointers into the work that only the assignment shows.
        hidden_fields: Vec<String>,
    }

    /// An object that is gone.
    GoneShape as RoutingGone {
        id: String,
        ;
    }

    /// A trait that is gone.
    GoneTraitShape as RoutingTraitGone {
        key: String,
        ;
    }

    /// A pool that is gone.
    GonePoolShape as RecipientPoolGone {
        id: String,
        /// Recipients that are members of it no more.
        detached_recipients: u64,
        removed_rules: u64,
        /// Waiting work that was routed elsewhere.
        rerouted: u64,
        ;
    }

    /// Whose counters begin anew.
    CapacityResetShape as PoolCapacityReset {
        pool_id: String,
        /// Recipients.
        affected: u64,
        ;
    }

    /// Something that is accepted and may be meant otherwise. Further members are parameters of its code.
    WarningShape as RoutingWarning {
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
        /// A JSON pointer into what was sent.
        pointer: String,
        code: String,
        detail: String,
        ;
    }
}
