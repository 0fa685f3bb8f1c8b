//! `text/event-stream` as a reader of events.

use std::io::{self, BufRead, BufReader, Read};
use std::mem;
use std::net::TcpStream;
use std::time::Duration;

use super::http::{Client, Headers, Response, is_chunked, read_body, read_chunk, read_head};
use super::wait::Deadline;

/// One event as the standard dispatches it; a comment is an event of the type `:`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Event {
    /// `message` when the stream names none.
    pub(crate) kind: String,
    pub(crate) id: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.data).unwrap_or_else(|error| panic!("not JSON: {error}: {self:?}"))
    }
}

/// An open stream; dropping it closes the connection.
pub(crate) struct EventStream {
    reader: BufReader<Body>,
    pub(crate) headers: Vec<(String, String)>,
    /// The unfinished line and event, which outlive a timeout.
    line: Vec<u8>,
    event: Event,
    data: Vec<String>,
}

impl EventStream {
    /// Opens the stream; an answer other than 200 is given back whole as the error.
    pub(crate) fn open(client: &Client, path: &str, headers: Headers<'_>) -> Result<EventStream, Response> {
        let mut all = vec![("accept", "text/event-stream")];
        all.extend_from_slice(headers);
        let mut wire = client
            .send("GET", path, &all, b"")
            .expect("connect to the stream");
        let (status, headers) = read_head(&mut wire).expect("the head of the stream");
        if status != 200 {
            let body = read_body(&mut wire, &headers).expect("the body of a refusal");
            return Err(Response {
                status,
                headers,
                body,
            });
        }
        let reader = BufReader::new(Body {
            wire,
            chunked: is_chunked(&headers),
            chunk: Vec::new(),
        });
        let event = Event::default();
        Ok(EventStream {
            reader,
            headers,
            line: Vec::new(),
            event,
            data: Vec::new(),
        })
    }

    /// The next event or comment; an error of the kind `WouldBlock` after `timeout` of silence, after which one may ask
    /// again; `None` at the end of the stream.
    pub(crate) fn next(&mut self, timeout: Duration) -> io::Result<Option<Event>> {
        let timeout = timeout.max(Duration::from_millis(1));
        self.reader
            .get_ref()
            .wire
            .get_ref()
            .set_read_timeout(Some(timeout))?;
        loop {
            if self.reader.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(&self.line)
                .trim_end_matches(['\r', '\n'])
                .to_owned();
            self.line.clear();
            if let Some(event) = self.take_line(&line) {
                return Ok(Some(event));
            }
        }
    }

    fn take_line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let data = mem::take(&mut self.data);
            let event = mem::take(&mut self.event);
            let kind = if event.kind.is_empty() {
                "message".to_owned()
            } else {
                event.kind
            };
            return (!data.is_empty()).then(|| Event {
                kind,
                id: event.id,
                data: data.join("\n"),
            });
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value).to_owned();
        match field {
            "" => {
                return Some(Event {
                    kind: ":".to_owned(),
                    id: None,
                    data: value,
                });
            }
            "event" => self.event.kind = value,
            "id" => self.event.id = Some(value),
            "data" => self.data.push(value),
            _ => {}
        }
        None
    }

    /// The first event that `accept` likes; what comes before it is skipped. Fails the test when `timeout` has passed.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, timeout: Duration, accept: impl Fn(&Event) -> bool) -> Event {
        let deadline = Deadline::after(timeout);
        loop {
            let event = self
                .next(deadline.left())
                .expect("an event in time")
                .expect("the stream goes on");
            if accept(&event) {
                return event;
            }
        }
    }
}

/// The bytes of the body, chunks undone.
struct Body {
    wire: BufReader<TcpStream>,
    chunked: bool,
    chunk: Vec<u8>,
}

impl Read for Body {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.chunked {
            return self.wire.read(into);
        }
        if self.chunk.is_empty() {
            self.chunk = read_chunk(&mut self.wire)?.unwrap_or_default();
        }
        let count = into.len().min(self.chunk.len());
        into[..count].copy_from_slice(&self.chunk[..count]);
        self.chunk.drain(..count);
        Ok(count)
    }
}
