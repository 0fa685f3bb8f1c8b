//! The pages of `docs/` are promises: every block of them is written, loaded or run, and what they show is what is answered.
//!
//! A fence says what its block is. `yaml NAME` (or any language and a name with a dot) is a file, written into the page's
//! folder; `yaml fragment` is a piece of a document and `yaml fragment job` are keys of a job, both of which must load;
//! `sh` is a session: lines that begin with `$ ` are run, and each other line must be found in the answer, in that order.
//! There, `…` stands for anything; ids, times, lengths of time and ports need not agree, but in a block `sh exact`.
//! `# exits N` on a line of its own is the exit code of the next command. `ID` is the run that was shown last. `$ ductor
//! serve` starts the page's daemon, in place of one that runs; `$ ductor serve --node NAME` starts one of that name, beside
//! others that run. `https://hooks.example.org` is a receiver of this test.
//! A block of another kind fails the test, so that nothing is passed over.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use super::support::{Answer, Answered, Builder, Daemon, PATIENCE, Place, Receiver, command, wait_until};

/// One test below for each.
const PAGES: [&str; 13] = [
    "keys.md",
    "bridge.md",
    "schedule.md",
    "routing.md",
    "dags.md",
    "limit-a-shared-database.md",
    "migrate-from-cron.md",
    "get-told-on-failure.md",
    "find-out-why.md",
    "run-several-daemons.md",
    "back-up-and-restore.md",
    "workflows.md",
    "first-workflow.md",
];

/// A table of tests; `tests/tidy.rs` sees that each of them exists.
const PROMISES: &str = "slot-pool-promises.md";

/// Made of the table of keys, and compared with it by the tests of `config/`.
const GENERATED: &str = "configuration.md";

/// Read line by line, and evaluated, by the tests of `expr/`.
const EXPRESSIONS: &str = "expressions.md";

const HOOKS: &str = "https://hooks.example.org";

/// Commands that change nothing may be asked again until they answer what the page shows: things take their time.
const ASKING: [&str; 9] = [
    " graph ", " show ", " ls", " why ", " fires ", " logs ", " status", "cat ", " next ",
];

fn docs() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/docs"))
}

fn text_of(page: &str) -> String {
    std::fs::read_to_string(docs().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// A fenced block.
struct Block {
    line: usize,
    info: String,
    body: String,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (index, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(info) => {
                is_open = true;
                found.push(Block {
                    line: index + 1,
                    info: info.to_owned(),
                    body: String::new(),
                });
            }
            None if is_open => {
                let body = &mut found.last_mut().expect("an open block").body;
                body.push_str(line);
                body.push('\n');
            }
            None => assert!(
                !line.trim_start().starts_with("```"),
                "line {}: a fence that is not at the margin",
                index + 1
            ),
        }
    }
    assert!(!is_open, "the last fence has no end");
    found
}

/// One command of a session.
#[derive(Default)]
struct Step {
    command: String,
    status: i32,
    shown: Vec<String>,
}

fn steps(body: &str) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    let mut status = 0;
    for line in body.lines() {
        if let Some(number) = line.strip_prefix("# exits ") {
            status = number.parse().expect("an exit code");
        } else if let Some(command) = line.strip_prefix("$ ") {
            found.push(Step {
                command: command.to_owned(),
                status: std::mem::take(&mut status),
                shown: Vec::new(),
            });
        } else if !line.trim().is_empty() {
            let step = found.last_mut().expect("a session begins with a command");
            step.shown.push(line.to_owned());
        }
    }
    found
}

/// A page on its way through its blocks.
struct Walk {
    page: &'static str,
    place: Place,
    receiver: Receiver,
    daemon: Option<Daemon>,
    /// Daemons with a name of their own, beside the first.
    beside: Vec<(String, Daemon)>,
    run: Option<String>,
}

impl Walk {
    fn new(page: &'static str) -> Walk {
        Walk {
            page,
            place: Place::new("jobs: []\n"),
            receiver: Receiver::new(Answer::Status(204)),
            daemon: None,
            beside: Vec::new(),
            run: None,
        }
    }

    fn block(&mut self, block: &Block) {
        let at = format!("docs/{}:{}", self.page, block.line);
        let words: Vec<&str> = block.info.split_whitespace().collect();
        match words.as_slice() {
            ["sh"] => self.session(&at, &block.body, false),
            ["sh", "exact"] => self.session(&at, &block.body, true),
            ["yaml", "fragment"] => self.fragment(&at, block.body.clone()),
            ["yaml", "fragment", "job"] => self.fragment(&at, job_with(&block.body)),
            [_, name] if name.contains('.') => {
                let mut body = self.addressed(&block.body);
                if *name == "ductor.yaml" {
                    // What a page leaves running is not waited for at its end.
                    body.push_str("shutdown: {drainTimeout: 0}\n");
                }
                self.place.write(name, &body);
            }
            _ => panic!("{at}: a block `{}` is neither a file nor run", block.info),
        }
    }

    fn addressed(&self, text: &str) -> String {
        text.replace(HOOKS, self.receiver.url("").trim_end_matches('/'))
    }

    fn fragment(&self, at: &str, mut text: String) {
        if !text.contains("state:") {
            text.push_str("state: {path: ./state}\n");
        }
        let name = self.place.write("fragment.yaml", &self.addressed(&text));
        let answered = self.shell("ductor check --quiet fragment.yaml");
        assert_eq!(answered.status, 0, "{at}: {answered:?}\n{text}");
        std::fs::remove_file(name).unwrap();
    }

    fn session(&mut self, at: &str, body: &str, exact: bool) {
        for step in steps(body) {
            let named = step.command.strip_prefix("ductor serve --node ");
            let name = named.map(|rest| rest.split(' ').next().unwrap_or_default());
            if step.command == "ductor serve" {
                self.serve(at, &step);
            } else if let Some(name) = name {
                self.serve_named(name);
            } else {
                self.step(at, &step, exact);
            }
        }
    }

    /// The port is the test's own choice, whatever the page says.
    fn serve_named(&mut self, name: &str) {
        self.beside.retain(|(other, _)| other != name);
        let builder = Builder::at(&self.place).env("TZ", "UTC").node(name);
        let daemon = builder.leave_store_unchecked().start();
        if self.daemon.is_none() {
            self.daemon = Some(daemon);
        } else {
            self.beside.push((name.to_owned(), daemon));
        }
    }

    fn serve(&mut self, at: &str, step: &Step) {
        if let Some(mut daemon) = self.daemon.take() {
            assert_eq!(daemon.term(), Some(0), "{at}");
        }
        let daemon = Builder::at(&self.place).env("TZ", "UTC").start();
        for line in &step.shown {
            daemon.wait("what the page shows", || {
                let said = daemon.output().stdout().join("\n");
                missing(std::slice::from_ref(line), &said, false)
                    .is_none()
                    .then_some(())
            });
        }
        self.daemon = Some(daemon);
    }

    fn step(&mut self, at: &str, step: &Step, exact: bool) {
        let words = step.command.split(' ').map(|word| match word {
            "ID" => self.run.as_deref().expect("a run was shown before"),
            _ => word,
        });
        let line = words.collect::<Vec<_>>().join(" ");
        let asks = ASKING.iter().any(|part| format!("{line} ").contains(part));
        let mut last = self.shell(&line);
        let fault = |answered: &Answered| {
            if answered.status != step.status {
                return Some(format!("exit {} instead of {}", answered.status, step.status));
            }
            missing(&step.shown, &answered.stdout, exact).map(|line| format!("no line `{line}`"))
        };
        if asks && fault(&last).is_some() {
            wait_until(PATIENCE, || {
                last = self.shell(&line);
                fault(&last).is_none().then_some(())
            });
        }
        if let Some(fault) = fault(&last) {
            panic!("{at}: $ {line}\n{fault} in\n{}", last.stdout);
        }
        self.run = run_of(&last.stdout).or(self.run.take());
    }

    /// Both streams in one, as a terminal shows them.
    fn shell(&self, line: &str) -> Answered {
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_ductor"));
        let path = std::env::var("PATH").unwrap_or_default();
        let folder = binary.parent().expect("a folder").display();
        let mut shell = std::process::Command::new("/bin/sh");
        shell.arg("-c").arg(format!("exec 2>&1\n{line}"));
        // As the harness starts the binary itself: without the variables of whoever runs the tests.
        for (name, value) in command().get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.env("PATH", format!("{folder}:{path}")).env("TZ", "UTC");
        if let Some(daemon) = &self.daemon {
            shell.env("DUCTOR_SERVER", daemon.url());
        }
        let output = shell
            .current_dir(self.place.folder())
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        Answered {
            status: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::new(),
        }
    }
}

fn job_with(keys: &str) -> String {
    let mut text = "jobs:\n  - name: fragment\n    command: 'true'\n".to_owned();
    for line in keys.lines() {
        writeln!(text, "    {line}").unwrap();
    }
    text
}

/// The last id of a run in a text.
fn run_of(text: &str) -> Option<String> {
    let mut words = text.split(|mark: char| !mark.is_ascii_alphanumeric() && mark != '_');
    words
        .rfind(|word| word.starts_with("run_") && word.len() == 30)
        .map(str::to_owned)
}

/// The first line shown that the answer does not have, in this order.
fn missing<'s>(shown: &'s [String], answer: &str, exact: bool) -> Option<&'s str> {
    let prepared = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if exact { words.join(" ") } else { masked(&words) }
    };
    let mut lines = answer.lines().map(prepared);
    let mut found = |line: &str| {
        let pattern = prepared(line);
        lines.any(|line| fits(&pattern, &line))
    };
    shown.iter().map(String::as_str).find(|line| !found(line))
}

/// Words with ids, times, lengths of time and ports made equal.
fn masked(words: &[&str]) -> String {
    let mut kept: Vec<String> = Vec::new();
    let mut index = 0;
    while index < words.len() {
        let word = words[index];
        let next = words.get(index + 1).copied().unwrap_or_default();
        let unit = next.trim_end_matches([',', '.', ':', ';', ')']);
        let is_number = word.trim_start_matches('(').parse::<f64>().is_ok();
        if is_number && matches!(unit, "ms" | "s" | "min" | "h" | "d") {
            kept.pop_if(|last| last == "LENGTH");
            kept.push(format!("LENGTH{}", &next[unit.len()..]));
            index += 2;
            continue;
        }
        kept.push(masked_word(word));
        index += 1;
    }
    kept.join(" ")
}

fn masked_word(word: &str) -> String {
    if let Some(port) = word.find("127.0.0.1:") {
        return format!("{}127.0.0.1:PORT", &word[..port]);
    }
    if let Some(run) = run_of(word) {
        return word.replace(&run, "ID");
    }
    let core = word.trim_matches(['(', ')', ',', '.', ':', ';']);
    let is_clock = core.matches(':').count() > 0 || core.matches('-').count() == 2;
    let has_digits = core.chars().any(|mark| mark.is_ascii_digit());
    if is_clock && has_digits && core.chars().all(|mark| "0123456789-:.+TZ".contains(mark)) {
        return "TIME".to_owned();
    }
    if core.len() == 32 && core.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return "KEY".to_owned();
    }
    let node = core.strip_prefix("n-");
    if node.is_some_and(|node| node.len() == 12 && node.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return "NODE".to_owned();
    }
    word.to_owned()
}

/// A whole line, in which `…` stands for anything.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Commands in running text: their words and flags must exist.
fn mentioned(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_block = false;
    for line in text.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(
                spans
                    .filter(|span| span.starts_with("ductor "))
                    .map(str::to_owned),
            );
        }
    }
    found
}

fn walk(page: &'static str) -> Walk {
    let text = text_of(page);
    let outside = text.matches("://").count() - text.matches(HOOKS).count();
    let local = text.matches("http://127.0.0.1").count();
    assert_eq!(
        outside, local,
        "docs/{page} names an address that is not the receiver's"
    );
    let mut walk = Walk::new(page);
    for line in mentioned(&text) {
        let words = line.split(' ').skip(1);
        let is_word = |word: &&str| {
            !word.starts_with('-') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        };
        let noun: Vec<&str> = words.clone().take_while(is_word).take(2).collect();
        let mut help = walk.shell(&format!("ductor {} --help", noun.join(" ")));
        if help.status != 0 || noun.is_empty() {
            help = walk.shell(&format!("ductor {} --help", noun.first().unwrap_or(&"")));
        }
        assert_eq!(help.status, 0, "docs/{page}: `{line}` is no command");
        for flag in words.filter(|word| word.starts_with("--")) {
            assert!(help.stdout.contains(flag), "docs/{page}: `{line}` has no {flag}");
        }
    }
    let all = blocks(&text);
    assert!(
        all.iter().any(|block| block.info.starts_with("sh")),
        "docs/{page} runs nothing"
    );
    for block in &all {
        walk.block(block);
    }
    walk
}

#[test]
fn every_page_has_its_test_and_its_line_in_the_index() {
    let index = text_of("README.md");
    let listed = std::fs::read_dir(docs()).unwrap();
    let mut found: Vec<String> = listed
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !["README.md", GENERATED, PROMISES, EXPRESSIONS, "images"].contains(&name.as_str()))
        .collect();
    found.sort();
    let mut known = PAGES.to_vec();
    known.sort_unstable();
    assert_eq!(found, known);
    for page in PAGES.iter().chain(&["README.md"]) {
        if *page != "README.md" {
            assert!(
                index.contains(&format!("]({page})")),
                "{page} is not in the index"
            );
        }
        for link in text_of(page).split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            assert!(docs().join(target).exists(), "{page}: {target} is not there");
        }
    }
}

#[test]
fn page_keys() {
    walk("keys.md");
}

#[test]
fn page_routing() {
    walk("routing.md");
}

#[test]
fn page_schedule() {
    walk("schedule.md");
}

#[test]
fn page_dags() {
    walk("dags.md");
}

#[test]
fn page_limit_a_shared_database() {
    walk("limit-a-shared-database.md");
}

#[test]
fn page_migrate_from_cron() {
    walk("migrate-from-cron.md");
}

#[test]
fn page_get_told_on_failure() {
    let walk = walk("get-told-on-failure.md");
    let received = walk.receiver.received();
    let posts: Vec<_> = received.iter().filter(|one| one.method == "POST").collect();
    let [alert] = posts.as_slice() else {
        panic!("one alert was to come: {posts:?}");
    };
    assert_eq!(alert.path, "/alerts");
    assert!(alert.header("webhook-signature").starts_with("v1,"));
    for field in ["type", "job", "run_id", "text", "stdout_tail", "stderr_tail"] {
        assert!(!alert.json()[field].is_null(), "{field}");
    }
    assert!(
        received
            .iter()
            .any(|one| one.method == "GET" && one.path == "/alive")
    );
}

#[test]
fn page_find_out_why() {
    walk("find-out-why.md");
}

#[test]
fn page_run_several_daemons() {
    walk("run-several-daemons.md");
}

#[test]
fn page_back_up_and_restore() {
    walk("back-up-and-restore.md");
}

#[test]
fn page_bridge() {
    walk("bridge.md");
}

#[test]
fn a_first_workflow() {
    walk("first-workflow.md");
}

#[test]
fn page_workflows() {
    walk("workflows.md");
}

#[test]
fn a_session_that_shows_something_else_is_found() {
    let shown = |text: &str| vec![text.to_owned()];
    let answer = "ID  JOB\nrun_01m8mqqrqfepp9ye3x8tx8b4vd  reindex  failed after 15 ms: exit code 3\n";
    assert_eq!(
        missing(&shown("… reindex failed after 2.5 s: exit code 3"), answer, false),
        None
    );
    for wrong in [
        "reindex",
        "… reindex",
        "… reindex failed after 15 ms: exit code 4",
        "… import …",
    ] {
        assert_eq!(missing(&shown(wrong), answer, false), Some(wrong));
    }
    let late = shown("at 02:30");
    assert_eq!(missing(&late, "at 03:30", false), None);
    assert_eq!(missing(&late, "at 03:30", true), Some("at 02:30"));
    let order = ["two".to_owned(), "one".to_owned()];
    assert_eq!(missing(&order, "one\ntwo", true), Some("one"));
    let parsed = steps("# exits 2\n$ false\nsaid\n$ true\n");
    assert_eq!((parsed[0].status, parsed[1].status), (2, 0));
}
