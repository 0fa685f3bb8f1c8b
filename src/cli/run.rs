//! From words to a command, and from its end to an exit code.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use super::args::{Arguments, Command, Global};
use super::client::Client;
use super::exit::Exit;
use super::failure::Failure;
use super::session::Session;
use super::show::Show;
use super::times;
use super::{
    approvals, backup, bundle, check, completions, configure, dead_letters, doctor, foreground, init, jobs,
    keys, nodes, pools, recipients, restore, route, rules, runs, schedules, serve, shadows, slots, status,
    torture, workflows,
};

/// Runs the command line of this process.
pub fn run() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Done
            };
            // Help goes to stdout, a usage error to stderr; a closed pipe is no reason to fail.
            error.print().ok();
            return code.into();
        }
    };
    let global = arguments.global;
    let exit = match arguments.command {
        Command::Serve(arguments) => serve::serve(&arguments),
        Command::Check(arguments) => {
            let show = Show::new(&global);
            check::check(&arguments, &show).unwrap_or_else(|failure| {
                show.failure(&failure);
                failure.exit()
            })
        }
        Command::Doctor(arguments) => doctor::doctor(&arguments, &global, &Show::new(&global)),
        Command::Job(jobs::JobCommand::Run(arguments)) => with_runtime(&global, |runtime, show| {
            runtime.block_on(foreground::run(&arguments, global.timeout, show))
        }),
        Command::Backup(arguments) => {
            ended(&global, backup::backup(&arguments, &global, &Show::new(&global)))
        }
        Command::Restore(arguments) => ended(&global, restore::restore(&arguments, &Show::new(&global))),
        Command::Init(arguments) => ended(&global, init::init(&arguments, &Show::new(&global))),
        Command::Torture(arguments) => with_runtime(&global, |runtime, show| {
            runtime.block_on(torture::torture(&arguments, show))
        }),
        Command::Completions(arguments) => ended(&global, completions::completions(&arguments)),
        Command::Schedule(command) if !command.needs_a_daemon() => ended(
            &global,
            schedules::without_a_daemon(&Show::new(&global), &command),
        ),
        command @ (Command::Status
        | Command::Health(_)
        | Command::Version
        | Command::Job(_)
        | Command::Schedule(_)
        | Command::Slots(_)
        | Command::Run(_)
        | Command::Workflow(_)
        | Command::Approval(_)
        | Command::Dlq(_)
        | Command::Key(_)
        | Command::Tenant(_)
        | Command::Audit(_)
        | Command::Node(_)
        | Command::Pool(_)
        | Command::Recipient(_)
        | Command::Rule(_)
        | Command::Bundle(_)
        | Command::Route(_)
        | Command::Shadow(_)
        | Command::Routing(_)
        | Command::Config(_)) => with_runtime(&global, |runtime, show| {
            let client = Client::new(&global.server(), &global.caller()?)?;
            let session = Session::new(client, show.clone());
            runtime.block_on(bounded(&session, command, global.timeout))
        }),
    };
    exit.into()
}

fn with_runtime(global: &Global, work: impl FnOnce(&Runtime, &Show) -> Result<Exit, Failure>) -> Exit {
    let show = Show::new(global);
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            show.failure(&Failure::Negative(format!("the runtime cannot start: {error}")));
            return Exit::Negative;
        }
    };
    let result = work(&runtime, &show);
    runtime.shutdown_background();
    ended(global, result)
}

/// Tells a failure; the exit code.
fn ended(global: &Global, result: Result<Exit, Failure>) -> Exit {
    result.unwrap_or_else(|failure| {
        Show::new(global).failure(&failure);
        failure.exit()
    })
}

/// The command, until it ends, the person leaves, or its time is over.
async fn bounded(session: &Session, command: Command, timeout_ms: Option<u64>) -> Result<Exit, Failure> {
    let over = async {
        match timeout_ms {
            Some(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = Box::pin(perform(session, command)) => result,
        () = over => {
            session.leave();
            let time = times::length(timeout_ms.unwrap_or(0));
            Err(Failure::TimedOut(format!("not done within {time}")))
        }
        _ = tokio::signal::ctrl_c() => {
            session.leave();
            Ok(Exit::Interrupted)
        }
    }
}

/// A command that talks to the daemon.
pub(super) async fn perform(session: &Session, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Status => status::status(session).await,
        Command::Health(arguments) => status::health(session, &arguments).await,
        Command::Version => status::version(session).await,
        Command::Job(command) => jobs::perform(session, command).await,
        Command::Schedule(command) => schedules::perform(session, command).await,
        Command::Slots(command) => slots::perform(session, command).await,
        Command::Run(command) => runs::perform(session, command).await,
        Command::Workflow(command) => workflows::perform(session, command).await,
        Command::Approval(command) => approvals::perform(session, command).await,
        Command::Dlq(command) => dead_letters::perform(session, command).await,
        Command::Key(command) => keys::perform(session, command).await,
        Command::Tenant(command) => keys::tenants(session, command).await,
        Command::Audit(command) => keys::audit(session, command).await,
        Command::Node(command) => nodes::nodes(session, &command).await,
        Command::Pool(command) => pools::perform(session, command).await,
        Command::Recipient(command) => recipients::perform(session, command).await,
        Command::Rule(command) => rules::perform(session, command).await,
        Command::Bundle(command) => bundle::perform(session, command).await,
        Command::Route(command) => route::perform(session, &command).await,
        Command::Shadow(command) => shadows::perform(session, command).await,
        Command::Routing(command) => route::routing(session, &command).await,
        Command::Config(command) => configure::perform(session, &command).await,
        Command::Serve(_)
        | Command::Check(_)
        | Command::Init(_)
        | Command::Doctor(_)
        | Command::Backup(_)
        | Command::Restore(_)
        | Command::Torture(_)
        | Command::Completions(_) => Err(Failure::Usage("this command needs no daemon".to_owned())),
    }
}
