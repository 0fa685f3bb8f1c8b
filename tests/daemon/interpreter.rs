//! Random nested programs under kill -9 at random moments, while starts, answers, pauses and tasks are under way: every
//! step counts once, every acknowledged word holds, and the counters balance.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::graphs::{publish, show};
use super::support::{Builder, Client, Daemon, Place, Response, wait_until};

/// So many times the daemon is killed in a row: what five deaths have met is given up.
const KILLS: usize = 4;
/// So many rows of kills there are. Before the next one all runs end that have met this one.
const ROUNDS: usize = 3;
/// So many runs begin between two kills at most.
const STARTS: usize = 4;

/// Numbers from a seed.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn seeded() -> Dice {
        let given = std::env::var("DUCTOR_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        // Another one in each run.
        let fresh = || {
            let mut hasher = std::collections::hash_map::RandomState::new().build_hasher();
            hasher.write_u32(std::process::id());
            hasher.finish()
        };
        let seed = given.unwrap_or_else(fresh);
        println!("DUCTOR_SEED={seed}");
        Dice(seed | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }
}

/// A program and how many steps of a run of it count, its children's included.
struct Program {
    slug: String,
    counts: usize,
}

/// Writes programs.
struct Author<'a> {
    dice: &'a mut Dice,
    folder: String,
    known: &'a [Program],
    names: usize,
}

/// Steps in a row, ended by one whose output `n` is how many have counted.
struct Block {
    steps: Vec<Value>,
    edges: Vec<Value>,
    counts: usize,
}

impl Author<'_> {
    fn name(&mut self, letter: char) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    /// A command that leaves one mark for its run and step, however often it is executed; a flaky one fails the first time.
    fn command(&mut self, name: &str) -> Value {
        let folder = &self.folder;
        let key = "$DUCTOR_RUN_ID.$DUCTOR_TASK";
        let mut text = String::new();
        if self.dice.below(4) == 0 {
            text =
                format!("[ -e \"{folder}/tried/{key}\" ] || {{ touch \"{folder}/tried/{key}\"; exit 1; }}; ");
        }
        text.push_str(&format!(
            "touch \"{folder}/done/{key}\"; echo '{{\"n\": 1}}' > \"$DUCTOR_OUTPUT\""
        ));
        json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": text},
            "retry": {"max_attempts": 3, "initial_interval": "20ms"}})
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each kind of block")]
    fn block(&mut self, depth: usize) -> Block {
        let (mut steps, mut edges, mut counts) = (Vec::new(), Vec::new(), 0);
        let mut terms = vec!["0".to_owned()];
        let mut last: Option<String> = None;
        let mut then = |steps: &mut Vec<Value>, step: Value| {
            let name = step["ref"].as_str().unwrap().to_owned();
            if let Some(last) = last.replace(name.clone()) {
                edges.push(json!({"source_ref": last, "target_ref": name}));
            }
            steps.push(step);
        };
        for _ in 0..=self.dice.below(if depth == 0 { 4 } else { 2 }) {
            match self.dice.below(8) {
                0 | 1 if depth < 2 => {
                    let (each, all) = (self.name('e'), self.name('g'));
                    let body = self.block(depth + 1);
                    let items = 1 + self.dice.below(4);
                    counts += items * body.counts;
                    let numbers: Vec<usize> = (0..items).collect();
                    then(
                        &mut steps,
                        json!({"ref": each, "type": "STEP_TYPE_SCATTER", "args": {
                        "items": json!(numbers).to_string(), "max_parallel": 1 + self.dice.below(3),
                        "body": {"steps": body.steps, "edges": body.edges}}}),
                    );
                    then(
                        &mut steps,
                        json!({"ref": all, "type": "STEP_TYPE_GATHER", "args": {
                        "from": each, "mode": "reduce", "initial": "0", "with": "acc + item.n"}}),
                    );
                    terms.push(format!("steps.{all}.output.results"));
                }
                2 if !self.known.is_empty() => {
                    let child = &self.known[self.dice.below(self.known.len())];
                    counts += child.counts;
                    let slug = child.slug.clone();
                    let name = self.name('r');
                    terms.push(format!("steps.{name}.output.n"));
                    then(
                        &mut steps,
                        json!({"ref": name, "type": "STEP_TYPE_SUBWORKFLOW", "args": {"family_slug": slug}}),
                    );
                }
                3 => {
                    let name = self.name('w');
                    then(
                        &mut steps,
                        json!({"ref": name, "type": "STEP_TYPE_WAIT", "args": {"duration": "30ms"}}),
                    );
                }
                4 if depth == 0 => {
                    let name = self.name('a');
                    then(&mut steps, json!({"ref": name, "type": "STEP_TYPE_APPROVAL"}));
                }
                5 | 6 => {
                    counts += 1;
                    let name = self.name('t');
                    terms.push(format!("steps.{name}.output.n"));
                    // A worker that never got its task is noticed soon.
                    then(
                        &mut steps,
                        json!({"ref": name, "type": "STEP_TYPE_TASK", "args": {"queue": "q"}, "timeouts": {"heartbeat": "1s"},
                        "retry": {"max_attempts": 50, "initial_interval": "20ms", "max_interval": "20ms"}}),
                    );
                }
                _ => {
                    counts += 1;
                    let name = self.name('c');
                    terms.push(format!("steps.{name}.output.n"));
                    let step = self.command(&name);
                    then(&mut steps, step);
                }
            }
        }
        let total = self.name('n');
        then(
            &mut steps,
            json!({"ref": total, "type": "STEP_TYPE_DATAFLOW",
            "args": {"operation": "project", "project": {"n": terms.join(" + ")}}}),
        );
        Block { steps, edges, counts }
    }
}

fn write_programs(dice: &mut Dice, daemon: &Daemon, place: &Place) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for number in 0..6 {
        let slug = format!("program-{number}");
        let mut author = Author {
            dice,
            folder: place.folder().display().to_string(),
            known: &programs,
            names: 0,
        };
        let block = author.block(0);
        publish(
            daemon,
            &json!({"family_slug": slug, "steps": block.steps, "edges": block.edges}),
        );
        let counts = block.counts;
        programs.push(Program { slug, counts });
    }
    programs
}

/// What people and workers do, and what they were told.
struct Load {
    /// Where the daemon is now.
    address: Mutex<Client>,
    /// So many runs may have begun by now.
    allowed: AtomicUsize,
    /// Everything has ended.
    over: AtomicBool,
    /// Requests of which nobody knows what became of them.
    broken: AtomicUsize,
    next: AtomicUsize,
    /// Which program each key starts.
    plan: Vec<String>,
    begun: Mutex<BTreeMap<usize, String>>,
    approved: Mutex<BTreeSet<String>>,
    /// Which tasks were executed, by what is the same for each attempt of one.
    tasks: Mutex<BTreeSet<String>>,
}

fn locked<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn a_moment(ms: u64) {
    wait_until(Duration::from_millis(ms), || None::<()>);
}

impl Load {
    /// One request; `None` if the daemon died with it, or is not there.
    fn ask(&self, method: &str, path: &str, key: Option<&str>, body: &Value) -> Option<Response> {
        let client = locked(&self.address).clone();
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        let answered = client.request(method, path, &headers, body.to_string().as_bytes());
        match answered {
            Ok(answer) => Some(answer),
            Err(error) => {
                if error.kind() != std::io::ErrorKind::ConnectionRefused {
                    self.broken.fetch_add(1, Ordering::SeqCst);
                }
                a_moment(5);
                None
            }
        }
    }

    /// Begins one run after the other. A start is asked for until it is answered, and now and then once more.
    fn start(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let Some(slug) = self.plan.get(number) else {
                return;
            };
            while number >= self.allowed.load(Ordering::SeqCst) {
                a_moment(5);
            }
            let (path, key) = (format!("/api/workflows/{slug}/runs"), format!("start-{number}"));
            let mut answers = BTreeSet::new();
            let mut left = 1 + usize::from(number.is_multiple_of(3));
            while left > 0 {
                let Some(answer) = self.ask("POST", &path, Some(&key), &json!({"input": number})) else {
                    continue;
                };
                if answer.status >= 500 {
                    continue;
                }
                let answer = answer.expect_status(201).json();
                answers.insert(answer["data"]["id"].as_str().unwrap().to_owned());
                left -= 1;
            }
            assert_eq!(answers.len(), 1, "one key is one run: {answers:?}");
            locked(&self.begun).insert(number, answers.pop_first().unwrap());
        }
    }

    /// Approves what waits for it, and holds runs for a moment.
    fn decide(&self) {
        let mut turn = 0;
        while !self.over.load(Ordering::SeqCst) {
            turn += 1;
            a_moment(3);
            let Some(open) = self.ask("GET", "/api/checkpoints", None, &Value::Null) else {
                continue;
            };
            for open in open.json()["data"].as_array().unwrap() {
                let id = open["id"].as_str().unwrap().to_owned();
                let path = format!("/api/checkpoints/{id}:approve");
                if let Some(answer) = self.ask("POST", &path, None, &json!({}))
                    && answer.status == 202
                {
                    assert!(locked(&self.approved).insert(id), "an accepted decision was lost");
                }
            }
            let run = {
                let begun = locked(&self.begun);
                let place = (turn * 7) % begun.len().max(1);
                begun.values().nth(place).cloned()
            };
            if let (Some(run), true) = (run, turn % 4 == 0) {
                self.hold(&run);
            }
        }
    }

    /// A run that was held is let go, however often the daemon dies meanwhile.
    fn hold(&self, run: &str) {
        let told = |verb: &str| self.ask("POST", &format!("/api/runs/{run}:{verb}"), None, &json!({}));
        told("pause");
        // Refused means: it is not held, or has ended.
        while !told("resume").is_some_and(|answer| matches!(answer.status, 202 | 409)) {}
    }

    /// A remote worker that counts what it does by the key that is the same for each attempt.
    fn work(&self, name: &str) {
        let ask = json!({"queue": "q", "worker": name, "max": 3, "wait_ms": 200});
        while !self.over.load(Ordering::SeqCst) {
            let Some(polled) = self.ask("POST", "/api/bridge/poll", None, &ask) else {
                continue;
            };
            if polled.status != 200 {
                continue;
            }
            for task in polled.json()["data"]["tasks"].as_array().unwrap() {
                let once = task["idempotency_key"].as_str().unwrap().to_owned();
                locked(&self.tasks).insert(once);
                let path = format!("/api/bridge/tasks/{}:complete", task["token"].as_str().unwrap());
                let written = || {
                    let answer = self.ask("POST", &path, None, &json!({"output": {"n": 1}}))?;
                    (answer.status < 500).then_some(answer.status)
                };
                let status = std::iter::repeat_with(written).flatten().next().unwrap();
                assert!(matches!(status, 200 | 409), "{status}");
            }
        }
    }
}

fn marks(place: &Place) -> BTreeSet<String> {
    let found = std::fs::read_dir(place.folder().join("done")).unwrap();
    let names = found.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.collect()
}

/// Waits until every run that may have begun has ended.
fn settle(daemon: &Daemon, load: &Load) {
    let allowed = load.allowed.load(Ordering::SeqCst);
    let last = || {
        let runs = locked(&load.begun).clone();
        let ended = |run: &String| show(daemon, run)["ended_at"].is_string();
        (runs.len() >= allowed && runs.values().all(ended)).then_some(())
    };
    if wait_until(Duration::from_secs(30), last).is_none() {
        load.over.store(true, Ordering::SeqCst);
        load.allowed.store(usize::MAX, Ordering::SeqCst);
        let runs = locked(&load.begun).clone();
        let open: Vec<Value> = { runs.values().map(|run| show(daemon, run)) }
            .filter(|run| !run["ended_at"].is_string())
            .collect();
        panic!(
            "{} of {allowed} have begun, and these do not end: {open:#?}",
            runs.len()
        );
    }
}

/// Kills the daemon again and again while people and workers do what they do.
fn under_kills(dice: &mut Dice, mut daemon: Daemon, load: &Load) -> Daemon {
    std::thread::scope(|all| {
        for _ in 0..2 {
            all.spawn(|| load.start());
        }
        all.spawn(|| load.decide());
        for name in ["one", "other"] {
            all.spawn(move || load.work(name));
        }
        for _ in 0..ROUNDS {
            for _ in 0..KILLS {
                load.allowed.fetch_add(STARTS, Ordering::SeqCst);
                let ms = dice.below(250) as u64;
                a_moment(ms);
                daemon.kill9();
                daemon = Builder::at(daemon.place()).start();
                *locked(&load.address) = daemon.client();
            }
            settle(&daemon, load);
        }
        load.over.store(true, Ordering::SeqCst);
    });
    daemon
}

#[test]
fn counters_balance_however_often_the_daemon_is_killed() {
    let mut dice = Dice::seeded();
    let place = Place::new("jobs: []\n");
    for folder in ["done", "tried"] {
        std::fs::create_dir(place.folder().join(folder)).unwrap();
    }
    let daemon = Builder::at(&place).start();
    let programs = write_programs(&mut dice, &daemon, &place);
    let count = ROUNDS * KILLS * STARTS;
    let plan: Vec<usize> = (0..count).map(|_| dice.below(programs.len())).collect();
    let load = Load {
        address: Mutex::new(daemon.client()),
        allowed: AtomicUsize::new(0),
        over: AtomicBool::new(false),
        broken: AtomicUsize::new(0),
        next: AtomicUsize::new(0),
        plan: plan.iter().map(|place| programs[*place].slug.clone()).collect(),
        begun: Mutex::default(),
        approved: Mutex::default(),
        tasks: Mutex::default(),
    };
    let daemon = under_kills(&mut dice, daemon, &load);
    let begun = locked(&load.begun).clone();
    assert_eq!(begun.len(), count);
    let mut expected = 0;
    for (number, run) in &begun {
        let program = &programs[plan[*number]];
        let shown = show(&daemon, run);
        assert_eq!(shown["state"], "succeeded", "{shown}");
        let values = daemon.get(&format!("/api/runs/{run}/values")).json();
        assert_eq!(values["data"]["output"], json!({"n": program.counts}), "{shown}");
        expected += program.counts;
        for step in shown["steps"].as_array().unwrap() {
            let attempts = step["attempts"].as_array().into_iter().flatten();
            let good = attempts
                .filter(|attempt| attempt["outcome"] == "succeeded")
                .count();
            assert!(good <= 1, "it succeeded {good} times: {step}");
        }
    }
    let counted = marks(&place).len() + locked(&load.tasks).len();
    assert_eq!(
        counted, expected,
        "each step of each run counted, and no other run began"
    );
    let broken = load.broken.load(Ordering::SeqCst);
    println!(
        "{} runs, {expected} counts, {broken} requests were under way when the daemon died",
        begun.len()
    );
    assert!(broken > 0, "it was never killed while somebody asked");
}
