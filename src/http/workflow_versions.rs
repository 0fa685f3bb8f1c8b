//! `/api/workflows/{family_slug}/versions`: frozen versions, what differs between two, and the end of one's use.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::app::App;
use super::dags::{self, DagVersion};
use super::error::Problem;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::Data;
use super::workflows::{TENANT, WorkflowView, named, not_found, raw};
use super::{input, version};
use crate::domain::workflow::graph::diff::{Diff, diff};
use crate::domain::workflow::graph::read::read;
use crate::engine::changes::workflows::Deprecated;
use crate::engine::definitions;
use crate::store::rows::WorkflowVersion;
use crate::store::tables::{WORKFLOW_DRAFTS, WORKFLOW_VERSIONS, WORKFLOWS};
use crate::store::{Rows, StoreError};
use crate::words::names::JobName;

/// A frozen version on the wire, without its document.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = WorkflowVersionView)]
pub(super) struct VersionView {
    version: u32,
    /// Of the document's canonical text: keys in order, no white space. Of a dag: of all that the configuration says of it.
    sha256: String,
    published_at: String,
    published_by: String,
    /// Since when no new runs of it begin; null while they do.
    deprecated_at: Option<String>,
    deprecated_by: Option<String>,
}

impl VersionView {
    fn of(version: u32, row: &WorkflowVersion) -> VersionView {
        let deprecated = row.deprecated.as_ref();
        VersionView {
            version,
            sha256: row.sha256.clone(),
            published_at: row.published_at.to_string(),
            published_by: row.by.clone(),
            deprecated_at: deprecated.map(|since| since.at.to_string()),
            deprecated_by: deprecated.map(|since| since.by.clone()),
        }
    }

    fn of_dag(version: &DagVersion) -> VersionView {
        VersionView {
            version: version.number,
            sha256: version.sha256.clone(),
            published_at: version.published_at.to_string(),
            published_by: "the configuration".to_owned(),
            deprecated_at: None,
            deprecated_by: None,
        }
    }
}

/// The same with its document.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WorkflowVersionDetail)]
pub(super) struct VersionDetail {
    #[serde(flatten)]
    version: VersionView,
    /// As it was posted.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    document: Box<RawValue>,
}

/// Versions, newest first.
pub(super) async fn list(
    State(app): State<App>,
    Path(slug): Path<String>,
    uri: Uri,
) -> Result<Json<Page<VersionView>>, Problem> {
    let name = named(&slug)?;
    let pairs = paging::query(&uri, &[])?;
    let paging = Paging::of(&pairs, "workflow versions", &[("workflow", slug.clone())], false)?;
    let is_dag = dags::of(&app.engine.book(), &name).is_some();
    let page = app.engine.read(move |tx| match page(tx, &name, &paging)? {
        None if is_dag => page_of_dag(tx, &name, &paging).map(Some),
        page => Ok(page),
    });
    page.await?.map(Json).ok_or_else(|| not_found(&slug))
}

fn page(
    rows: &mut impl Rows,
    name: &JobName,
    paging: &Paging,
) -> Result<Option<Page<VersionView>>, StoreError> {
    let prefix = (TENANT, name.clone());
    if !rows.has(&WORKFLOWS, &prefix)? {
        return Ok(None);
    }
    let place = paging.after.as_deref().and_then(|bytes| bytes.try_into().ok());
    let mut place = place.map(|bytes| (TENANT, name.clone(), u32::from_be_bytes(bytes)));
    let mut views = Vec::new();
    // One at a time: each has a document of up to half a megabyte with it.
    while views.len() <= paging.size {
        let scan = if paging.ascending {
            Rows::scan
        } else {
            Rows::scan_back
        };
        let Some((key, row)) = scan(rows, &WORKFLOW_VERSIONS, &prefix, place.as_ref(), 1)?.pop() else {
            break;
        };
        views.push(VersionView::of(key.2, &row));
        place = Some(key);
    }
    let more = views.len() > paging.size;
    views.truncate(paging.size);
    let last = views
        .last()
        .filter(|_| more)
        .map(|view| view.version.to_be_bytes());
    Ok(Some(paging.page(views, last.as_ref().map(<[u8; 4]>::as_slice))))
}

fn page_of_dag(
    rows: &mut impl Rows,
    name: &JobName,
    paging: &Paging,
) -> Result<Page<VersionView>, StoreError> {
    let place = paging.after.as_deref().and_then(|bytes| bytes.try_into().ok());
    let found = dags::versions(rows, name, paging, place.map(u32::from_be_bytes))?;
    let views: Vec<VersionView> = found.iter().take(paging.size).map(VersionView::of_dag).collect();
    let last = views.last().filter(|_| found.len() > paging.size);
    let last = last.map(|view| view.version.to_be_bytes());
    Ok(paging.page(views, last.as_ref().map(<[u8; 4]>::as_slice)))
}

/// One version with its document.
pub(super) async fn show(
    State(app): State<App>,
    Path((slug, number)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = named(&slug)?;
    let missing = || Problem::not_found(format!("workflow '{name}' has no version {number}"));
    let number: u32 = number.parse().map_err(|_| missing())?;
    let key = (TENANT, name.clone(), number);
    let is_dag = dags::of(&app.engine.book(), &name).is_some();
    let of_dag = name.clone();
    let read = app
        .engine
        .read(move |tx| match tx.get(&WORKFLOW_VERSIONS, &key)? {
            None if is_dag => Ok((None, dags::version(tx, &of_dag, number)?)),
            row => Ok((row, None)),
        });
    let (data, deprecated) = match read.await? {
        (Some(row), _) => {
            let version = VersionView::of(number, &row);
            let document = raw(&row.posted);
            (VersionDetail { version, document }, row.deprecated.is_some())
        }
        (None, Some(found)) => {
            let version = VersionView::of_dag(&found);
            let document = to_raw_value(&found.document).map_err(|_| missing())?;
            (VersionDetail { version, document }, false)
        }
        (None, None) => return Err(missing()),
    };
    // Only its deprecation can change, once.
    Ok(version::with_version(
        &headers,
        1 + u64::from(deprecated),
        Data { data },
    ))
}

/// What a comparison is asked with.
pub(super) const DIFF: [Param; 2] = [
    Param::query("from", Kind::Version, "The version on the left.").needed(),
    Param::query("to", Kind::Version, "The version on the right.").needed(),
];

/// What differs between two versions, or a version and the draft.
pub(super) async fn compare(
    State(app): State<App>,
    Path(slug): Path<String>,
    uri: Uri,
) -> Result<Json<Data<Diff>>, Problem> {
    let name = named(&slug)?;
    let pairs = input::query(&uri, &DIFF)?;
    let from = Side::of(&pairs, "from")?;
    let to = Side::of(&pairs, "to")?;
    let is_dag = dags::of(&app.engine.book(), &name).is_some();
    let read = app.engine.read(move |tx| {
        let name = (&name, is_dag);
        Ok((side(tx, name, from)?, side(tx, name, to)?))
    });
    let (left, right) = read.await?;
    let missing = |side: Side| {
        Problem::not_found(match side {
            Side::Draft => format!("workflow '{slug}' has no draft"),
            Side::Version(number) => format!("workflow '{slug}' has no version {number}"),
        })
    };
    let left = left.ok_or_else(|| missing(from))?;
    let right = right.ok_or_else(|| missing(to))?;
    Ok(Json(Data {
        data: diff(&left, &right),
    }))
}

#[derive(Debug, Clone, Copy)]
enum Side {
    Draft,
    Version(u32),
}

impl Side {
    fn of(pairs: &[(String, String)], name: &str) -> Result<Side, Problem> {
        match input::last(pairs, name) {
            Some("draft") => Ok(Side::Draft),
            Some(text) => text
                .parse()
                .map(Side::Version)
                .map_err(|_| Problem::unreadable(format!("`{name}` must be a version number, or `draft`"))),
            None => Err(Problem::unreadable(format!("`{name}` is missing"))),
        }
    }
}

/// The document of a side in the form in which defaults are filled in, so that they are no differences.
fn side(
    rows: &mut impl Rows,
    (name, is_dag): (&JobName, bool),
    side: Side,
) -> Result<Option<Value>, StoreError> {
    let text = match side {
        Side::Draft => rows
            .get(&WORKFLOW_DRAFTS, &(TENANT, name.clone()))?
            .map(|draft| draft.json),
        Side::Version(number) => {
            let row = rows.get(&WORKFLOW_VERSIONS, &(TENANT, name.clone(), number))?;
            if row.is_none() && is_dag {
                // It was made here, with every default filled in.
                let found = dags::version(rows, name, number)?;
                return Ok(found.and_then(|found| serde_json::to_value(found.document).ok()));
            }
            row.map(|row| row.posted)
        }
    };
    let posted: Option<Value> = text.and_then(|text| text.read().ok());
    Ok(posted.map(|posted| {
        let whole = read(&posted)
            .good()
            .ok()
            .and_then(|document| serde_json::to_value(document).ok());
        // A draft may be anything; then its words are compared as they are.
        whole.unwrap_or(posted)
    }))
}

/// The fields of a deprecation.
pub(super) const DEPRECATION: [Param; 2] = [
    Param::query(
        "version",
        Kind::Integer,
        "The version of which no new runs begin.",
    )
    .needed(),
    once::FIELDS[0],
];

/// Ends the use of a version; what runs goes on.
pub(super) async fn deprecate(
    State(app): State<App>,
    Path(slug): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &DEPRECATION)?;
    let number = fields
        .get("version")
        .map(|value| value.as_u64().and_then(|number| u32::try_from(number).ok()));
    if number.flatten().is_none() {
        let (code, rule) = if number.is_none() {
            ("required", "say which version")
        } else {
            ("type", "must be the number of a version")
        };
        faults.push(input::fault("version", code, rule));
    }
    let once = once.expecting_among(&fields, faults)?;
    let number = number.flatten().unwrap_or_default();
    let name = named(&slug)?;
    dags::refuse_change(&app, &name)?;
    let (guarded, shown, by) = (name.clone(), name.clone(), once.principal());
    let asked = once.ask_at(
        move |tx| {
            let found = tx.get(&WORKFLOWS, &(TENANT, guarded.clone()))?;
            Ok(found.map(|record| record.record_version.to_string()))
        },
        move |_, done: &Deprecated| match done {
            Deprecated::Done(record, _) => {
                let data = WorkflowView::of(&shown, record);
                Ok(Some(once::ok(&Data { data })))
            }
            Deprecated::Missing | Deprecated::NoVersion => Ok(None),
        },
    );
    let told = definitions::deprecate(&app.engine, name.clone(), number, by, asked).await?;
    once::respond(told, |done| match done {
        Deprecated::Missing => not_found(&slug),
        Deprecated::NoVersion => Problem::not_found(format!("workflow '{name}' has no version {number}")),
        Deprecated::Done(..) => unreachable!("a deprecation has an answer"),
    })
}
