//! Every limit of the program, with its reason. Hitting one is a refusal that names it.

/// Bytes of an item that a command gets in a variable: the kernel takes 128 KiB for one with its name.
pub const ITEM_VARIABLE_BYTES_MAX: usize = 96 * 1024;

/// Fences and feed numbers of a restored store begin this far behind those of its backup: what the original daemon gave out
/// since then is surely less, and no number is given twice to somebody outside.
pub const RESTORE_LEAP: u64 = 1_000_000_000;
/// Backups that are remembered.
pub const BACKUPS_KEPT_MAX: usize = 100;
/// A lease ends this long after its last renewal (the seed's 30 seconds).
pub const LEASE_MS: u64 = 30_000;
/// All claims of a daemon are renewed together this often: five tries fit into one lease.
pub const RENEWAL_PERIOD_MS: u64 = 5_000;
/// A process whose lease cannot be renewed is ended this long before the lease does.
pub const LEASE_MARGIN_MS: u64 = 5_000;
/// SIGKILL goes out at least this long before the lease ends.
pub const LEASE_KILL_MARGIN_MS: u64 = 1_000;
/// SIGKILL goes out at most this long after a claim was lost to another owner.
pub const LOST_KILL_MAX_MS: u64 = 4_000;
/// One operation on pool state: from the call to the answer (the seed's 5-second bound).
pub const OPERATION_MS: u64 = 5_000;
/// A further wait for the disk of an operation that was already taken into a transaction.
pub const COMMIT_GRACE_MS: u64 = 5_000;
/// A daemon looks this often whether others committed something, or want in; a datagram is faster, when it arrives.
pub const PEER_LOOK_MS: u64 = 250;
/// The list of peers that get a datagram is this old at most.
pub const PEER_LIST_MS: u64 = 1_000;
/// Datagrams taken at once: they all say the same.
pub const PEER_WORDS_MAX: usize = 256;
/// How long a daemon that starts waits until the others let it in.
pub const JOINING_MS: u64 = 15_000;
/// A daemon that holds more than its share of a slot pool leaves what anybody may claim to the others for this long.
pub const YIELD_MS: u64 = 25;
/// Commits of other daemons wake the loops at most this often.
pub const FOREIGN_WAKE_MS: u64 = 5;
/// The pass that needs no traffic: deadlines and lapsed leases are noticed within this time.
pub const PASS_PERIOD_MS: u64 = 1_000;
/// A queue whose head waits for a dead node for this long is told of.
pub const HEAD_BLOCKED_MS: u64 = 60_000;
/// How often an idle daemon writes that it is there.
pub const LAST_SEEN_PERIOD_MS: u64 = 15_000;
/// A fire later than this is missed, not late.
pub const FIRE_LATE_MS: u64 = 10_000;
/// The wall clock may run ahead of the boot clock by this much before expiry is held back.
pub const CLOCK_JUMP_MS: u64 = 5_000;

/// Changes in one transaction: a commit of 1,024 took 17 ms, of 256 about 5 ms.
pub const BATCH_CHANGES_MAX: usize = 256;
/// Bytes written in one transaction before the rest waits for the next.
pub const BATCH_BYTES_MAX: usize = 4 << 20;
/// Requests that may wait for the writer; beyond it the store is overloaded and says so.
pub const WRITER_QUEUE_MAX: usize = 16_384;
/// Claims in one change, so that a pass never holds the writer for long.
pub const CLAIMS_PER_CHANGE_MAX: usize = 16;
/// Rows of maintenance in one change; the rest follows in the next pass.
pub const MAINTENANCE_ROWS_MAX: usize = 256;
/// Closed entries kept for each pool.
pub const CLOSED_KEPT_MAX: usize = 100;
/// The daemon death at which a step is not run again: it may be what kills them.
pub const DAEMON_DEATHS_MAX: u32 = 5;
/// Feed rows kept, and how long.
pub const FEED_ROWS_MAX: u64 = 100_000;
/// Age of the oldest feed row kept.
pub const FEED_AGE_MS: u64 = 3_600_000;
/// How long an idempotency key is remembered.
pub const IDEMPOTENCY_AGE_MS: u64 = 24 * 3_600_000;
/// Length of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;
/// Bytes of an answer that is kept under an idempotency key: a day's worth of them must fit the disk.
pub const REMEMBERED_BYTES_MAX: usize = 256 << 10;
/// Skipped fires kept in memory while the store is down; beyond it a count for each job and reason.
pub const SKIPPED_IN_MEMORY_MAX: usize = 10_000;

/// Missed moments of one job that get a row each; what is older is counted in the log.
pub const MISSED_ROWS_MAX: usize = 1_000;
/// Missed moments of one job that run afterwards: the newest ones.
pub const CAUGHT_UP_MAX: usize = 100;
/// A catch-up that was refused or ended before it started is tried again after this time.
pub const RESUME_MS: u64 = 30_000;
/// A retry that was refused waits this long at least.
pub const REFUSED_RETRY_MS: u64 = 1_000;
/// Newest runs of a job among which its last outcome is looked for.
pub const OUTCOME_RUNS_MAX: usize = 100;
/// Retries brought back in one change.
pub const RETRIES_PER_CHANGE_MAX: usize = 64;

/// Bytes of a job, slot pool or step name.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of a step's name with the branches of an instance.
pub const STEP_NAME_BYTES_MAX: usize = NAME_BYTES_MAX + 44;
/// Compiled definitions that are kept; beyond it all are compiled anew.
pub const GRAPHS_KEPT_MAX: usize = 256;
/// Runs that are looked at together because of stored facts or timers.
pub const RUNS_DUE_MAX: usize = 1_000;
/// Runs above a run that a step of another has begun.
pub const RUN_DEPTH_MAX: u8 = 8;
/// Groups of runs that are moved at once by a daemon.
pub const TICK_GROUPS: usize = 4;
/// Runs of one group.
pub const TICK_GROUP_RUNS: usize = 64;
/// Rows of steps and values in the ticks of one change, unless one run alone has more.
pub const TICK_ROWS_MAX: usize = 2_000;
/// How long a run rests that could not be moved.
pub const TICK_AGAIN_MS: u64 = 200;
/// Branches of one scatter.
pub const BRANCHES_MAX: usize = 100_000;
/// Bytes of a page of items, where the items are small: it is kept in a row.
pub const ITEM_PAGE_BYTES: usize = 12 << 10;
/// Bytes of a page of items, where the items are large: it is kept in a file.
pub const ITEM_BLOB_BYTES: usize = 1 << 20;
/// Items on one page.
pub const ITEMS_PER_PAGE_MAX: usize = 128;
/// Branches of one scatter that are open at once, and thereby rows of one tick.
pub const OPEN_BRANCHES_MAX: u32 = 1_000;
/// Bytes of a node name: a file name and a socket name are made of it.
pub const NODE_NAME_BYTES_MAX: usize = 63;
/// Slots of a slot pool, and its longest queue.
pub const SLOTS_MAX: u32 = 10_000;
/// Characters of the note of a pause.
pub const NOTE_CHARS_MAX: usize = 500;
/// Longest pause with an end: 30 days.
pub const PAUSE_SECONDS_MAX: u64 = 2_592_000;
/// Bytes of the reason text stored with an attempt.
pub const REASON_BYTES_MAX: usize = 2_048;
/// Queued entries that `GET /pools` shows unless asked for more.
pub const QUEUED_SHOWN_DEFAULT: usize = 200;
/// Items of one page of a list.
pub const PAGE_MAX: usize = 500;
/// Items of one page of a list when nothing is asked.
pub const PAGE_DEFAULT: usize = 50;
/// Terms of one filter over runs.
pub const FILTER_TERMS_MAX: usize = 64;
/// Rows looked at for one page of runs: a filter that matches nothing must not walk the whole table.
pub const PAGE_SCAN_MAX: usize = 5_000;
/// Unfinished runs that are put in order for one page; with more of them the table of all runs is walked instead.
pub const UNFINISHED_SORTED_MAX: usize = 20_000;
/// A run may be this much older than its neighbours in the order of ids: ids are made before the run waits for its commit.
pub const ID_ORDER_SLACK_MS: u64 = 60_000;
/// Runs that one request acts on.
pub const BULK_RUNS_MAX: usize = 10_000;
/// Rows that are looked at for it: some two seconds.
pub const BULK_SCAN_MAX: usize = 500_000;
/// Runs in one change of it.
pub const BULK_RUNS_PER_CHANGE: usize = 64;
/// Rows that one change of many writes, unless a single run needs more.
pub const BULK_ROWS_PER_CHANGE: usize = 4_000;
/// Runs that its preview shows.
pub const BULK_SAMPLE_MAX: usize = 20;
/// New and refused runs that its answer names.
pub const BULK_LISTED_MAX: usize = 100;
/// Bytes of a log in one answer.
pub const LOG_CHUNK_MAX: u64 = 1 << 20;
/// Bytes of a text that is looked for in a log.
pub const LOG_SEARCH_TEXT_MAX: usize = 256;
/// Bytes of a log that one search looks at.
pub const LOG_SEARCH_BYTES_MAX: u64 = 64 << 20;
/// Bytes of one attempt's log; its last MiB is kept beyond that.
pub const LOG_BYTES_MAX: u64 = 256 << 20;
/// Lines that `verify` may leave in the log of its attempt.
pub const VERIFY_LINES_MAX: usize = 64;
/// Longest end of a dead daemon's process group before it is left to its lease.
pub const STRANGER_KILL_MS: u64 = 10_000;
/// Pipes that are still open this long after the group's end are closed.
pub const PIPE_LINGER_MS: u64 = 5_000;
/// A bincode record longer than this is damage, not data.
pub const RECORD_BYTES_MAX: usize = 64 << 20;
/// Shims that wait in advance, so that a claim and its identity are one commit.
pub const WARM_SHIMS_MAX: usize = 4;
/// Bytes of an envFile.
pub const ENV_FILE_BYTES_MAX: u64 = 1 << 20;
/// Bytes of one secret: half of what the kernel takes as one variable.
pub const SECRET_BYTES_MAX: usize = 64 << 10;
/// Bytes of all secrets of a command: searching for them takes some 50 bytes of memory for each.
pub const SECRETS_BYTES_MAX: usize = 256 << 10;
/// Values of one metrics label; more of them share `other`.
pub const LABEL_VALUES_MAX: usize = 200;
/// Connections at once; more wait to be accepted.
pub const CONNECTIONS_MAX: usize = 512;
/// The head of a request must be here within this time; a connection at rest is closed after it too.
pub const HEAD_READ_MS: u64 = 30_000;
/// Bytes of the end of each stream that a report carries.
pub const REPORT_TAIL_BYTES_MAX: usize = 4 << 10;
/// Wait after the first failed delivery of a report; it doubles.
pub const EFFECT_BACKOFF_MIN_MS: u64 = 1_000;
/// Longest wait between two deliveries of a report.
pub const EFFECT_BACKOFF_MAX_MS: u64 = 300_000;
/// Tries of a report's command: each may have done half of its work, a mail sent say.
pub const SHELL_TRIES_MAX: u32 = 5;
/// A webhook that is not delivered for this long is given up.
pub const EFFECT_AGE_MAX_MS: u64 = 24 * 3_600_000;
/// Reports of one job that wait for one kind of receiver; one more is given up at once.
pub const EFFECTS_OF_JOB_MAX: u64 = 1_000;
/// Reports of all jobs that wait for one kind of receiver.
pub const EFFECTS_MAX: u64 = 10_000;
/// Reports kept of one run, so that endless retries leave no endless rows.
pub const EFFECTS_OF_RUN_MAX: usize = 50;
/// A report that a daemon delivers is its own for this long beyond the time that the delivery itself may take.
pub const DELIVERY_SLACK_MS: u64 = 30_000;
/// Deliveries at once.
pub const DELIVERIES_MAX: usize = 16;
/// Deliveries at once for one job and one kind of receiver: one that hangs holds up no other.
pub const DELIVERIES_OF_JOB_MAX: usize = 2;
/// One delivery to a webhook, from the lookup of its name to the head of its answer.
pub const WEBHOOK_TIMEOUT_MS: u64 = 10_000;
/// Bytes of a failed webhook's answer that are looked at.
pub const WEBHOOK_ANSWER_BYTES_MAX: usize = 4 << 10;
/// Bytes of a webhook's own body before its fields are filled in.
pub const WEBHOOK_BODY_BYTES_MAX: usize = 64 << 10;
/// Own headers of one webhook.
pub const WEBHOOK_HEADERS_MAX: usize = 32;
/// From SIGTERM to SIGKILL of a report's command.
pub const REPORT_KILL_MS: u64 = 2_000;
/// Deliveries that are under way when the daemon stops, and those of its last commands, get this long.
pub const REPORT_DRAIN_MS: u64 = 5_000;
/// How often late jobs are looked for.
pub const LATENESS_PERIOD_MS: u64 = 15_000;
/// Newest runs of a job that are looked at for a start.
pub const LATENESS_RUNS_MAX: usize = 50;
/// A loop that has not turned for this long does not answer: no heartbeat is sent.
pub const PULSE_LOST_MS: u64 = 30_000;
/// Nodes of a drawn graph, with those of bodies; beyond it bodies are folded into a number, since nobody can look at them.
pub const GRAPH_VISIBLE_MAX: usize = 400;
/// Bends of long edges in one drawn graph; the longest edges run above it when there would be more. Time and answers of a
/// drawing grow with its bends: 1,000 steps in one chain and 4,000 edges across it would have over a million.
pub const GRAPH_BENDS_MAX: usize = 20_000;
/// Sweeps over the columns of a drawn graph; later ones hardly ever find fewer crossings.
pub const GRAPH_SWEEPS_MAX: usize = 12;
/// Links up to which a drawn graph tries swaps of neighbours after each sweep.
pub const GRAPH_SWAP_LINKS_MAX: usize = 3_000;
/// Steps of one run that are read for its picture; with more, those in branches are not counted one by one.
pub const GRAPH_STEPS_READ_MAX: usize = 5_000;
/// Bodies inside of bodies that are drawn.
pub const GRAPH_DEPTH_MAX: usize = 8;
/// Rails beside a graph that is shown as text; with more, its steps are listed with their predecessors instead.
pub const GRAPH_RAILS_MAX: usize = 16;
/// Event streams open at one time: each holds a connection and wakes with each commit.
pub const STREAMS_MAX: usize = 32;
/// Newest runs that are read for the bars of the last day; what began before them is not counted, and that is said.
pub const HOURS_RUNS_MAX: usize = 20_000;
/// Commits that are read to bring those bars up to date; beyond it they are counted anew.
pub const HOURS_COMMITS_MAX: u64 = 5_000;
/// Attempts of a run that its timeline shows one by one.
pub const TIMELINE_ATTEMPTS_MAX: usize = 200;
/// Steps of a run that are told as bars.
pub const TIMELINE_STEPS_MAX: usize = 100;
/// Ended attempts of each of them that are told one by one.
pub const TIMELINE_STEP_ATTEMPTS_MAX: usize = 20;
/// Runs whose logs are counted for the page of settings; with more it says nothing of them.
pub const LOGS_COUNTED_MAX: usize = 20_000;
/// Bytes of a posted definition: what people write by hand is a hundredth of it.
pub const DEFINITION_BYTES_MAX: usize = 512 << 10;
/// Steps of a definition, bodies included.
pub const STEPS_MAX: usize = 1_000;
/// Edges of a definition, bodies included.
pub const EDGES_MAX: usize = 5_000;
/// Scatters inside each other.
pub const SCATTER_DEPTH_MAX: usize = 2;
/// Levels of sub-workflows below a run.
pub const SUBWORKFLOW_DEPTH_MAX: usize = 8;
/// Definitions that are looked at to see how deep sub-workflows go.
pub const SUBWORKFLOW_FAMILIES_MAX: usize = 1_000;
/// Findings about one document; the rest is counted.
pub const FINDINGS_MAX: usize = 500;
/// Bytes of a step's name in a definition of the API.
pub const STEP_REF_BYTES_MAX: usize = 63;
/// Bytes of a definition's name.
pub const FAMILY_SLUG_BYTES_MAX: usize = 63;
/// Characters of a title.
pub const TITLE_CHARS_MAX: usize = 200;
/// Characters of a description.
pub const DESCRIPTION_CHARS_MAX: usize = 10_000;
/// Labels of a definition or run.
pub const LABELS_MAX: usize = 64;
/// Bytes of a label's name.
pub const LABEL_NAME_BYTES_MAX: usize = 63;
/// Characters of a label's value, and of other short words.
pub const LABEL_CHARS_MAX: usize = 256;
/// Attempts of one step.
pub const STEP_ATTEMPTS_MAX: u32 = 1_000;
/// Codes that end retries.
pub const RETRY_CODES_MAX: usize = 64;
/// Runs of a definition at once.
pub const CONCURRENCY_MAX: u32 = 100_000;
/// Ended runs of a definition that retention looks at and keeps before it looks no further: they stand in the order of age.
pub const RETENTION_SPARED_MAX: usize = 200;
/// Runs that wait for the end of others of the same key.
pub const KEY_WAITING_MAX: u32 = 100_000;
/// Bytes of the key by which runs are counted.
pub const KEY_TEXT_BYTES_MAX: usize = 256;
/// Runs that begin with one commit because places of their key have become free; the others begin with the next.
pub const KEY_BEGINS_MAX: usize = 64;
/// Runs of a key that are looked at for one that newer ones may replace.
pub const KEY_WALK_MAX: usize = 1_000;
/// Holders of a key that are named to who asks why a run waits.
pub const KEY_HOLDERS_SHOWN_MAX: usize = 20;
/// Ended runs of a definition that are kept.
pub const RETAINED_RUNS_MAX: u32 = 1_000_000;
/// Branches at once.
pub const PARALLEL_MAX: u32 = 10_000;
/// Scopes that may decide.
pub const APPROVERS_MAX: usize = 64;
/// A slot entry of a step waits this long unless the step says otherwise.
pub const QUEUE_TIMEOUT_MS: u64 = 3_600_000;
/// Longest time from SIGTERM to SIGKILL.
pub const KILL_TIMEOUT_MAX_MS: u64 = 3_600_000;
/// Words of a command, and variables of a process.
pub const COMMAND_ENTRIES_MAX: usize = 10_000;
/// Secrets of one step: each output byte is compared with all of them.
pub const STEP_SECRETS_MAX: usize = 64;
/// Redirects that a request may follow.
pub const REDIRECTS_MAX: u32 = 10;
/// Characters of an address.
pub const URL_CHARS_MAX: usize = 4_096;
/// Statuses that are expected of a request.
pub const EXPECTED_STATUSES_MAX: usize = 64;
/// Versions of one definition.
pub const VERSIONS_MAX: u32 = 100_000;
/// Definitions of one tenant.
pub const FAMILIES_MAX: usize = 10_000;
/// Bytes of a payload that stands in its row; a larger one is a blob, so that walking rows does not read it.
pub const PAYLOAD_INLINE_BYTES_MAX: u64 = 16 << 10;
/// Bytes of any payload.
pub const PAYLOAD_BYTES_MAX: u64 = 32 << 20;
/// A sweep of blobs waits this long for those who put one.
pub const BLOB_SWEEP_WAIT_MS: u64 = 250;
/// A blob that no row names is swept when it is older than this; from a put to its commit it is some seconds.
pub const BLOB_SWEEP_AGE_MS: u64 = 3_600_000;
/// Between two rounds of a sweep. A blob goes in the second round that finds it without a name, so that no step of the clock
/// makes a young one old.
pub const BLOB_SWEEP_PERIOD_MS: u64 = 15 * 60_000;
/// Old blobs that are compared with the rows at once.
pub const BLOBS_SWEPT_TOGETHER_MAX: usize = 20_000;
/// Blobs removed while those who put one wait.
pub const BLOBS_PER_SWEEP_MAX: usize = 64;
/// Bytes of blobs that the check of a working daemon reads: more than a minute of reading is for a stopped one.
pub const BLOBS_READ_BY_CHECK_MAX: u64 = 2 << 30;
/// Lines of a run's history from which on it should continue as a new run.
pub const HISTORY_LINES_LONG: u64 = 10_000;
/// The same for its bytes.
pub const HISTORY_BYTES_LONG: u64 = 8 << 20;
/// Compactable lines of a history at which they are compacted.
pub const HISTORY_COMPACTED_AT: u64 = 2_000;
/// The same when the run has ended: a shorter history stays as it is, there is nothing to gain.
pub const HISTORY_COMPACTED_AT_END: u64 = 100;
/// Lines of a history that cannot be compacted, at which its run fails.
pub const HISTORY_LINES_MAX: u64 = 50_000;
/// The same for its bytes.
pub const HISTORY_BYTES_MAX: u64 = 64 << 20;
/// Files (inodes) that must be left on the disk of the state directory for a run to begin; twice as many end a lack.
pub const LOW_FILES: u64 = 1_000;
/// Rows of runs that go in one change: the writer is never held for longer than some milliseconds.
pub const RETIRED_ROWS_MAX: usize = 1_000;
/// Runs that are looked at in one search for those that go.
pub const RETIRE_SCAN_MAX: usize = 10_000;
/// Steps that a dry run shows.
pub const SIMULATED_STEPS_MAX: usize = 2_000;
/// What a dry run does before it is cut.
pub const SIMULATED_DEEDS_MAX: u64 = 20_000;
/// Time of an HTTP step's request when nothing is said.
pub const HTTP_TIMEOUT_MS: u64 = 30_000;
/// Bytes of the answer to an HTTP step when nothing is said.
pub const HTTP_ANSWER_BYTES: u64 = 1 << 20;
/// Bytes of any answer to an HTTP step: it becomes a payload.
pub const HTTP_ANSWER_BYTES_MAX: u64 = PAYLOAD_BYTES_MAX;
/// Redirects that one HTTP step follows.
pub const HTTP_REDIRECTS_MAX: u32 = 5;
/// Bytes of a URL.
pub const HTTP_URL_BYTES_MAX: usize = 8 << 10;
/// Headers of one request, and of an answer that are kept.
pub const HTTP_HEADERS_MAX: usize = 64;
/// Bytes of all headers of one request, and of an answer that are kept.
pub const HTTP_HEADERS_BYTES_MAX: usize = 32 << 10;
/// Addresses of one name that are tried.
pub const HTTP_ADDRESSES_MAX: usize = 16;
/// Longest wait that `Retry-After` of an answer can ask for: a day.
pub const HTTP_RETRY_AFTER_MS_MAX: u64 = 24 * 3_600_000;
/// Characters of a share's name; what is longer is cut.
pub const FAIRNESS_KEY_CHARS_MAX: usize = 128;
/// Queues of tasks whose turns a daemon remembers.
pub const FAIR_QUEUES_MAX: usize = 1_000;
/// A remote worker must be heard of again within this time, unless its step says otherwise.
pub const VISIBILITY_MS: u64 = 30_000;
/// Tasks that one request of a worker claims.
pub const TASKS_PER_POLL_MAX: usize = 256;
/// Completions in one request.
pub const COMPLETIONS_MAX: usize = 256;
/// Bytes of all inputs in one answer to a worker; one task may have more.
pub const TASK_INPUTS_BYTES_MAX: u64 = 64 << 20;
/// The longest wait of a worker for a task.
pub const POLL_WAIT_MS_MAX: u64 = 60_000;
/// Characters of a worker's name and of a queue's.
pub const WORKER_CHARS_MAX: usize = 128;
/// Characters of what a worker says of its failure; what is longer is cut.
pub const TASK_MESSAGE_CHARS_MAX: usize = 4_096;
/// What the body of a completion may have beside its payload.
pub const TASK_BODY_SLACK_BYTES: u64 = 64 << 10;
/// Requests of HTTP steps that one daemon has under way.
pub const HTTP_STEPS_MAX: usize = 32;

/// Tenants of one state directory: all of them are in memory.
pub const TENANTS_MAX: usize = 1_000;
/// Bytes of a tenant's name.
pub const TENANT_NAME_BYTES_MAX: usize = 63;
/// API keys of one tenant, revoked ones too: all of them are in memory.
pub const KEYS_MAX: usize = 1_000;
/// Characters of a key's name.
pub const KEY_NAME_CHARS_MAX: usize = 100;
/// Sessions of the dashboard for each key; the oldest ends when there are more.
pub const SESSIONS_PER_KEY_MAX: usize = 32;
/// The last use of a key is written at most this often.
pub const KEY_USE_PERIOD_MS: u64 = 60_000;
/// Bytes of a token of an issuer; more is none.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the name of whom a token speaks for.
pub const SUBJECT_BYTES_MAX: usize = 200;
/// Keys of issuers in the configuration.
pub const ISSUERS_MAX: usize = 32;
/// Callers whose requests are counted at a time; those who have rested longest are forgotten.
pub const RATED_CALLERS_MAX: usize = 10_000;
/// Failed keys of one address in [`FAILED_KEYS_PERIOD_MS`]; after that it has to wait.
pub const FAILED_KEYS_MAX: usize = 10;
/// See [`FAILED_KEYS_MAX`].
pub const FAILED_KEYS_PERIOD_MS: u64 = 60_000;
/// Addresses whose failures are counted; beyond it those of the longest rest are forgotten.
pub const FAILED_ADDRESSES_MAX: usize = 10_000;
/// Characters of what an audit row says of one thing or version.
pub const AUDIT_TEXT_CHARS_MAX: usize = 512;
/// Characters of the name of an object of routing.
pub const ROUTING_NAME_CHARS_MAX: usize = 200;
/// Characters of a description, and of the reason of a kill-switch.
pub const ROUTING_TEXT_CHARS_MAX: usize = 4_096;
/// Keys of the metadata of an object of routing.
pub const METADATA_KEYS_MAX: usize = 64;
/// Characters of such a key.
pub const METADATA_KEY_CHARS_MAX: usize = 128;
/// Characters of its value.
pub const METADATA_VALUE_CHARS_MAX: usize = 1_024;
/// Attributes of a recipient, and values of one list or object among them.
pub const ATTRIBUTES_MAX: usize = 256;
/// Bytes of all attributes of a recipient as JSON.
pub const ATTRIBUTES_BYTES_MAX: usize = 64 << 10;
/// Levels of lists and objects in an attribute.
pub const ATTRIBUTE_DEPTH_MAX: usize = 8;
/// Tags of a recipient or of work, and characters of one.
pub const TAGS_MAX: usize = 64;
/// Recipient pools that one recipient is a member of.
pub const MEMBERSHIPS_MAX: usize = 64;
/// Recipient pools above one another.
pub const PARENTS_MAX: usize = 8;
/// Named pipelines of a recipient pool.
pub const PIPELINES_MAX: usize = 16;
/// Recipient pools that one is spread over.
pub const SHARDS_MAX: usize = 64;
/// Windows of a usual week, and of one day.
pub const WINDOWS_MAX: usize = 64;
/// Days with other windows.
pub const EXCEPTIONS_MAX: usize = 366;
/// How far the next opening of a schedule is looked for.
pub const OPENS_AT_DAYS_MAX: i32 = 400;
/// Recipient pools of a tenant.
pub const RECIPIENT_POOLS_MAX: usize = 10_000;
/// Open assignments of a recipient pool that are looked at for stale ones.
pub const STALE_LOOKED_AT_MAX: usize = 10_000;
/// Members of one recipient pool.
pub const MEMBERS_MAX: usize = 100_000;
/// Cases that one request tries a rule on.
pub const RULE_CASES_MAX: usize = 100;
/// How often a daemon looks at the files of its bundles.
pub const BUNDLE_LOOK_MS: u64 = 1_000;
/// How long after a failure a bundle is tried again, although no declared object has changed.
pub const BUNDLE_RETRY_MS: u64 = 15_000;
/// Differences of one bundle that are kept to be shown.
pub const BUNDLE_CHANGES_SHOWN_MAX: usize = 200;
/// Bytes of the document of a bundle.
pub const BUNDLE_BYTES_MAX: usize = 16 << 20;
/// Bytes of a request with such a document in a text: each line has an escape.
pub const BUNDLE_BODY_BYTES_MAX: u64 = 32 << 20;
/// Values of such a document.
pub const BUNDLE_NODES_MAX: usize = 1_000_000;
/// Values of it that stand there by aliases alone.
pub const BUNDLE_ALIASED_NODES_MAX: usize = 1_000;
/// Recipients of a tenant that a bundle can be about.
pub const BUNDLE_RECIPIENTS_MAX: usize = 100_000;
/// Tests of one bundle.
pub const BUNDLE_TESTS_MAX: usize = 1_000;
/// Rules of a tenant.
pub const RULES_MAX: usize = 10_000;
/// Traits of a tenant.
pub const TRAITS_MAX: usize = 1_000;
/// A longer word is no misspelt word of ours.
pub const HINT_BYTES_MAX: usize = 128;
/// Faults that one refusal names; it says how many more there are.
pub const PROBLEM_FAULTS_MAX: usize = 100;
/// Characters of a sentence, or of a place, in a refusal.
pub const PROBLEM_CHARS_MAX: usize = 2_000;
/// Faults of one piece of work that are looked for.
pub const WORK_FAULTS_MAX: usize = 100;
/// Characters of a name in the place of a fault.
pub const PLACE_NAME_CHARS_MAX: usize = 64;
/// Characters that are kept of what went wrong with a rule.
pub const RULE_ERROR_CHARS_MAX: usize = 512;
/// Pieces of work on which a rule is tried when it is written: the newest ones.
pub const RULE_LOOKS_BACK_MAX: usize = 10_000;
/// Fewer say nothing about a rule.
pub const RULE_LOOKS_BACK_MIN: usize = 10;
/// A rule is not tried for longer than this when it is written.
pub const RULE_LOOKS_BACK_MS: u64 = 300;
/// Claim queues of a tenant.
pub const CLAIM_QUEUES_MAX: usize = 1_000;
/// Steps that wait for the same work: one has routed it, others are duplicates.
pub const WORK_WAITERS_MAX: usize = 1_000;
/// Shadow campaigns of a tenant.
pub const CAMPAIGNS_MAX: usize = 1_000;
/// Shadow campaigns that run on one recipient pool at a time.
pub const CAMPAIGNS_PER_POOL_MAX: usize = 4;
/// Decisions that campaigns look at between two commits.
pub const SHADOWS_PER_CHANGE_MAX: usize = 64;
/// The same, by time: what is found until then is written first.
pub const SHADOWS_PER_CHANGE_MS: u64 = 200;
/// The most microseconds that an evaluation of a campaign may be allowed.
pub const CAMPAIGN_MICROS_MAX: u64 = 1_000_000;
/// Members that one page of a filtered list looks at before it ends early.
pub const ROUTING_SCAN_MAX: usize = 10_000;
/// Recipients that are remembered as tried for one unit of work; the oldest is asked again.
pub const ROUTING_TRIED_MAX: usize = 128;
/// Waiting items that one change tries, and timers that one change fires.
pub const ROUTING_ITEMS_PER_CHANGE_MAX: usize = 256;
/// Newest assignments of a recipient pool that a rate is counted over.
pub const FLOW_COUNTED_MAX: usize = 10_000;
/// Claims of one recipient that a budget is counted over.
pub const CLAIMS_COUNTED_MAX: usize = 10_000;
/// Characters of a word of routing that nobody bounds otherwise: kinds, sources, ids of others.
pub const ROUTING_WORD_CHARS_MAX: usize = 200;
/// Recipients that one request excludes.
pub const ROUTING_EXCLUDED_MAX: usize = 1_000;
/// Open offers that one request looks at.
pub const OFFERS_LOOKED_AT_MAX: usize = 1_000;
/// Decisions that one change retires.
pub const DECISIONS_RETIRED_MAX: usize = 64;
/// How long a decision is kept.
pub const DECISION_AGE_MS: u64 = 90 * 24 * 3_600_000;
/// A long wait for a timer of routing is looked at again after this time: the wall clock may have been set.
pub const ROUTING_LOOK_AGAIN_MS: u64 = 60_000;
/// Bytes of the result of a completed assignment.
pub const ASSIGNMENT_RESULT_BYTES_MAX: usize = 64 << 10;
/// Tries to deliver the alert of a breached SLA of routing.
pub const ALERT_TRIES_MAX: u32 = 8;
/// Candidates of decisions that one walk over a queue holds in memory before it writes.
pub const ROUTING_CANDIDATES_HELD_MAX: usize = 250_000;
