//! Every route on one page: method, path as callers write it, handler, and what the OpenAPI document says of it. A route
//! cannot be added without being described.
//!
//! `:verb` of a path is `/~verb` inside; `front` rewrites it, and refuses the inner form from outside.

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;

use super::app::App;
use super::error::Problem;
use super::operation::{
    Operation, Page, any_data, any_list, any_object, any_page, data, declared, list, page_of, plain,
    snake_data, snake_page_of,
};
use super::paging::PARAMS;
use super::{
    assignments, audit, backups, bridge, bundles, claims, config, dead_letters, decision_shapes, decisions,
    declared_shapes, dry_runs, fires, front, graph, health, job_detail, job_list, jobs, kept_bundles, keys,
    log_search, logs, metrics, nodes, once, openapi, overview, pages, pauses, recipient_pools, recipients,
    replay, retries, route, routing_queues, rule_trials, rules, run_again, run_bulk, run_list, run_pins,
    run_signals, run_start, run_steps, run_values, run_waiting, runs, schedules, sessions, shadow_campaigns,
    slots, start, status, store_check, strategies, stream, tail, tenants, timeline, traits, week, why,
    workflow_list, workflow_versions, workflows,
};

/// `method path, handler, operation id, scope, summary, more(…)…;`
macro_rules! routes {
    ($page:expr; $($method:ident $path:literal, $handler:path, $id:ident, $scope:literal, $about:literal
        $(, $more:ident($($what:tt)*))*;)*) => {
        $page$(.$method(
            $path,
            $handler,
            Operation::new(stringify!($id), $scope, $about)$(.$more($($what)*))*,
        ))*
    };
}

/// The page.
pub(super) fn page() -> Page {
    let mut page = Page::new();
    for add in [
        jobs_and_schedules,
        slot_pools_and_runs,
        definitions,
        graphs,
        the_bridge,
        declared_routing,
        campaigns_and_strategies,
        live_routing,
        the_daemon,
        who_calls,
    ] {
        page = add(page);
    }
    page
}

#[rustfmt::skip]
fn jobs_and_schedules(page: Page) -> Page {
    routes! { page;
        get "/jobs", jobs::list, listJobs, "job:read", "All jobs, and what each does now.", shows(list::<jobs::JobView>);
        get "/jobs/{job}", jobs::show, showJob, "job:read", "One job.", shows(plain::<jobs::JobView>), versioned();
        post "/jobs/{job}/start", start::start, startJob, "job:write", "Starts a job by hand.",
            fields(&start::FIELDS), shows(plain::<start::StartedNow>), accepts(plain::<start::StartQueued>);
        post "/jobs/{job}/cancel", jobs::cancel, cancelJob, "job:write", "Ends all instances of a job, waiting ones too.",
            shows(plain::<jobs::Cancelled>);
        post "/jobs/{job}/pause", pauses::pause_job, pauseJob, "job:write", "Holds a job: it neither fires nor is admitted.",
            fields(&pauses::FIELDS), shows(plain::<jobs::JobView>), versioned();
        post "/jobs/{job}/resume", pauses::resume_job, resumeJob, "job:write", "Lifts the pause of a job.",
            shows(plain::<jobs::JobView>), versioned();
        post "/jobs/{job}/retries/cancel", retries::cancel, cancelRetries, "job:write", "Gives what waits for another attempt none.",
            shows(plain::<retries::RetriesCancelled>);
        get "/jobs/{job}/fires", fires::of_job, listFires, "job:read", "What became of the due moments of a job, newest first.",
            query(&fires::QUERY), shows(list::<fires::FireView>);
        get "/jobs/{job}/why", why::of_job, askWhy, "job:read", "Why a job did or did not run at a time.",
            query(&why::QUERY), shows(plain::<why::WhyView>);
        get "/api/jobs", job_list::list, pageJobs, "job:read", "Jobs by pages, by name.",
            query(&job_list::FILTERS), query(&PARAMS), shows(snake_page_of::<job_detail::ListedJobView>);
        get "/api/jobs/{job}", job_detail::show, getJob, "job:read", "One job with its policy and newest runs.",
            shows(snake_data::<job_detail::JobDetailView>), versioned();
        get "/api/schedules", schedules::list, listSchedules, "job:read", "Schedules by pages, with their last and next fire.",
            query(&schedules::FILTERS), query(&PARAMS), shows(page_of::<schedules::ScheduleView>);
        post "/api/schedules:preview", schedules::preview_expression, previewSchedule, "job:read", "What an expression would do.",
            fields(&schedules::PREVIEW), shows(any_data);
        get "/api/schedules.ics", schedules::ics, calendar, "job:read", "The next fires of all jobs as a calendar.",
            query(&schedules::ICS), sends("text/calendar");
        get "/api/calendar", week::show, showCalendar, "job:read", "The due moments of all jobs by hours of a clock.",
            query(&week::QUERY), shows(data::<week::CalendarView>);
        get "/api/schedules/{job}/next", schedules::next, nextFires, "job:read", "The next fires of a job, in two zones.",
            query(&schedules::NEXT), shows(any_data);
        get "/api/schedules/{job}/fires", fires::of_schedule, pageFires, "job:read", "What became of the due moments of a job, by pages.",
            query(&fires::FILTERS), query(&PARAMS), shows(page_of::<fires::FireView>);
        get "/api/schedules/{job}/why", why::of_schedule, explainFire, "job:read", "Why a job did or did not run at a time.",
            query(&why::QUERY), shows(data::<why::WhyView>);
    }
}

#[rustfmt::skip]
fn slot_pools_and_runs(page: Page) -> Page {
    routes! { page;
        get "/pools", slots::list, listPools, "slot:read", "All slot pools with their entries.",
            query(&slots::QUERY), shows(list::<slots::PoolView>);
        get "/pools/{pool}", slots::show, showPool, "slot:read", "One slot pool with its entries.",
            query(&slots::QUERY), shows(plain::<slots::PoolView>), versioned();
        post "/pools/{pool}/pause", pauses::pause_pool, pausePool, "slot:write", "Stops admission; running work goes on.",
            fields(&pauses::FIELDS), shows(plain::<slots::PoolView>), versioned();
        post "/pools/{pool}/resume", pauses::resume_pool, resumePool, "slot:write", "Lifts the pause of a slot pool.",
            shows(plain::<slots::PoolView>), versioned();
        get "/pools/{pool}/queue/{entry}", slots::show_entry, showEntry, "slot:read", "One slot entry, whatever its state.",
            shows(plain::<slots::EntryView>);
        post "/pools/{pool}/queue/{entry}/cancel", slots::cancel_entry, cancelEntry, "slot:write", "Cancels an entry that waits.",
            shows(plain::<slots::CancelledEntry>);
        get "/api/runs", run_list::list, listRuns, "run:read", "Runs by pages, newest first.",
            query(&run_list::FILTERS), query(&PARAMS), shows(page_of::<run_list::Listed>);
        post "/api/runs:cancel_matching", run_bulk::cancel, cancelMatchingRuns, "run:write", "Cancels all runs that match, or says which.",
            fields(&run_bulk::FIELDS), shows(data::<run_bulk::BulkAnswer>);
        post "/api/runs:retry_matching", run_bulk::retry, retryMatchingRuns, "run:write", "Tries all runs that match again, or says which.",
            fields(&run_bulk::FIELDS), shows(data::<run_bulk::BulkAnswer>);
        get "/api/runs/{run}", runs::show, showRun, "run:read", "One run with its steps and attempts, and why it waits.",
            shows(data::<runs::RunDetail>), versioned();
        get "/api/runs/{run}/timeline", timeline::show, showTimeline, "run:read", "The life of a run: waits, attempts, back-off.",
            shows(data::<timeline::TimelineView>);
        post "/api/runs/{run}:cancel", runs::cancel, cancelRun, "run:write", "Cancels a run.",
            fields(&once::FIELDS), shows(data::<runs::CancelledRun>), versioned();
        post "/api/runs/{run}:retry", run_again::retry, retryRun, "run:write", "Gives a run that waits for its next attempt this attempt now; tries the ended run of a workflow again.",
            fields(&run_again::RETRY), shows(data::<run_again::RetriedRun>), creates(data::<run_start::StartedRun>), versioned();
        post "/api/runs/{run}:rerun", run_again::rerun, rerunRun, "run:write", "Starts the job of a run once more, as a new run.",
            fields(&run_again::RERUN), creates(data::<run_again::RerunRun>), accepts(data::<run_again::RerunRun>), versioned();
        post "/api/runs/{run}:pin", run_pins::pin, pinRun, "run:write", "Keeps a run and its logs until somebody says otherwise.",
            fields(&run_pins::FIELDS), shows(data::<run_pins::PinnedRun>), versioned();
        post "/api/runs/{run}:unpin", run_pins::unpin, unpinRun, "run:write", "Keeps a run no longer than others.",
            fields(&once::FIELDS), shows(data::<run_pins::PinnedRun>), versioned();
        get "/api/runs/{run}/steps/{step}/attempts/{attempt}/log", logs::read, readLog, "run:read", "Bytes of a log.",
            query(&logs::QUERY), sends("text/plain");
        get "/api/runs/{run}/steps/{step}/attempts/{attempt}/log/tail", tail::follow, followLog, "run:read", "A log as it grows.",
            query(&tail::QUERY), sends("text/event-stream"), refuses(&[429]);
        get "/api/runs/{run}/steps/{step}/attempts/{attempt}/log/search", log_search::search, searchLog, "run:read",
            "Where a text stands in a log.", query(&log_search::QUERY), shows(data::<log_search::LogSearch>);
    }
}

#[rustfmt::skip]
fn graphs(page: Page) -> Page {
    routes! { page;
        post "/api/workflows/{family_slug}/runs", run_start::start, startRun, "run:write", "Begins a run of a workflow.",
            fields(&run_start::FIELDS), creates(data::<run_start::StartedRun>);
        get "/api/runs/{run}/steps", run_steps::list, listSteps, "run:read", "The steps of a run by pages, by name.",
            query(&run_steps::FILTERS), query(&PARAMS), shows(page_of::<runs::StepView>);
        get "/api/runs/{run}/steps/{step}", run_values::step, showStep, "run:read", "One step of a run, with what it has made.",
            shows(data::<run_values::StepDetail>);
        get "/api/runs/{run}/values", run_values::values, showValues, "run:read", "The input and the output of a run.",
            shows(data::<run_values::RunValues>);
        get "/api/runs/{run}/graph", graph::of_run, showRunGraph, "run:read", "The graph of a run with the places and states of its steps.",
            shows(data::<graph::GraphView>);
        get "/api/runs/{run}/waiting", run_waiting::show, explainRun, "run:read", "Why a run and its steps do not go on, as data and in words.",
            shows(data::<run_waiting::WaitingView>);
        get "/api/runs/{run}/history", run_values::history, showHistory, "run:read", "What happened to a run, oldest first.",
            query(&run_values::HISTORY_QUERY), shows(page_of::<run_values::HistoryView>);
        post "/api/runs/{run}:pause", run_signals::pause, pauseRun, "run:write", "Holds a run: what runs goes on, nothing else begins.",
            fields(&run_signals::PAUSE), accepts(data::<run_signals::Told>);
        post "/api/runs/{run}:resume", run_signals::resume, resumeRun, "run:write", "Lets a held run go on.",
            accepts(data::<run_signals::Told>);
        get "/api/checkpoints", run_signals::list, listCheckpoints, "approval:read", "Steps that wait for somebody, by run.",
            shows(page_of::<run_signals::CheckpointView>);
        post "/api/checkpoints/{checkpoint}:approve", run_signals::approve, approveCheckpoint, "approval:write", "Approves a step.",
            fields(&run_signals::DECIDE), accepts(data::<run_signals::Told>);
        post "/api/checkpoints/{checkpoint}:reject", run_signals::reject, rejectCheckpoint, "approval:write", "Rejects a step.",
            fields(&run_signals::DECIDE), accepts(data::<run_signals::Told>);
        post "/api/checkpoints/{checkpoint}:resume", run_signals::answer, resumeCheckpoint, "approval:write", "Resumes a step with a value.",
            fields(&run_signals::RESUME), accepts(data::<run_signals::Told>);
    }
}

#[rustfmt::skip]
fn definitions(page: Page) -> Page {
    routes! { page;
        get "/api/workflows", workflow_list::list, listWorkflows, "workflow:read", "Workflows by pages, by name.",
            query(&workflow_list::FILTERS), query(&PARAMS), shows(page_of::<workflows::WorkflowView>);
        post "/api/workflows", workflows::create, createWorkflow, "workflow:write", "Saves the first draft of a workflow.",
            takes(any_object, true), creates(data::<workflows::SavedWorkflow>);
        post "/api/workflows:validate", workflows::validate_posted, validateDocument, "workflow:read",
            "Says all that is wrong with a document; nothing is kept.", takes(any_object, true), shows(data::<workflows::Validity>);
        get "/api/workflows/{family_slug}", workflows::show, showWorkflow, "workflow:read", "One workflow with its draft or newest version.",
            shows(data::<workflows::WorkflowDetail>), versioned();
        put "/api/workflows/{family_slug}", workflows::put, putWorkflow, "workflow:write", "Saves the draft of a workflow.",
            takes(any_object, true), shows(data::<workflows::SavedWorkflow>), creates(data::<workflows::SavedWorkflow>), versioned();
        post "/api/workflows/{family_slug}:validate", workflows::validate, validateWorkflow, "workflow:read",
            "Says all that is wrong with a draft, or with the document that is sent.",
            takes(any_object, false), shows(data::<workflows::Validity>);
        post "/api/workflows/{family_slug}:publish", workflows::publish, publishWorkflow, "workflow:write",
            "Freezes the draft into the next version; the same content again is the same version.",
            fields(&once::FIELDS), shows(data::<workflows::PublishedVersion>), versioned();
        post "/api/workflows/{family_slug}:deprecate", workflow_versions::deprecate, deprecateWorkflow, "workflow:write",
            "Ends the use of a version: no new runs of it begin.",
            fields(&workflow_versions::DEPRECATION), shows(data::<workflows::WorkflowView>), versioned();
        get "/api/workflows/{family_slug}/versions", workflow_versions::list, listWorkflowVersions, "workflow:read",
            "The versions of a workflow, newest first.", query(&PARAMS), shows(page_of::<workflow_versions::VersionView>);
        get "/api/workflows/{family_slug}/versions/{version}", workflow_versions::show, showWorkflowVersion, "workflow:read",
            "One version with its document.", shows(data::<workflow_versions::VersionDetail>), versioned();
        get "/api/workflows/{family_slug}/graph", graph::of_workflow, showWorkflowGraph, "workflow:read",
            "The graph of a workflow with the places of its steps.", query(&graph::QUERY), shows(data::<graph::GraphView>);
        get "/api/workflows/{family_slug}:diff", workflow_versions::compare, diffWorkflow, "workflow:read",
            "What differs between two versions: steps by name, edges, and the rest.",
            query(&workflow_versions::DIFF), shows(any_data);
        post "/api/workflows/{family_slug}:dry_run", dry_runs::of_stored, dryRunWorkflow, "workflow:read",
            "Says how a run would go; nothing is kept or executed.", fields(&dry_runs::FIELDS), shows(data::<dry_runs::DryRun>);
        post "/api/workflows:dry_run", dry_runs::of_posted, dryRunDocument, "workflow:read",
            "The same for a document that is not kept.", fields(&dry_runs::POSTED_FIELDS), shows(data::<dry_runs::DryRun>);
    }
}

#[rustfmt::skip]
fn live_routing(page: Page) -> Page {
    routes! { page;
        post "/api/route", route::route, routeWork, "decision:write", "Decides who gets a unit of work, and says why.",
            fields(&route::FIELDS), shows(data::<decision_shapes::DecisionShape>);
        get "/api/decisions", decisions::list, listDecisions, "decision:read", "Decisions by pages, newest first.",
            query(&decisions::FILTERS), query(&PARAMS), shows(snake_page_of::<decisions::DecisionSummary>);
        get "/api/decisions/{decision_id}", decisions::show, showDecision, "decision:read", "One decision with its explanation.",
            query(&decisions::SHOWN), shows(data::<decision_shapes::DecisionShape>);
        post "/api/decisions/{decision_id}:replay", replay::replay, replayDecision, "decision:read",
            "Decides again from what was read then, or as another strategy would have.", fields(&replay::FIELDS), shows(any_data), unaudited();
        get "/api/assignments", assignments::list, listAssignments, "assignment:read", "Work that went to recipients by pages, newest first.",
            query(&assignments::FILTERS), query(&PARAMS), shows(snake_page_of::<assignments::AssignmentView>);
        get "/api/assignments/{assignment_id}", assignments::show, showAssignment, "assignment:read", "One assignment.",
            shows(snake_data::<assignments::AssignmentView>);
        post "/api/assignments/{assignment_id}:accept", assignments::accept, acceptAssignment, "assignment:write",
            "Its recipient works on it; its deadline moves, its clock goes on.", shows(snake_data::<assignments::AssignmentView>);
        post "/api/assignments/{assignment_id}:renew", assignments::renew, renewAssignment, "assignment:write",
            "Its recipient is alive; its deadline moves.", shows(snake_data::<assignments::AssignmentView>);
        post "/api/assignments/{assignment_id}:complete", assignments::complete, completeAssignment, "assignment:write", "It is done.",
            fields(&assignments::COMPLETE), shows(snake_data::<assignments::AssignmentView>);
        post "/api/assignments/{assignment_id}:return", assignments::give_back, returnAssignment, "assignment:write",
            "Its recipient gives it back; it is routed to another.", fields(&assignments::RETURN), shows(snake_data::<assignments::AssignmentView>);
        post "/api/assignments/{assignment_id}:reject", assignments::reject, rejectAssignment, "assignment:write",
            "Its recipient refuses it; it is routed to another.", fields(&assignments::REJECT), shows(snake_data::<assignments::AssignmentView>);
        get "/api/queues/{pool_id}/items", routing_queues::list, listWaitingWork, "pool:read", "Work that waits in a pool, in the order of its queue.",
            query(&PARAMS), shows(snake_page_of::<routing_queues::ItemView>);
        delete "/api/queues/{pool_id}/items/{item_id}", routing_queues::cancel, cancelWaitingWork, "pool:write", "Takes work out of its queue.",
            shows(snake_data::<routing_queues::CancelledItem>);
        post "/api/routing:reconcile", routing_queues::reconcile, reconcileRouting, "pool:write",
            "Computes the numbers of all recipients anew, and puts right what differs.", shows(snake_data::<routing_queues::ReconciledView>);
        get "/api/claim-queues/{claim_queue_id}/items", claims::list, listOffers, "claim:read", "Open offers, in the order of their queue.",
            query(&claims::QUERY), shows(snake_page_of::<claims::OfferView>);
        post "/api/claim-queues/{claim_queue_id}/items/{item_id}:claim", claims::claim, claimOffer, "claim:write", "A recipient takes an offer.",
            fields(&claims::CLAIM), creates(any_data), refuses(&[429]);
        post "/api/claim-queues/{claim_queue_id}:next", claims::next, claimNext, "claim:write",
            "A recipient takes the oldest offer of the best priority that it may have.", fields(&claims::CLAIM), shows(any_data), refuses(&[429]);
    }
}

#[rustfmt::skip]
fn the_bridge(page: Page) -> Page {
    routes! { page;
        post "/api/bridge/poll", bridge::poll, pollTasks, "bridge:write", "Claims tasks of a queue, and waits for the first.",
            fields(&bridge::POLL), shows(data::<bridge::ClaimedTasks>), unaudited();
        post "/api/bridge/tasks/{token}:heartbeat", bridge::heartbeat, heartbeatTask, "bridge:write",
            "Says that the worker of a task is alive; hears whether the task is still wanted.", shows(data::<bridge::HeartbeatView>), unaudited();
        post "/api/bridge/tasks/{token}:complete", bridge::complete, completeTask, "bridge:write", "Ends a task with its output.",
            fields(&bridge::COMPLETE), shows(data::<bridge::TaskSaid>), unaudited();
        post "/api/bridge/tasks/{token}:fail", bridge::fail, failTask, "bridge:write", "Ends an attempt that failed.",
            fields(&bridge::FAIL), shows(data::<bridge::TaskSaid>), unaudited();
        post "/api/bridge/complete-batch", bridge::batch, completeTasks, "bridge:write",
            "Ends many tasks in one commit, and claims others in the same.", fields(&bridge::BATCH), shows(data::<bridge::BatchSaid>), unaudited();
    }
}

#[rustfmt::skip]
fn declared_routing(page: Page) -> Page {
    routes! { page;
        post "/api/pools", recipient_pools::create, createRecipientPool, "pool:write", "Creates a pool of recipients.",
            takes(any_object, true), creates(declared::<declared_shapes::PoolShape>);
        get "/api/pools", recipient_pools::list, listRecipientPools, "pool:read", "Pools of recipients by pages, newest first.",
            query(&recipient_pools::FILTERS), query(&PARAMS), shows(page_of::<declared_shapes::PoolShape>);
        get "/api/pools/{pool_id}", recipient_pools::show, showRecipientPool, "pool:read", "One pool with its recipients and rules.",
            query(&recipient_pools::SHOWN), shows(declared::<declared_shapes::PoolShape>), versioned();
        patch "/api/pools/{pool_id}", recipient_pools::patch, patchRecipientPool, "pool:write", "Changes the fields that are sent.",
            takes(any_object, true), shows(declared::<declared_shapes::PoolShape>), versioned();
        delete "/api/pools/{pool_id}", recipient_pools::delete, deleteRecipientPool, "pool:delete", "Removes a pool and its rules; its recipients stay.",
            query(&recipient_pools::DELETION), shows(data::<declared_shapes::GonePoolShape>), versioned();
        post "/api/pools/{pool_id}:set_enabled", recipient_pools::set_enabled, setPoolEnabled, "pool:write", "The kill-switch: stops routing, or lets it go on.",
            fields(&recipient_pools::SWITCH), shows(declared::<declared_shapes::PoolShape>), versioned();
        get "/api/pools/{pool_id}/stats", recipient_pools::stats, showPoolStats, "pool:read", "Numbers over all recipients of a pool.",
            shows(any_data);
        post "/api/pools/{pool_id}/capacity/reset", recipient_pools::reset, resetPoolCapacity, "pool:write", "Counts the work of each recipient of a pool from here on.",
            fields(&once::FIELDS), shows(data::<declared_shapes::CapacityResetShape>), versioned();
        post "/api/pools/{pool_id}/recipients", recipients::create, createRecipient, "recipient:write", "Creates a recipient in a pool.",
            takes(any_object, true), creates(declared::<declared_shapes::RecipientShape>);
        get "/api/pools/{pool_id}/recipients", recipients::list, listRecipients, "recipient:read", "Recipients of a pool by pages, newest first.",
            query(&recipients::FILTERS), query(&PARAMS), shows(page_of::<declared_shapes::RecipientShape>);
        put "/api/pools/{pool_id}/recipients/{recipient_id}", recipients::join, addMembership, "recipient:write", "Makes a recipient a member of a further pool.",
            fields(&once::FIELDS), shows(declared::<declared_shapes::RecipientShape>), versioned();
        delete "/api/pools/{pool_id}/recipients/{recipient_id}", recipients::leave, dropMembership, "recipient:write", "Drops a membership; the recipient stays.",
            query(&recipients::DROPPING), shows(declared::<declared_shapes::RecipientShape>), versioned();
        get "/api/recipients/{recipient_id}", recipients::show, showRecipient, "recipient:read", "One recipient with its state and numbers.",
            query(&recipient_pools::SHOWN), shows(declared::<declared_shapes::RecipientShape>), versioned();
        patch "/api/recipients/{recipient_id}", recipients::patch, patchRecipient, "recipient:write", "Changes the fields that are sent; `pool_id` moves the primary membership.",
            takes(any_object, true), shows(declared::<declared_shapes::RecipientShape>), versioned();
        delete "/api/recipients/{recipient_id}", recipients::delete, deleteRecipient, "recipient:delete", "Removes a recipient.",
            query(&recipients::DELETION), shows(data::<declared_shapes::GoneShape>), versioned();
        post "/api/recipients/{recipient_id}/pause", recipients::pause, pauseRecipient, "recipient:write", "Takes a recipient out of rotation; its memberships and numbers stay.",
            fields(&once::FIELDS), shows(declared::<declared_shapes::RecipientShape>), versioned();
        post "/api/recipients/{recipient_id}/resume", recipients::resume, resumeRecipient, "recipient:write", "Puts a recipient back into rotation.",
            fields(&once::FIELDS), shows(declared::<declared_shapes::RecipientShape>), versioned();
        post "/api/rules", rules::create, createRule, "rule:write", "Creates a rule of the tenant, or of a pool.",
            takes(any_object, true), creates(declared::<declared_shapes::RuleShape>);
        get "/api/rules", rules::list, listRules, "rule:read", "Rules by pages, newest first.",
            query(&rules::FILTERS), query(&PARAMS), shows(page_of::<declared_shapes::RuleShape>);
        get "/api/rules/{rule_id}", rules::show, showRule, "rule:read", "One rule.",
            query(&recipient_pools::SHOWN), shows(declared::<declared_shapes::RuleShape>), versioned();
        patch "/api/rules/{rule_id}", rules::patch, patchRule, "rule:write", "Changes the fields that are sent; an action with a type is replaced.",
            takes(any_object, true), shows(declared::<declared_shapes::RuleShape>), versioned();
        delete "/api/rules/{rule_id}", rules::delete, deleteRule, "rule:delete", "Removes a rule.",
            query(&rules::DELETION), shows(data::<declared_shapes::GoneShape>), versioned();
        post "/api/rules:test", rule_trials::test, testRule, "rule:read", "Tries an expression, or a rule that is stored, on invented work.",
            fields(&rule_trials::FIELDS), shows(any_data), unaudited();
        get "/api/routing/bundle", bundles::export, exportBundle, "bundle:read", "All that is declared for routing, as one document.", shows(any_data);
        get "/api/routing/bundles", kept_bundles::list, listBundles, "bundle:read",
            "The bundles that the configuration keeps in force: synced, drifted or failed, and why.", shows(any_list);
        post "/api/routing/bundle:diff", bundles::diff, diffBundle, "bundle:read", "What a document would change.",
            fields(&bundles::FIELDS), shows(any_data), unaudited();
        post "/api/routing/bundle:apply", bundles::apply, applyBundle, "bundle:write", "Makes what is declared what a document says: all of it, or nothing.",
            fields(&bundles::FIELDS), shows(any_data), refuses(&[412]);
        get "/api/traits", traits::list, listTraits, "rule:read", "Traits by pages, by key.",
            query(&traits::FILTERS), query(&PARAMS), shows(page_of::<declared_shapes::TraitShape>);
        put "/api/traits/{trait_key}", traits::put, putTrait, "rule:write", "Declares a trait, in place of one of the same key.",
            takes(any_object, true), shows(declared::<declared_shapes::TraitShape>), versioned();
        delete "/api/traits/{trait_key}", traits::delete, deleteTrait, "rule:write", "Removes a trait that no pool filters by.",
            query(&traits::DELETION), shows(data::<declared_shapes::GoneTraitShape>), versioned();
        post "/api/claim-queues", traits::create_queue, createClaimQueue, "pool:write", "Creates a queue whose items recipients claim.",
            takes(any_object, true), creates(declared::<declared_shapes::ClaimQueueShape>);
        get "/api/claim-queues", traits::list_queues, listClaimQueues, "claim:read", "Claim queues by pages, newest first.",
            query(&traits::FILTERS), query(&PARAMS), shows(page_of::<declared_shapes::ClaimQueueShape>);
        get "/api/claim-queues/{claim_queue_id}", traits::show_queue, showClaimQueue, "claim:read", "One claim queue.",
            query(&recipient_pools::SHOWN), shows(declared::<declared_shapes::ClaimQueueShape>), versioned();
    }
}

#[rustfmt::skip]
fn campaigns_and_strategies(page: Page) -> Page {
    routes! { page;
        post "/api/shadow-campaigns", shadow_campaigns::create, createShadowCampaign, "shadow:write",
            "Creates a campaign that compares another strategy with what a pool decides.", takes(any_object, true), creates(any_data);
        get "/api/shadow-campaigns", shadow_campaigns::list, listShadowCampaigns, "shadow:read", "Shadow campaigns by pages, newest first.",
            query(&shadow_campaigns::FILTERS), query(&PARAMS), shows(any_page);
        get "/api/shadow-campaigns/{campaign_id}", shadow_campaigns::show, showShadowCampaign, "shadow:read", "One shadow campaign.",
            query(&recipient_pools::SHOWN), shows(any_data), versioned();
        patch "/api/shadow-campaigns/{campaign_id}", shadow_campaigns::patch, patchShadowCampaign, "shadow:write",
            "Changes the fields that are sent; `status` starts and stops it.", takes(any_object, true), shows(any_data), versioned();
        delete "/api/shadow-campaigns/{campaign_id}", shadow_campaigns::delete, deleteShadowCampaign, "shadow:write", "Removes a shadow campaign and its numbers.",
            query(&shadow_campaigns::DELETION), shows(any_data), versioned();
        get "/api/shadow-campaigns/{campaign_id}/report", shadow_campaigns::report, reportShadowCampaign, "shadow:read",
            "How often it agrees with production, and what it would have been worth.", shows(any_data);
        get "/api/strategies", strategies::list, listStrategies, "pool:read", "What a pool can pick by.",
            query(&strategies::FILTERS), shows(any_list);
        get "/api/strategies/{strategy_key}", strategies::show, showStrategy, "pool:read", "One strategy with its parameters.",
            shows(any_data);
    }
}

#[rustfmt::skip]
fn the_daemon(page: Page) -> Page {
    routes! { page;
        get "/api/overview", overview::show, showOverview, "run:read", "What fails, runs, waits and comes next, and the last day.",
            shows(data::<overview::OverviewView>);
        get "/api/status", status::show, showStatus, "system:read", "The state of the daemon, and whether all is well.",
            shows(data::<status::StatusView>);
        get "/api/config", config::show, showConfig, "system:read", "The configuration in force, without secrets.", shows(any_data);
        post "/api/config:reload", config::reload, reloadConfig, "system:write", "Reads the configuration anew, or changes nothing.",
            shows(data::<config::ReloadedView>);
        get "/api/nodes", nodes::list, listNodes, "system:read", "Daemons that have used this state directory, by name.",
            query(&PARAMS), shows(page_of::<nodes::NodeView>);
        post "/api/nodes/{node}:drain", nodes::drain, drainNode, "system:write", "Tells a daemon to begin nothing more; what it runs goes on.",
            fields(&nodes::FIELDS), shows(data::<nodes::NodeView>);
        post "/api/nodes/{node}:undrain", nodes::undrain, undrainNode, "system:write", "Lets a daemon begin work again.",
            shows(data::<nodes::NodeView>);
        get "/api/store/check", store_check::run, checkStore, "system:read", "Checks every row and index of the store.",
            shows(data::<store_check::CheckView>);
        get "/api/backups", backups::list, listBackups, "system:read", "The newest backups, newest first.",
            shows(data::<Vec<backups::BackupView>>);
        post "/api/backups", backups::make, makeBackup, "system:write", "Copies the store to one file, while the daemon works.",
            fields(&backups::FIELDS), creates(data::<backups::BackupView>), accepts(data::<backups::BackupView>);
        get "/api/dead_letters", dead_letters::list, listDeadLetters, "event:read", "What was given up: steps with which daemons died, and reports that could not be delivered.",
            query(&dead_letters::FILTERS), query(&PARAMS), shows(page_of::<dead_letters::LetterView>);
        get "/api/dead_letters/{letter}", dead_letters::show, showDeadLetter, "event:read", "One dead letter.",
            shows(data::<dead_letters::LetterView>);
        post "/api/dead_letters/{letter}:retry", dead_letters::retry, retryDeadLetter, "event:write", "Delivers a report anew, or tries a step again by a new run.",
            creates(data::<dead_letters::HandledLetter>), accepts(data::<dead_letters::HandledLetter>);
        post "/api/dead_letters/{letter}:discard", dead_letters::discard, discardDeadLetter, "event:write", "Puts a dead letter away.",
            shows(data::<dead_letters::HandledLetter>);
        get "/api/stream", stream::follow, followChanges, "event:read", "What each commit changes, as it happens.",
            query(&stream::QUERY), sends("text/event-stream"), refuses(&[429]);
        get "/api/openapi.json", openapi::show, showApi, "any", "This document.", shows(any_object), versioned();
        get "/livez", health::live, isLive, "open", "200 while the loops turn.", shows(plain::<health::Standing>);
        get "/readyz", health::ready, isReady, "open", "200 when work can be accepted and done.",
            query(&health::QUERY), shows(plain::<health::Standing>);
        get "/healthz", health::ready, isHealthy, "open", "The same as `/readyz`.",
            query(&health::QUERY), shows(plain::<health::Standing>);
        get "/version", health::version, showVersion, "open", "Name, version, commit and schema.", shows(plain::<health::Identity>);
        get "/metrics", metrics::scrape, scrape, "metrics:read", "OpenMetrics text.", sends("application/openmetrics-text");
    }
}

#[rustfmt::skip]
fn who_calls(page: Page) -> Page {
    routes! { page;
        get "/api/session", sessions::show, showSession, "any", "Who calls, and what they may do.", shows(data::<sessions::SessionView>);
        post "/api/session", sessions::begin, beginSession, "open", "Signs in to the dashboard: a cookie for a key.",
            fields(&sessions::FIELDS), creates(data::<sessions::SessionView>), refuses(&[401, 429]);
        delete "/api/session", sessions::end, endSession, "any", "Signs out.", shows(any_data);
        get "/api/keys", keys::list, listKeys, "key:read", "API keys by pages, newest first; never their secrets.",
            query(&keys::FILTERS), query(&PARAMS), shows(page_of::<keys::KeyView>);
        post "/api/keys", keys::create, createKey, "key:write", "Makes an API key, and shows it this once.",
            fields(&keys::FIELDS), creates(data::<keys::NewKey>);
        delete "/api/keys/{key}", keys::revoke, revokeKey, "key:delete", "Ends a key and its sessions, for all daemons at once.",
            shows(data::<keys::KeyView>);
        get "/api/tenants", tenants::list, listTenants, "tenant:read", "Tenants by name; others than one's own for `default` alone.",
            query(&PARAMS), shows(page_of::<tenants::TenantView>);
        post "/api/tenants", tenants::create, createTenant, "tenant:write", "Makes a tenant; for `admin` of `default`.",
            fields(&tenants::FIELDS), creates(data::<tenants::TenantView>);
        get "/api/tenants/{tenant}", tenants::show, showTenant, "tenant:read", "One tenant, with what it says of its routing.",
            shows(data::<tenants::TenantView>);
        patch "/api/tenants/{tenant}", tenants::set, changeTenant, "tenant:write", "Changes what a tenant says of its routing.",
            fields(&tenants::SETTINGS), shows(data::<tenants::RoutingView>);
        get "/api/audit", audit::list, listAudit, "audit:read", "What was done, by whom, newest first.",
            query(&audit::FILTERS), query(&PARAMS), shows(page_of::<audit::AuditView>);
    }
}

/// The whole face.
pub fn router(app: App) -> Router {
    let routes = page()
        .router
        .route("/", get(pages::page))
        .route("/ui", get(pages::page))
        .route("/ui/{*page}", get(pages::page))
        .route("/web/{*file}", get(pages::file))
        .route_layer(from_fn(front::note_route))
        .fallback(async || Problem::not_found("there is nothing at this path"))
        .method_not_allowed_fallback(async || {
            Problem::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "this path does not know this method",
            )
        })
        // The front bounds bodies, route by route; the library's own bound would come on top of it.
        .layer(axum::extract::DefaultBodyLimit::disable())
        .with_state(app.clone());
    // The front must see a request before it is routed, so it stands around a router of its own.
    Router::new()
        .fallback_service(routes)
        .layer(from_fn_with_state(app, front::front))
}
