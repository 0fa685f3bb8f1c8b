//! The harness's own parts against servers and streams made here: it must not pass what is broken.

mod support;

use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use support::{Client, EventStream, Output, PATIENCE, Place, wait_until};

/// Answers one connection with these bytes, after the request's head; gives the head back.
fn serve_once(answer: &'static [u8]) -> (Client, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let client = Client::new(&format!("http://{}/", listener.local_addr().expect("an address")));
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut head = String::new();
        while reader.read_line(&mut head).expect("a request") > 2 {}
        stream.write_all(answer).expect("answer");
        sender.send(head).ok();
    });
    (client, receiver)
}

#[test]
fn a_body_of_known_length() {
    let (client, heads) =
        serve_once(b"HTTP/1.1 404 Not Found\r\nX-A: one\r\nContent-Length: 9\r\n\r\n{\"a\": 1}\nrest");
    let answer = client
        .request("POST", "/x", &[("x-b", "two")], b"abc")
        .expect("an answer");
    assert_eq!((answer.status, answer.header("x-a")), (404, Some("one")));
    assert_eq!(answer.json()["a"], 1);
    let head = heads.recv_timeout(PATIENCE).expect("the request");
    assert!(head.starts_with("POST /x HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-length: 3\r\n") && head.contains("x-b: two\r\n"),
        "{head}"
    );
}

#[test]
fn a_body_in_chunks() {
    let (client, _heads) = serve_once(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=1\r\nhello\r\nA\r\n, my world\r\n0\r\nT: 1\r\n\r\n",
    );
    let answer = client.request("GET", "/", &[], b"").expect("an answer");
    assert_eq!(answer.text(), "hello, my world");
}

#[test]
fn a_body_until_the_end_and_no_body() {
    let (client, _heads) = serve_once(b"HTTP/1.1 200 OK\r\n\r\nall of it");
    assert_eq!(
        client.request("GET", "/", &[], b"").expect("an answer").text(),
        "all of it"
    );
    let (client, _heads) = serve_once(b"HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!(
        client.request("DELETE", "/", &[], b"").expect("an answer").body,
        b""
    );
}

#[test]
fn a_broken_answer_is_an_error() {
    let cut: [&[u8]; 5] = [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n",
        b"nonsense\r\n\r\n",
    ];
    for answer in cut {
        let (client, _heads) = serve_once(answer);
        assert!(
            client.request("GET", "/", &[], b"").is_err(),
            "{}",
            String::from_utf8_lossy(answer)
        );
    }
}

#[test]
fn events_of_a_stream() {
    let (client, heads) = serve_once(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
          10\r\nid: 7.1\ndata: {}\r\n16\r\n\ndata: b\n\n: still here\r\n17\r\n\n\nevent: bye\ndata:\n\nda\n\r\n0\r\n\r\n",
    );
    let mut stream =
        EventStream::open(&client, "/api/stream", &[("last-event-id", "7.0")]).expect("a stream");
    let first = stream.next(PATIENCE).expect("in time").expect("an event");
    assert_eq!(
        (first.kind.as_str(), first.id.as_deref(), first.data.as_str()),
        ("message", Some("7.1"), "{}\nb")
    );
    let comment = stream.next(PATIENCE).expect("in time").expect("a comment");
    assert_eq!(
        (comment.kind.as_str(), comment.data.as_str()),
        (":", "still here")
    );
    let last = stream.wait_for(PATIENCE, |event| event.kind == "bye");
    assert_eq!((last.id, last.data.as_str()), (None, ""));
    assert_eq!(stream.next(PATIENCE).expect("the end"), None);
    assert!(
        heads
            .recv_timeout(PATIENCE)
            .expect("the request")
            .contains("last-event-id: 7.0\r\n")
    );
}

#[test]
fn a_refused_stream_is_an_answer() {
    let (client, _heads) = serve_once(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}");
    let refused = EventStream::open(&client, "/api/stream", &[])
        .err()
        .expect("a refusal");
    assert_eq!((refused.status, refused.text().as_str()), (401, "{}"));
}

#[test]
fn silence_of_a_stream_is_an_error_and_loses_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("listen");
    let client = Client::new(&format!("http://{}", listener.local_addr().expect("an address")));
    let (go, wait) = mpsc::channel::<()>();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream
            .write_all(b"HTTP/1.1 200 OK\r\n\r\nid: 1\nda")
            .expect("the first half");
        wait.recv().expect("the word to go on");
        stream.write_all(b"ta: x\n\n").expect("the second half");
    });
    let mut stream = EventStream::open(&client, "/", &[]).expect("a stream");
    assert!(stream.next(Duration::from_millis(20)).is_err());
    go.send(()).expect("the server waits");
    let event = stream.next(PATIENCE).expect("in time").expect("an event");
    assert_eq!((event.id.as_deref(), event.data.as_str()), (Some("1"), "x"));
    server.join().expect("the server ends");
}

#[test]
fn lines_are_found_before_and_after_they_are_awaited() {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    let output = Output::collect(reader, Cursor::new("warning: \u{fffd}\nlast, without an end"));
    assert_eq!(
        output.wait_for("without", PATIENCE).as_deref(),
        Some("last, without an end")
    );
    assert_eq!(output.wait_for("hello", Duration::from_millis(10)), None);
    let later = thread::spawn(move || writer.write_all(b"one\nhello there\n"));
    assert_eq!(output.wait_for("hello", PATIENCE).as_deref(), Some("hello there"));
    later.join().expect("the writer ends").expect("write");
    assert!(output.wait_end(PATIENCE));
    assert_eq!(output.stdout(), ["one", "hello there"]);
    assert_eq!(output.count("e"), 3);
    assert_eq!(output.wait_for("never", PATIENCE), None);
}

#[test]
fn waiting_ends_with_an_answer_or_at_the_deadline() {
    let mut asked = 0;
    let found = wait_until(PATIENCE, || {
        asked += 1;
        (asked == 3).then_some(asked)
    });
    assert_eq!(found, Some(3));
    assert_eq!(wait_until(Duration::ZERO, || None::<()>), None);
    assert_eq!(wait_until(Duration::ZERO, || Some(())), Some(()));
}

#[test]
fn a_place_goes_with_its_last_owner() {
    let place = Place::new("jobs: []\n");
    let folder = place.folder().to_path_buf();
    let shared = place.clone();
    drop(place);
    shared.write_config("jobs:\n");
    assert_eq!(shared.read("ductor.yaml").as_deref(), Some("jobs:\n"));
    drop(shared);
    assert!(!folder.exists());
}

#[test]
fn reading_to_the_end_is_bounded() {
    let (client, _heads) = serve_once(b"HTTP/1.1 200 OK\r\n\r\nabc");
    let mut wire = client.send("GET", "/", &[], b"").expect("a connection");
    let mut text = String::new();
    wire.read_to_string(&mut text).expect("all of it");
    assert!(text.ends_with("abc"));
}
