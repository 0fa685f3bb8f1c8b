//! The client and the commands on it, against a small server that gives canned answers over real sockets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread;

use clap::Parser;

use super::args::Arguments;
use super::client::{Client, server_url};
use super::exit::Exit;
use super::failure::Failure;
use super::run::perform;
use super::session::Session;
use super::show::Show;

/// A request as the server saw it.
#[derive(Debug, Clone)]
struct Seen {
    line: String,
    headers: Vec<String>,
    body: String,
}

impl Seen {
    fn header(&self, name: &str) -> Option<String> {
        let lower = format!("{name}: ");
        self.headers.iter().find_map(|line| {
            let (head, value) = line.split_at_checked(lower.len())?;
            head.eq_ignore_ascii_case(&lower).then(|| value.to_owned())
        })
    }
}

/// Answers one connection after the other; an empty answer drops the connection.
fn serve(answers: Vec<String>) -> (SocketAddr, mpsc::Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, seen) = mpsc::channel();
    thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            let request = read(BufReader::new(stream.try_clone().expect("a second handle")));
            sender.send(request).ok();
            stream.write_all(answer.as_bytes()).ok();
        }
    });
    (address, seen)
}

fn read(mut from: impl BufRead) -> Seen {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        let length = from.read_line(&mut line).expect("a request");
        if length <= 2 {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let mut seen = Seen {
        line: lines.remove(0),
        headers: lines,
        body: String::new(),
    };
    let length = seen
        .header("content-length")
        .map_or(0, |text| text.parse().expect("a length"));
    from.take(length).read_to_string(&mut seen.body).expect("a body");
    seen
}

fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nX-Request-ID: r-1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Runs a command line against the server.
fn command(address: SocketAddr, words: &[&str]) -> Result<Exit, Failure> {
    let server = format!("http://{address}");
    let line = ["ductor", "--server", &server, "--quiet"];
    let arguments = Arguments::try_parse_from(line.iter().chain(words)).expect("good words");
    let session = Session::new(
        Client::new(&arguments.global.server(), &arguments.global.caller()?)?,
        Show::new(&arguments.global),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(perform(&session, arguments.command))
}

fn check(status: u16, body: &str, expected: u8, sentence: &str) {
    let (address, _seen) = serve(vec![answer(status, body)]);
    let failure = command(address, &["job", "show", "a"]).expect_err("a refusal");
    assert_eq!(failure.exit().code(), expected, "{status}");
    assert_eq!(failure.text(), format!("error: {sentence} (request r-1)\n"));
}

#[test]
fn refusals_become_exit_codes() {
    check(404, r#"{"error":"job 'a' not found"}"#, 3, "job 'a' not found");
    check(403, r#"{"detail":"not from here"}"#, 4, "not from here");
    check(
        409,
        r#"{"error":"job 'a' is disabled","code":"FAILED_PRECONDITION"}"#,
        5,
        "job 'a' is disabled",
    );
    check(
        503,
        r#"{"error":"pool state is unavailable"}"#,
        6,
        "pool state is unavailable",
    );
    let defect = "internal; this is a defect in ductor, please report it";
    check(500, r#"{"detail":"internal"}"#, 70, defect);
}

#[test]
fn nobody_there_is_69_with_advice() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let failure = command(address, &["job", "ls"]).expect_err("nobody is there");
    assert_eq!(failure.exit(), Exit::Unreachable);
    let text = failure.text();
    assert!(
        text.contains("refused") && text.contains("ductor serve"),
        "{text}"
    );
}

#[test]
fn something_else_there_is_69() {
    let (address, _seen) = serve(vec![answer(200, "<html>")]);
    let failure = command(address, &["job", "ls"]).expect_err("not ductor");
    assert_eq!(failure.exit(), Exit::Unreachable);
    assert!(failure.text().contains("is not ductor"), "{}", failure.text());
}

#[test]
fn a_dropped_change_is_sent_again_with_the_same_key() {
    let started = r#"{"started":"stock sync","runId":"run_1"}"#;
    let (address, seen) = serve(vec![String::new(), answer(200, started)]);
    let exit = command(address, &["job", "start", "stock sync"]).expect("the second try");
    assert_eq!(exit, Exit::Done);
    let requests: Vec<Seen> = seen.iter().collect();
    let keys: Vec<_> = requests
        .iter()
        .map(|request| request.header("idempotency-key"))
        .collect();
    assert_eq!(keys.len(), 2);
    assert!(keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
    assert_eq!(requests[1].line, "POST /jobs/stock%20sync/start HTTP/1.1");
}

#[test]
fn a_first_try_in_flight_is_asked_about_again() {
    let in_flight = answer(409, r#"{"code":"ABORTED","detail":"in flight"}"#);
    let (address, seen) = serve(vec![in_flight, answer(200, r#"{"started":"a","runId":"run_1"}"#)]);
    let line = ["job", "start", "a", "--idempotency-key", "k 1"];
    assert_eq!(command(address, &line), Ok(Exit::Done));
    let keys: Vec<_> = seen
        .iter()
        .map(|request| request.header("idempotency-key"))
        .collect();
    assert_eq!(keys, [Some("k 1".to_owned()), Some("k 1".to_owned())]);
}

#[test]
fn a_refused_change_is_not_sent_again() {
    let (address, seen) = serve(vec![answer(503, r#"{"error":"pool state is unavailable"}"#)]);
    let failure = command(address, &["job", "start", "a"]).expect_err("a refusal");
    assert_eq!(failure.exit(), Exit::Later);
    assert_eq!(seen.iter().count(), 1);
}

#[test]
fn waiting_ends_with_the_outcome_of_the_run() {
    let run = |state: &str| {
        answer(
            200,
            &format!(r#"{{"data":{{"id":"run_1","state":"{state}","steps":[]}}}}"#),
        )
    };
    let started = answer(200, r#"{"started":"a","runId":"run_1"}"#);
    for (state, exit) in [
        ("succeeded", Exit::Done),
        ("failed", Exit::Negative),
        ("skipped", Exit::Negative),
    ] {
        let (address, seen) = serve(vec![started.clone(), run("running"), run(state)]);
        assert_eq!(
            command(address, &["job", "start", "a", "--wait"]),
            Ok(exit),
            "{state}"
        );
        let lines: Vec<String> = seen.iter().map(|request| request.line).collect();
        assert_eq!(lines[2], "GET /api/runs/run_1 HTTP/1.1");
    }
}

#[test]
fn a_log_is_continued_where_its_stream_broke() {
    let run = |state: &str, live: &str| {
        let step = format!(r#"{{"ref":"main","state":"{state}","attempts":[],"live":{live}}}"#);
        answer(
            200,
            &format!(r#"{{"data":{{"id":"run_1","state":"{state}","steps":[{step}]}}}}"#),
        )
    };
    let live = r#"{"number":1,"fence":7}"#;
    let part = |events: &str| answer(200, events);
    let first = part("id: 6\ndata: {\"offset\":0,\"text\":\"o one\\n\"}\n\n");
    let second = part("id: 12\ndata: {\"offset\":6,\"text\":\"o two\\n\"}\n\nevent: end\ndata: {}\n\n");
    let answers = vec![
        run("running", live),
        first,
        run("running", live),
        second,
        run("succeeded", "null"),
    ];
    let (address, seen) = serve(answers);
    assert_eq!(command(address, &["run", "follow", "run_1"]), Ok(Exit::Done));
    let tails: Vec<String> = seen
        .iter()
        .map(|request| request.line)
        .filter(|line| line.contains("/log"))
        .collect();
    let path = "GET /api/runs/run_1/steps/main/attempts/1/log/tail";
    assert_eq!(
        tails,
        [0, 6].map(|offset| format!("{path}?offset={offset}&fence=7 HTTP/1.1"))
    );
}

#[test]
fn a_pause_says_how_long() {
    let (address, seen) = serve(vec![answer(
        200,
        r#"{"name":"a b","paused":{"until":"2099-01-01T00:00:00Z","note":"n"}}"#,
    )]);
    let line = ["slots", "pause", "a/b", "--for", "1h", "--note", "n"];
    assert_eq!(command(address, &line), Ok(Exit::Done));
    let request = seen.recv().expect("a request");
    assert_eq!(request.line, "POST /pools/a%2Fb/pause HTTP/1.1");
    assert_eq!(
        request.header("content-type").as_deref(),
        Some("application/json")
    );
    assert_eq!(request.body, r#"{"durationSeconds":3600,"note":"n"}"#);
}

#[test]
fn lists_are_read_page_by_page() {
    let page = |ids: &str, next: &str| answer(200, &format!(r#"{{"data":[{ids}],"pagination":{{{next}}}}}"#));
    let first = page(r#"{"id":"run_2","state":"failed"}"#, r#""next_cursor":"c1""#);
    let empty = page("", r#""next_cursor":"c2""#);
    let last = page(r#"{"id":"run_1","state":"failed"}"#, "");
    let (address, seen) = serve(vec![first, empty, last]);
    assert_eq!(
        command(
            address,
            &["run", "ls", "--where", "state:failed job:'a b'", "-n", "9"]
        ),
        Ok(Exit::Done)
    );
    let lines: Vec<String> = seen.iter().map(|request| request.line).collect();
    let query = "GET /api/runs?state=failed&job=a+b&pagination.page_size=";
    assert_eq!(
        lines,
        [
            format!("{query}9 HTTP/1.1"),
            format!("{query}8&pagination.cursor=c1 HTTP/1.1"),
            format!("{query}8&pagination.cursor=c2 HTTP/1.1"),
        ]
    );
}

#[test]
fn an_address_that_cannot_be_spoken_to_is_wrong_usage() {
    for (server, part) in [
        ("https://host:8470", "does not speak https"),
        ("ftp://host", "is no http address"),
        ("nowhere", "is no URL"),
    ] {
        let failure = server_url(server).expect_err("not an address");
        assert_eq!(failure.exit(), Exit::Usage);
        assert!(failure.text().contains(part), "{}", failure.text());
    }
}

#[test]
fn an_address_may_be_given_without_its_scheme() {
    for (server, url) in [
        ("127.0.0.1:1", "http://127.0.0.1:1/"),
        ("localhost:8470/", "http://localhost:8470/"),
        ("[::1]:8470", "http://[::1]:8470/"),
    ] {
        assert_eq!(server_url(server).expect(server).as_str(), url);
    }
}

#[test]
fn the_words_are_consistent() {
    use clap::CommandFactory;
    Arguments::command().debug_assert();
}
