//! The face over a real store in a folder of its own: an engine without loops, invented processes, a clock set by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request};
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

use super::app::App;
use super::router::router;
use crate::config::{Config, Sources};
use crate::daemon::{Loaded, Reloader};
use crate::domain::report::Tails;
use crate::domain::schedule::{ParseOptions, Schedule};
use crate::domain::slots::claim::{ClockId, Place, ProcessRef};
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::definition::tests::sample;
use crate::domain::workflow::definition::{ConcurrencyPolicy, Definition};
use crate::engine::book::{Book, BookJob, BookSlots, Notify};
use crate::engine::changes::claim::{self, Claimed, Pass};
use crate::engine::changes::complete::{self, Holder};
use crate::engine::changes::maintain::Rules;
use crate::engine::changes::publish;
use crate::engine::changes::tasks::Turns;
use crate::engine::core::{Engine, EngineParts};
use crate::engine::dispatch::Dispatcher;
use crate::store::coordination::StateDirectory;
use crate::store::keys::Key;
use crate::store::table::Table;
use crate::store::{Abort, Store, StoreOptions, Tx};
use crate::words::names::{JobName, NodeName, SlotPoolName};
use crate::words::time::{ManualClock, Millis};

/// The address that the face believes to listen on.
pub(super) const ADDRESS: &str = "127.0.0.1:8470";
/// When every face begins: 2025-11-29T18:00:00Z.
pub(super) const BEGIN: Millis = Millis(1_764_439_200_000);

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("not JSON: {error}: {}", self.text))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// The member `error` of a problem.
    pub(super) fn sentence(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }
}

/// A face and what stands behind it.
pub(super) struct Face {
    pub(super) app: App,
    pub(super) clock: ManualClock,
    router: Router,
    pids: std::sync::atomic::AtomicU32,
    _folder: TempDir,
}

/// Jobs: `a` and `b` in the slot pool `p` (1 slot, 3 waiting); `free`, which forbids a second instance; `off`, disabled;
/// `lost` in a slot pool that does not exist; `timed`, which fires each hour; and the slot pool `q`, in which `c` waits, which has
/// two retries where they are asked for.
fn definitions() -> Vec<Definition> {
    let mut free = sample("free", None);
    free.concurrency = ConcurrencyPolicy::Forbid;
    let mut again = sample("c", Some("q"));
    again.policy.retry.retries_max = Some(2);
    let mut off = sample("off", None);
    off.enabled = false;
    vec![
        sample("a", Some("p")),
        sample("b", Some("p")),
        again,
        free,
        off,
        sample("lost", Some("nowhere")),
        sample("timed", None),
    ]
}

fn slot_pools() -> BTreeMap<SlotPoolName, BookSlots> {
    let one = |name: &str, max_queued| (pool(name), BookSlots { slots: 1, max_queued });
    BTreeMap::from([one("p", 3), one("q", 1_000)])
}

/// A slot pool's name.
pub(super) fn pool(name: &str) -> SlotPoolName {
    SlotPoolName::new(name).unwrap()
}

/// A reloader that always finds the same configuration.
fn reloader_of(engine: &Engine, config: Config) -> Reloader {
    let loaded = move || Loaded {
        config: config.clone(),
        warnings: Vec::new(),
        sources: Sources::default(),
    };
    let first = loaded();
    Reloader::new(engine, first, Path::new(""), Box::new(move || Ok(loaded())))
}

fn book_of(versions: &BTreeMap<JobName, u32>) -> Book {
    let jobs = definitions().into_iter().map(|definition| {
        let timed = definition.name.as_str() == "timed";
        let hourly = || Arc::new(Schedule::parse("0 * * * *", ParseOptions::default()).unwrap());
        let job = BookJob {
            version: versions[&definition.name],
            digest: definition.digest(),
            graph: None,
            content: definition.stored().1,
            schedule: timed.then(hourly),
            reports: Arc::default(),
            definition: Arc::new(definition),
        };
        (job.definition.name.clone(), job)
    });
    Book {
        node: NodeName::new("n-a").unwrap(),
        jobs: jobs.collect(),
        slot_pools: slot_pools(),
        raise_immediately: false,
        locks_trusted: true,
        notify: Notify::default(),
        egress: [].into(),
        pipeline_mode: crate::domain::routing::objects::PipelineMode::Linear,
        alert_secret: None,
    }
}

impl Face {
    pub(super) async fn new() -> Face {
        Face::with(Config::default()).await
    }

    pub(super) async fn with(config: Config) -> Face {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(BEGIN);
        let directory = StateDirectory::prepare(folder.path(), true).unwrap();
        let options = StoreOptions {
            cache_bytes: 4 << 20,
            operation: Duration::from_secs(2),
            ..StoreOptions::in_directory(directory.root())
        };
        let store = Store::open(options, Arc::new(clock.clone())).unwrap();
        let publishing = store.change("publish", |tx| {
            let node = NodeName::new("n-a").unwrap();
            publish::publish(tx, &node, &definitions(), &slot_pools())
        });
        let versions = publishing.await.unwrap();
        let book = book_of(&versions);
        let place = Place {
            host: "h".to_owned(),
            boot_id: "b".to_owned(),
            pid_namespace: 1,
            clock: ClockId("b:1".to_owned()),
        };
        let program = PathBuf::from("/bin/true");
        let engine_clock = Arc::new(clock.clone());
        let log_bytes_max = 1 << 20;
        let parts = EngineParts {
            store,
            book,
            clock: engine_clock,
            place,
            directory,
            log_bytes_max,
            program,
        };
        let engine = Engine::new(parts);
        let unreadable = Dispatcher::new(engine.clone()).unreadable();
        let reloader = reloader_of(&engine, config);
        let app = App::new(&engine, unreadable, &reloader, ADDRESS.parse().unwrap());
        Face {
            router: router(app.clone()),
            app,
            clock,
            pids: 0.into(),
            _folder: folder,
        }
    }

    /// Sends a request as it is; the Host is the face's own unless another is given.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", ADDRESS);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            text,
        }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    pub(super) async fn post(&self, path: &str) -> Answer {
        self.send("POST", path, &[], "").await
    }

    pub(super) async fn post_json(&self, path: &str, body: &str) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body)
            .await
    }

    /// Makes a backup in a folder of its own, which is gone afterwards.
    pub(super) async fn backup(&self) -> Answer {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("backup").display().to_string();
        let body = serde_json::json!({"path": path}).to_string();
        self.post_json("/api/backups", &body).await
    }

    /// A change that must succeed.
    pub(super) async fn change<T, F>(&self, change: F) -> T
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Abort> + Send + 'static,
    {
        self.app.engine.store.change("test", change).await.unwrap()
    }

    /// Makes a row unreadable.
    pub(super) async fn damage<K, R>(&self, table: &'static Table<K, R>, key: K)
    where
        K: Key + Send + Sync + 'static,
        R: crate::store::codec::Record + 'static,
    {
        self.change(move |tx| Ok(tx.damage(table, &key, &[99, 1])?)).await;
    }

    /// A pass that brings `count` processes no machine has.
    pub(super) async fn pass(&self, count: usize) -> Vec<Claimed> {
        let process = || {
            let pid = 100_000_000 + self.pids.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            ProcessRef {
                pid,
                start_ticks: 1,
                group: pid,
            }
        };
        let processes = (0..count).map(|_| process()).collect();
        let pass = Pass {
            place: self.app.engine.place.clone(),
            processes,
            rules: Rules::plain(),
            leave_to: 0,
            turns: Turns::default(),
            shelf: crate::engine::graphs::GraphShelf::default(),
        };
        let book = self.app.engine.book();
        self.change(move |tx| claim::pass(tx, &book, &pass)).await.claimed
    }

    /// Ends a claim.
    pub(super) async fn complete(&self, claimed: &Claimed, outcome: Outcome) {
        let holder = Holder {
            run: claimed.run.id,
            step: claimed.step.clone(),
            fence: claimed.claim.fence,
        };
        let attempt = Attempt {
            outcome,
            exit_code: Some(i32::from(outcome != Outcome::Succeeded)),
            reason: None,
            node: claimed.claim.node.clone(),
            pid: None,
            started_at: claimed.claim.claimed_at,
            ended_at: self.app.engine.now().wall,
            log_bytes: 0,
        };
        self.change(move |tx| complete::complete(tx, &holder, &attempt, &Tails::default()))
            .await;
    }

    /// Writes the log of a claim.
    pub(super) fn write_log(&self, claimed: &Claimed, text: &str) {
        let logs = self.app.engine.directory.logs();
        let (run, step) = (claimed.run.id, &claimed.step);
        let path = crate::store::logs::path_of(&logs, run, step, claimed.number, claimed.claim.fence);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Changes the book in force.
    pub(super) fn edit_book(&self, edit: impl FnOnce(&mut Book)) {
        let mut book = (*self.app.engine.book()).clone();
        edit(&mut book);
        self.app.engine.shelf.replace(book);
    }

    /// A load that gives a slot pool another capacity.
    pub(super) async fn configure_slots(&self, name: &str, slots: u32) {
        self.edit_book(|book| {
            let name = SlotPoolName::new(name).unwrap();
            book.slot_pools.get_mut(&name).unwrap().slots = slots;
        });
        let book = self.app.engine.book();
        let jobs = book.jobs.values();
        let definitions: Vec<Definition> = jobs.map(|job| (*job.definition).clone()).collect();
        self.change(move |tx| publish::publish(tx, &book.node, &definitions, &book.slot_pools))
            .await;
    }
}

/// An assignment for each thing that one can do with it, an item that waits, and two offers.
pub(super) async fn routed(face: &Face) -> BTreeMap<&'static str, String> {
    let mut ids = BTreeMap::new();
    let pool = async |name: &str| {
        let made = face
            .post_json("/api/pools", &json!({"name": name}).to_string())
            .await;
        made.json()["data"]["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (pool("busy").await, pool("empty").await);
    let path = format!("/api/pools/{first}/recipients");
    let made = face.post_json(&path, "{\"name\": \"worker\"}").await;
    ids.insert(
        "{recipient}",
        made.json()["data"]["id"].as_str().unwrap().to_owned(),
    );
    let route =
        async |body: Value| face.post_json("/api/route", &body.to_string()).await.json()["data"].clone();
    for id in [
        "acceptAssignment",
        "renewAssignment",
        "completeAssignment",
        "returnAssignment",
        "rejectAssignment",
    ] {
        let decided = route(json!({"work": {"kind": "t"}, "pool_id": first})).await;
        let assignment = decided["winners"][0]["assignment_id"].as_str().unwrap();
        ids.insert(id, assignment.to_owned());
        ids.insert("{decision_id}", decided["id"].as_str().unwrap().to_owned());
    }
    let waits = route(json!({"work": {"kind": "t"}, "pool_id": second})).await;
    ids.insert("cancelWaitingWork", waits["item_id"].as_str().unwrap().to_owned());
    for _ in 0..2 {
        let body = json!({"work": {"kind": "t"}, "pool_id": first, "strategy": "shark_tank"});
        let offered = route(body).await;
        ids.insert("claimOffer", offered["item_id"].as_str().unwrap().to_owned());
    }
    ids.insert("{busy}", first);
    ids.insert("{empty}", second);
    ids
}

/// Two pools of recipients, a member of the first, a rule, a claim queue; and a trait.
pub(super) async fn declared(face: &Face) -> [String; 6] {
    let mut ids: Vec<String> = Vec::new();
    for name in ["one", "two"] {
        let made = face
            .post_json("/api/pools", &json!({"name": name}).to_string())
            .await;
        ids.push(made.json()["data"]["id"].as_str().unwrap().to_owned());
    }
    let path = format!("/api/pools/{}/recipients", ids[0]);
    let campaign =
        json!({"name": "trial", "pool_id": ids[0], "candidate": {"strategy": "random"}}).to_string();
    let rule = r#"{"name": "r", "expression": "true", "action": {"type": "drop"}}"#;
    for (path, body) in [
        (path.as_str(), r#"{"name": "member"}"#),
        ("/api/rules", rule),
        ("/api/claim-queues", r#"{"name": "pond"}"#),
        ("/api/shadow-campaigns", campaign.as_str()),
    ] {
        let made = face.post_json(path, body).await;
        ids.push(made.json()["data"]["id"].as_str().unwrap().to_owned());
    }
    let json = [("content-type", "application/json")];
    let declared = r#"{"type": "bool", "op": "eq"}"#;
    face.send("PUT", "/api/traits/vip", &json, declared).await;
    ids.try_into().unwrap()
}
