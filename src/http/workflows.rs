//! `/api/workflows`: definitions of the API, from a draft to a published version.
//!
//! The body of a draft is the document itself, kept as it was posted. Nothing bad is refused as a draft but what has no
//! name to be found under; what is wrong with it is told with each answer, and refused when it is to be published.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::app::App;
use super::dags::{self, Dag};
use super::error::{FieldFault, Problem};
use super::once::{self, Harmless, Once};
use super::runs::Data;
use super::version;
use super::workflow_list::WorkflowRun;
use crate::domain::workflow::graph::canonical;
use crate::domain::workflow::graph::finding::{Finding, shown};
use crate::domain::workflow::graph::read::slug_of;
use crate::engine::changes::workflows::{Posted, Published, Saved};
use crate::engine::definitions::{self, Publishing, Trouble};
use crate::store::rows::WorkflowRecord;
use crate::store::tables::{WORKFLOW_DRAFTS, WORKFLOW_VERSIONS, WORKFLOWS};
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::payload::JsonText;

pub(super) const TENANT: TenantId = TenantId::DEFAULT;

/// Where a definition comes from, and so where it can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// It was posted.
    Api,
    /// It is a dag of the configuration: its file is changed and loaded again.
    Configuration,
}

/// A definition on the wire, without its document.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct WorkflowView {
    pub(super) family_slug: String,
    pub(super) title: String,
    /// `configuration`: a dag of the configuration, which nothing here can change.
    pub(super) source: Source,
    /// The newest version; null before the first is published.
    pub(super) newest_version: Option<u32>,
    /// The version of new runs that name none: the newest that is not deprecated.
    pub(super) current_version: Option<u32>,
    /// Something was posted that is not published.
    pub(super) draft: bool,
    /// Of a dag: the SHA-256 of all that the configuration says of it. Versions of the API have theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    /// Of a dag: when it begins by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) schedule: Option<String>,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) record_version: u64,
    /// The newest runs, newest first, at most 20; only if they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recent: Option<Vec<WorkflowRun>>,
}

impl WorkflowView {
    pub(super) fn of(slug: &JobName, record: &WorkflowRecord) -> WorkflowView {
        let number = |version: u32| (version > 0).then_some(version);
        WorkflowView {
            family_slug: slug.to_string(),
            title: record.title.clone(),
            source: Source::Api,
            newest_version: number(record.newest),
            current_version: number(record.current),
            draft: record.draft.is_some(),
            sha256: None,
            schedule: None,
            created_at: record.created_at.to_string(),
            updated_at: record.updated_at.to_string(),
            record_version: record.record_version,
            recent: None,
        }
    }
}

/// The same with its document.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WorkflowDetail {
    #[serde(flatten)]
    workflow: WorkflowView,
    /// The draft if there is one, else the newest version, as it was posted.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    document: Box<RawValue>,
}

/// One thing that is wrong with a document.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FindingView {
    /// A JSON pointer (RFC 6901) into the document.
    pointer: String,
    /// Stable.
    code: &'static str,
    message: String,
}

impl FindingView {
    fn all(findings: Vec<Finding>) -> Vec<FindingView> {
        let view = |finding: Finding| FindingView {
            pointer: finding.pointer,
            code: finding.code,
            message: finding.message,
        };
        findings.into_iter().map(view).collect()
    }
}

/// What a document is worth.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Validity {
    /// It may be published.
    valid: bool,
    /// All that is wrong.
    findings: Vec<FindingView>,
}

/// A draft that was saved, and what is wrong with it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SavedWorkflow {
    #[serde(flatten)]
    workflow: WorkflowView,
    #[serde(flatten)]
    validity: Validity,
}

/// A version that was published, now or before.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PublishedVersion {
    family_slug: String,
    version: u32,
    /// Of the document's canonical text: keys in order, no white space.
    sha256: String,
    /// The same content was published before, so nothing changed.
    already: bool,
    record_version: u64,
}

/// A JSON text inside an answer, letter by letter.
pub(super) fn raw(text: &JsonText) -> Box<RawValue> {
    RawValue::from_string(text.as_str().to_owned()).expect("checked when it was stored")
}

pub(super) fn not_found(slug: &str) -> Problem {
    Problem::not_found(format!("workflow '{}' not found", shown(slug)))
}

pub(super) fn named(text: &str) -> Result<JobName, Problem> {
    JobName::new(text).map_err(|_| not_found(text))
}

/// One definition with its document.
pub(super) async fn show(
    State(app): State<App>,
    Path(slug): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = named(&slug)?;
    let dag = dags::of(&app.engine.book(), &name);
    let found = app.engine.read(move |tx| match detail(tx, &name)? {
        None => dag.as_ref().map_or(Ok(None), |dag| detail_of_dag(tx, dag)),
        found => Ok(found),
    });
    let (number, data) = found.await?.ok_or_else(|| not_found(&slug))?;
    Ok(version::with_version(&headers, number, Data { data }))
}

fn detail(rows: &mut impl Rows, name: &JobName) -> Result<Option<(u64, WorkflowDetail)>, StoreError> {
    let Some(record) = rows.get(&WORKFLOWS, &(TENANT, name.clone()))? else {
        return Ok(None);
    };
    let document = document_of(rows, name, &record)?;
    Ok(document.map(|document| {
        let workflow = WorkflowView::of(name, &record);
        let document = raw(&document);
        (record.record_version, WorkflowDetail { workflow, document })
    }))
}

fn detail_of_dag(rows: &mut impl Rows, dag: &Dag) -> Result<Option<(u64, WorkflowDetail)>, StoreError> {
    let workflow = dag.view(rows)?;
    let document = dag.document();
    Ok(document.map(|document| (u64::from(dag.version()), WorkflowDetail { workflow, document })))
}

/// The draft, else the newest version.
pub(super) fn document_of(
    rows: &mut impl Rows,
    name: &JobName,
    record: &WorkflowRecord,
) -> Result<Option<JsonText>, StoreError> {
    if record.draft.is_some() {
        let draft = rows.get(&WORKFLOW_DRAFTS, &(TENANT, name.clone()))?;
        return Ok(draft.map(|draft| draft.json));
    }
    let newest = rows.get(&WORKFLOW_VERSIONS, &(TENANT, name.clone(), record.newest))?;
    Ok(newest.map(|newest| newest.posted))
}

/// A posted document: its text, and what it says.
struct Document {
    text: JsonText,
    value: Arc<Value>,
}

impl Document {
    fn read(body: &[u8]) -> Result<Document, Problem> {
        let text = std::str::from_utf8(body).map_err(|_| Problem::unreadable("the body is not UTF-8"))?;
        let not_json =
            |error: serde_json::Error| Problem::unreadable(format!("the body is not JSON: {error}"));
        Ok(Document {
            value: Arc::new(serde_json::from_str(text).map_err(not_json)?),
            text: JsonText::parse(text.trim()).map_err(not_json)?,
        })
    }

    /// What is saved of it, if it has a name.
    fn posted(&self, slug: Option<&str>, by: String) -> Result<Posted, Problem> {
        let refuse = |pointer: &str, code: &'static str, detail: String| {
            let pointer = pointer.to_owned();
            Problem::invalid(vec![FieldFault {
                pointer,
                code,
                detail,
            }])
        };
        if !self.value.is_object() {
            return Err(refuse(
                "",
                "workflow.type",
                "a definition is an object".to_owned(),
            ));
        }
        if self.text.as_str().len() > limits::DEFINITION_BYTES_MAX {
            let detail = format!(
                "the definition has {} bytes, and {} are allowed",
                self.text.as_str().len(),
                limits::DEFINITION_BYTES_MAX
            );
            return Err(refuse("", "workflow.limit", detail));
        }
        let Some(found) = slug_of(&self.value) else {
            let detail = "must be a text that matches [a-z0-9][a-z0-9-]{0,62}".to_owned();
            return Err(refuse("/family_slug", "workflow.bad_slug", detail));
        };
        if let Some(slug) = slug.filter(|slug| *slug != found) {
            let detail = format!("is `{found}`, and the path says `{}`", shown(slug));
            return Err(refuse("/family_slug", "workflow.other_slug", detail));
        }
        let title = self
            .value
            .get("title")
            .and_then(Value::as_str)
            .filter(|title| !title.is_empty());
        Ok(Posted {
            slug: named(found)?,
            title: title
                .unwrap_or(found)
                .chars()
                .take(limits::TITLE_CHARS_MAX)
                .collect(),
            json: self.text.clone(),
            sha256: canonical::sha256(&self.value),
            by,
        })
    }
}

/// Saves a first draft.
pub(super) async fn create(State(app): State<App>, once: Once, body: Bytes) -> Result<Response, Problem> {
    let document = Document::read(&body)?;
    let posted = document.posted(None, once.principal())?;
    save(&app, document, posted, true, once).await
}

/// Saves a draft, in place of the one before.
pub(super) async fn put(
    State(app): State<App>,
    Path(slug): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let document = Document::read(&body)?;
    let posted = document.posted(Some(&slug), once.principal())?;
    save(&app, document, posted, false, once).await
}

async fn save(
    app: &App,
    document: Document,
    posted: Posted,
    create: bool,
    once: Once,
) -> Result<Response, Problem> {
    let judged = definitions::judge_posted(&app.engine, document.value).await?;
    let validity = Arc::new(Validity {
        valid: judged.findings.is_empty(),
        findings: FindingView::all(judged.findings),
    });
    let (name, shown, guarded) = (posted.slug.clone(), posted.slug.clone(), posted.slug.clone());
    let asked = once.ask_at(
        move |tx| {
            let found = tx.get(&WORKFLOWS, &(TENANT, guarded.clone()))?;
            // What is not there is at no version: a guard cannot be met.
            Ok(Some(found.map_or_else(
                || "0".to_owned(),
                |record| record.record_version.to_string(),
            )))
        },
        move |_, saved: &Saved| {
            let (Saved::Created(record) | Saved::Updated(record)) = saved else {
                return Ok(None);
            };
            let view = SavedView {
                workflow: WorkflowView::of(&shown, record),
                validity: &validity,
            };
            let body = Data { data: view };
            Ok(Some(if matches!(saved, Saved::Created(_)) {
                let location = format!("/api/workflows/{shown}");
                once::accepted(StatusCode::CREATED, Some(location), &body)
            } else {
                once::ok(&body)
            }))
        },
    );
    let told = definitions::save(&app.engine, posted, create, asked).await?;
    once::respond(told, |saved| match saved {
        Saved::Exists => {
            let detail = format!("workflow '{name}' exists; change it with PUT /api/workflows/{name}");
            Problem::forbidden_by_state(detail).code("ALREADY_EXISTS")
        }
        Saved::OfConfiguration => of_configuration(&name),
        Saved::Full => {
            let detail = format!(
                "there are {} workflows, and more are not kept",
                limits::FAMILIES_MAX
            );
            Problem::forbidden_by_state(detail).code("RESOURCE_EXHAUSTED")
        }
        Saved::Created(_) | Saved::Updated(_) => unreachable!("what is saved has an answer"),
    })
}

/// [`SavedWorkflow`] as it is written.
#[derive(Serialize)]
struct SavedView<'v> {
    #[serde(flatten)]
    workflow: WorkflowView,
    #[serde(flatten)]
    validity: &'v Validity,
}

fn of_configuration(name: &JobName) -> Problem {
    Problem::forbidden_by_state(format!(
        "the configuration has a job of the name '{name}'; give the workflow another family_slug"
    ))
}

/// Says what a document would be worth. Nothing is kept.
pub(super) async fn validate_posted(State(app): State<App>, body: Bytes) -> Result<Response, Problem> {
    let document = Document::read(&body)?;
    say_validity(&app, document.value).await
}

/// The same of a stored draft, or of a document that would be the next one.
pub(super) async fn validate(
    State(app): State<App>,
    Path(slug): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let name = named(&slug)?;
    dags::refuse_change(&app, &name)?;
    let found = app.engine.read(move |tx| detail(tx, &name)).await?;
    let (_, stored) = found.ok_or_else(|| not_found(&slug))?;
    let document = if body.is_empty() {
        Document::read(stored.document.get().as_bytes())?
    } else {
        Document::read(&body)?
    };
    say_validity(&app, document.value).await
}

async fn say_validity(app: &App, document: Arc<Value>) -> Result<Response, Problem> {
    let judged = definitions::judge_posted(&app.engine, document).await?;
    let data = Validity {
        valid: judged.findings.is_empty(),
        findings: FindingView::all(judged.findings),
    };
    Ok((Extension(Harmless), Json(Data { data })).into_response())
}

/// Freezes the draft into the next version.
pub(super) async fn publish(
    State(app): State<App>,
    Path(slug): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let once = once.expecting(&body)?;
    let name = named(&slug)?;
    dags::refuse_change(&app, &name)?;
    let ask = || {
        let (guarded, shown) = (name.clone(), name.clone());
        once.clone().ask_at(
            move |tx| {
                let found = tx.get(&WORKFLOWS, &(TENANT, guarded.clone()))?;
                Ok(found.map(|record| record.record_version.to_string()))
            },
            move |_, published: &Published| {
                let Published::Version {
                    version,
                    sha256,
                    already,
                    record,
                } = published
                else {
                    return Ok(None);
                };
                let data = PublishedVersion {
                    family_slug: shown.to_string(),
                    version: *version,
                    sha256: sha256.clone(),
                    already: *already,
                    record_version: record.record_version,
                };
                Ok(Some(once::ok(&Data { data })))
            },
        )
    };
    let publishing = definitions::publish(&app.engine, &name, &once.principal(), ask).await;
    match publishing {
        Err(Trouble::Read(error)) => Err(error.into()),
        Err(Trouble::Change(error)) => Err(error.into()),
        Ok(Publishing::Refused(findings)) => Err(unpublishable(findings)),
        Ok(Publishing::Told(told)) => once::respond(told, |published| match published {
            Published::Missing => not_found(&slug),
            Published::OfConfiguration => of_configuration(&name),
            Published::OtherDraft => {
                let detail = format!("the draft of workflow '{name}' changes again and again; try again");
                Problem::forbidden_by_state(detail).code("ABORTED")
            }
            Published::Full => {
                let detail = format!(
                    "workflow '{name}' has {} versions, and more are not kept",
                    limits::VERSIONS_MAX
                );
                Problem::forbidden_by_state(detail).code("RESOURCE_EXHAUSTED")
            }
            Published::Version { .. } => unreachable!("a version has an answer"),
        }),
    }
}

fn unpublishable(findings: Vec<Finding>) -> Problem {
    let faults = findings.into_iter().map(|finding| FieldFault {
        pointer: finding.pointer,
        code: finding.code,
        detail: finding.message,
    });
    let faults: Vec<FieldFault> = faults.collect();
    let things = if faults.len() == 1 {
        "thing is"
    } else {
        "things are"
    };
    let detail = format!(
        "the draft cannot be published: {} {things} wrong with it",
        faults.len()
    );
    Problem::invalid(faults).saying(detail)
}
