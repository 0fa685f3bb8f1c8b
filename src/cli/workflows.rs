//! `ductor workflow …`: definitions of the API, from a file to a published version.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;

use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::session::Session;
use super::{fields, graph, workflow_diff, workflow_dry, workflow_files, workflow_run, workflow_view};

/// What can be done with workflows.
#[derive(Debug, Subcommand)]
pub(super) enum WorkflowCommand {
    /// All workflows with their newest version.
    Ls,
    /// One workflow: its steps, and what follows what.
    #[command(after_help = "\
Examples:
  ductor workflow show hello-world
  ductor workflow show hello-world --version 2
  ductor workflow show hello-world --document > hello.json")]
    Show(ShowArguments),
    /// The steps of a workflow as a picture.
    #[command(after_help = graph::WORKFLOW_EXAMPLES)]
    Graph(graph::GraphArguments),
    /// Is a definition good? Everything that is wrong, with its place.
    #[command(after_help = "\
The file is JSON or YAML; `-` is standard input. Nothing is kept. The slot
pools and workflows that it names are those of the daemon.

Exit codes: 0 good, 1 something is wrong.")]
    Validate(FileArguments),
    /// How would a run go? Computes what it can, assumes the rest, waits for nothing.
    #[command(
        name = "dry-run",
        after_help = "\
Steps that a worker, a person or another workflow would do give null, or what
is said with --assume. Nothing is kept, executed or waited for.

Examples:
  ductor workflow dry-run hello.yaml --input input.json
  ductor workflow dry-run hello.yaml --assume fetch='{\"rows\": 3}' --fail mail"
    )]
    DryRun(workflow_dry::DryRunArguments),
    /// Save a definition as the draft of its workflow.
    #[command(after_help = "\
The file is JSON or YAML; `-` is standard input. A draft may be wrong: what is
wrong is told, and refused when it is published.

Example:
  ductor workflow put hello.yaml && ductor workflow publish hello-world")]
    Put(PutArguments),
    /// Freeze the draft into the next version.
    #[command(after_help = "\
A version never changes. The same content again is the same version. Runs keep
the version that they have begun with.")]
    Publish(PublishArguments),
    /// Begin a run, as `run start` does.
    #[command(after_help = workflow_run::EXAMPLES)]
    Run(workflow_run::RunArguments),
    /// The versions of a workflow, newest first.
    Versions(SlugArguments),
    /// What differs between two versions.
    #[command(after_help = "\
Defaults that are spelled out are no difference.

Examples:
  ductor workflow diff hello-world 3 4
  ductor workflow diff hello-world 4 draft

Exit codes: 0 the same, 1 they differ.")]
    Diff(DiffArguments),
    /// End the use of a version: no new runs of it begin.
    Deprecate(DeprecateArguments),
}

/// A workflow by its name.
#[derive(Debug, Clone, Args)]
pub(super) struct SlugArguments {
    /// The workflow's name (`family_slug`).
    #[arg(value_name = "SLUG")]
    pub(super) slug: String,
}

/// Arguments of `workflow show`.
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArguments {
    /// The workflow's name (`family_slug`).
    #[arg(value_name = "SLUG")]
    pub(super) slug: String,
    /// This version; without it the draft if there is one, else the newest.
    #[arg(long, value_name = "N")]
    pub(super) version: Option<u32>,
    /// Print the document as it was posted, and nothing else.
    #[arg(long)]
    pub(super) document: bool,
}

/// A file.
#[derive(Debug, Clone, Args)]
pub(super) struct FileArguments {
    /// The definition, in JSON or YAML.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
}

/// Arguments of `workflow put`.
#[derive(Debug, Clone, Args)]
pub(super) struct PutArguments {
    /// The definition, in JSON or YAML.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Only if the workflow still has this record version.
    #[arg(long, value_name = "N")]
    pub(super) expected_version: Option<u64>,
}

/// Arguments of `workflow publish`.
#[derive(Debug, Clone, Args)]
pub(super) struct PublishArguments {
    /// The workflow's name (`family_slug`).
    #[arg(value_name = "SLUG")]
    slug: String,
    /// Only if the workflow still has this record version.
    #[arg(long, value_name = "N")]
    expected_version: Option<u64>,
}

/// Arguments of `workflow diff`.
#[derive(Debug, Clone, Args)]
pub(super) struct DiffArguments {
    /// The workflow's name (`family_slug`).
    #[arg(value_name = "SLUG")]
    pub(super) slug: String,
    /// A version, or `draft`.
    #[arg(value_name = "FROM")]
    pub(super) from: String,
    /// A version, or `draft`.
    #[arg(value_name = "TO")]
    pub(super) to: String,
}

/// Arguments of `workflow deprecate`.
#[derive(Debug, Clone, Args)]
pub(super) struct DeprecateArguments {
    /// The workflow's name (`family_slug`).
    #[arg(value_name = "SLUG")]
    slug: String,
    /// The version.
    #[arg(value_name = "VERSION")]
    version: u32,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: WorkflowCommand) -> Result<Exit, Failure> {
    match command {
        WorkflowCommand::Ls => workflow_view::list(session).await,
        WorkflowCommand::Show(arguments) => workflow_view::show(session, &arguments).await,
        WorkflowCommand::Graph(arguments) => graph::of_workflow(session, &arguments).await,
        WorkflowCommand::Validate(arguments) => workflow_files::validate(session, &arguments).await,
        WorkflowCommand::DryRun(arguments) => workflow_dry::dry_run(session, &arguments).await,
        WorkflowCommand::Put(arguments) => workflow_files::put(session, &arguments).await,
        WorkflowCommand::Publish(arguments) => publish(session, &arguments).await,
        WorkflowCommand::Run(arguments) => workflow_run::run(session, &arguments).await,
        WorkflowCommand::Versions(arguments) => workflow_view::versions(session, &arguments.slug).await,
        WorkflowCommand::Diff(arguments) => workflow_diff::diff(session, &arguments).await,
        WorkflowCommand::Deprecate(arguments) => deprecate(session, &arguments).await,
    }
}

async fn publish(session: &Session, arguments: &PublishArguments) -> Result<Exit, Failure> {
    let slug = &arguments.slug;
    let last = format!("{slug}:publish");
    let body = arguments
        .expected_version
        .map(|version| json!({"expected_version": version}));
    let answer = session
        .client
        .post(&["api", "workflows", &last], body.as_ref(), None)
        .await?;
    let data = fields::data(&answer.value);
    let version = fields::number(data, &["version"]).unwrap_or(0);
    let sentence = if fields::truth(data, &["already"]) {
        format!("workflow {slug}: version {version} has this content already")
    } else {
        format!("workflow {slug}: version {version} is published")
    };
    told(session, &answer, &sentence)
}

async fn deprecate(session: &Session, arguments: &DeprecateArguments) -> Result<Exit, Failure> {
    let (slug, version) = (&arguments.slug, arguments.version);
    let last = format!("{slug}:deprecate");
    let body = json!({"version": version});
    let answer = session
        .client
        .post(&["api", "workflows", &last], Some(&body), None)
        .await?;
    let current = fields::number(fields::data(&answer.value), &["current_version"]);
    let then = match current {
        Some(current) => format!("new runs begin with version {current}"),
        None => "no new runs begin until another is published".to_owned(),
    };
    told(
        session,
        &answer,
        &format!("workflow {slug}: version {version} is deprecated; {then}"),
    )
}

/// One sentence, or the API's answer.
pub(super) fn told(session: &Session, answer: &Body, sentence: &str) -> Result<Exit, Failure> {
    if session.show.json {
        session.show.document(&answer.text)?;
    } else {
        session.show.data(&format!("{sentence}\n"))?;
    }
    Ok(Exit::Done)
}
