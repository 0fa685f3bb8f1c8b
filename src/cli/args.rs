//! The words of the command line. Those of one noun stand in the file of that noun.

#![expect(
    clippy::doc_markdown,
    reason = "these comments are the help texts, where backticks would be printed"
)]

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use super::caller::Caller;
use super::failure::Failure;
use super::{
    approvals, backup, bundle, check, completions, configure, dead_letters, doctor, init, jobs, keys, nodes,
    pools, recipients, restore, route, rules, runs, schedules, shadows, slots, status, torture, workflows,
};

const EXAMPLES: &str = "\
Examples:
  ductor serve                      run the daemon; it prints its address
  ductor check                      is the configuration good
  ductor status                     is all well, what runs, what comes next
  ductor job ls                     all jobs
  ductor job start backup --follow  start one and watch its output
  ductor run start hello-world -f   begin a run of a workflow, and watch it
  ductor run ls --where 'state:failed since:1h'
  ductor schedule why backup --at 02:30
  ductor slots ls                   who holds slots and who waits

`ductor COMMAND --help` says more.

Exit codes: 0 done, 1 negative outcome, 2 wrong usage, 3 not found,
4 not allowed, 5 refused by state, 6 try again later, 69 no daemon, 70 defect,
124 timed out, 130 interrupted.";

/// Clears units of work on one machine: scheduled jobs, slot pools, durable runs.
#[derive(Debug, Parser)]
#[command(
    name = "ductor",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    max_term_width = 110,
    after_help = EXAMPLES
)]
pub(super) struct Arguments {
    /// What every command takes.
    #[command(flatten)]
    pub(super) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct Global {
    /// Where the daemon is [env: DUCTOR_SERVER] [default: http://127.0.0.1:8470].
    #[arg(long, global = true, value_name = "URL")]
    server: Option<String>,
    /// File with the API key; the variable holds the key itself [env: DUCTOR_API_KEY].
    #[arg(long, global = true, value_name = "PATH")]
    key_file: Option<PathBuf>,
    /// Whose things [env: DUCTOR_TENANT] [default: that of the key].
    #[arg(long, global = true, value_name = "NAME")]
    tenant: Option<String>,
    /// Print the API's answer as JSON; errors too.
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Print data only: no titles, hints or remarks.
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    /// No colours (also: NO_COLOR=1).
    #[arg(long, global = true)]
    pub(super) no_color: bool,
    /// Times in UTC instead of this machine's zone.
    #[arg(long, global = true)]
    pub(super) utc: bool,
    /// Give up after this long (30s, 5m) with exit code 124.
    #[arg(long, global = true, value_name = "TIME", value_parser = super::times::read_length)]
    pub(super) timeout: Option<u64>,
}

impl Global {
    /// With this address and nothing else.
    #[cfg(test)]
    pub(super) fn of_server(server: &str) -> Global {
        let line = ["ductor", "--server", server, "version"];
        Arguments::parse_from(line).global
    }

    /// The address of the daemon, if one was given. Clap would print a variable's value in every usage line.
    pub(super) fn server_given(&self) -> Option<String> {
        let variable = || std::env::var("DUCTOR_SERVER").ok();
        self.server.clone().or_else(variable)
    }

    /// Who calls.
    pub(super) fn caller(&self) -> Result<Caller, Failure> {
        let variable = |name: &str| std::env::var(name).ok();
        let tenant = self.tenant.clone().or_else(|| variable("DUCTOR_TENANT"));
        Caller::new(self.key_file.as_deref(), variable("DUCTOR_API_KEY"), tenant)
    }

    /// The address of the daemon.
    pub(super) fn server(&self) -> String {
        self.server_given()
            .unwrap_or_else(|| "http://127.0.0.1:8470".to_owned())
    }
}

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the daemon.
    Serve(ServeArguments),
    /// Is the configuration good? Every fault with its place, or what it says.
    Check(check::CheckArguments),
    /// Is all well? What runs, what waits, what comes next.
    Status,
    /// One word for a container's health check.
    Health(status::HealthArguments),
    /// The version of this program and of the daemon.
    Version,
    /// Jobs: list, start, stop, pause.
    #[command(subcommand)]
    Job(jobs::JobCommand),
    /// Schedules: when jobs fire, and why one did not.
    #[command(subcommand)]
    Schedule(schedules::ScheduleCommand),
    /// Slot pools: who holds slots, who waits.
    #[command(subcommand)]
    Slots(slots::SlotsCommand),
    /// Runs: what happened, what is happening, and why.
    #[command(subcommand)]
    Run(runs::RunCommand),
    /// Workflows: drafts, versions, dry runs, pictures; `run start` begins one.
    #[command(subcommand)]
    Workflow(workflows::WorkflowCommand),
    /// What waits for a person, and the answers.
    #[command(subcommand)]
    Approval(approvals::ApprovalCommand),
    /// What was given up: steps that daemons died with, reports that nobody took.
    #[command(subcommand)]
    Dlq(dead_letters::DeadLetterCommand),
    /// API keys: who may call, and what they may do.
    #[command(subcommand)]
    Key(keys::KeyCommand),
    /// Tenants: who shares the daemon.
    #[command(subcommand)]
    Tenant(keys::TenantCommand),
    /// Who did what.
    #[command(subcommand)]
    Audit(keys::AuditCommand),
    /// Daemons of this state directory.
    #[command(subcommand)]
    Node(nodes::NodeCommand),
    /// Pools of recipients: who shares work, and how it is shared out.
    #[command(subcommand)]
    Pool(pools::PoolCommand),
    /// Recipients: who or what gets work.
    #[command(subcommand)]
    Recipient(recipients::RecipientCommand),
    /// Rules: where work goes, and who in a pool may have it.
    #[command(subcommand)]
    Rule(rules::RuleCommand),
    /// Bundles: all that is declared for routing as one document.
    #[command(subcommand)]
    Bundle(bundle::BundleCommand),
    /// Decisions: who gets work, and why each other one does not.
    #[command(subcommand)]
    Route(route::RouteCommand),
    /// Shadow campaigns: what another strategy would have decided.
    #[command(subcommand)]
    Shadow(shadows::ShadowCommand),
    /// Live routing as a whole: its numbers.
    #[command(subcommand)]
    Routing(route::RoutingCommand),
    /// The configuration that the daemon works with.
    #[command(subcommand)]
    Config(configure::ConfigCommand),
    /// Write a first configuration, or one from a crontab.
    Init(init::InitArguments),
    /// Look for trouble: disk, clock, locks, rights, port, store. Works without a daemon.
    Doctor(doctor::DoctorArguments),
    /// Copy the store to one file, while the daemon works or without one.
    Backup(backup::BackupArguments),
    /// Make a state directory of a backup, or check one.
    Restore(restore::RestoreArguments),
    /// The crash test on your own disk: daemons are killed, frozen and misled, and nothing may be lost.
    Torture(torture::TortureArguments),
    /// The script that completes commands and flags in a shell.
    Completions(completions::CompletionsArguments),
}

/// Where the configuration is and what is laid over it.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ConfigArguments {
    /// Configuration file, or a directory of them [env: DUCTOR_CONFIG].
    #[arg(long, value_name = "PATH")]
    pub(super) config: Option<PathBuf>,
    /// State directory [env: DUCTOR_STATE_DIR].
    #[arg(long, value_name = "DIR")]
    pub(super) state_dir: Option<String>,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  ductor serve
  ductor serve --config jobs.d --listen 127.0.0.1:9000

SIGTERM or Ctrl-C: no new work, running commands are waited for. A second one
ends them; they run again at the next start.";

/// Arguments of `serve`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(super) struct ServeArguments {
    /// Configuration and state directory.
    #[command(flatten)]
    pub(super) config: ConfigArguments,
    /// Address to listen on [env: DUCTOR_LISTEN].
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
    /// Name of this daemon [env: DUCTOR_NODE].
    #[arg(long, value_name = "NAME")]
    pub(super) node: Option<String>,
    /// Level, or filters like `info,ductor::store=debug` [env: DUCTOR_LOG].
    #[arg(long, value_name = "LEVEL")]
    pub(super) log: Option<String>,
    /// pretty or json [env: DUCTOR_LOG_FORMAT].
    #[arg(long, value_name = "FORMAT")]
    pub(super) log_format: Option<String>,
    /// Read the files of the dashboard from this folder, to work on them; else they are in the binary.
    #[arg(long, value_name = "DIR")]
    pub(super) web_dir: Option<PathBuf>,
}
