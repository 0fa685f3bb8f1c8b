//! A receiver of webhooks on loopback: keeps what it got and answers as a test wants.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::Value;

use super::http::header;
use super::wait::{PATIENCE, wait_until};

/// One request that came.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        header(&self.headers, name).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("not JSON: {error}: {:?}", String::from_utf8_lossy(&self.body)))
    }
}

/// What a receiver does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Answers with this status.
    Status(u16),
    /// Reads the request and hangs up.
    HangUp,
    /// Reads the request and says nothing until the other end goes.
    Silence,
}

/// Listens until the test's process ends.
#[derive(Clone)]
pub(crate) struct Receiver {
    port: u16,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    received: Vec<Received>,
    answer: Answer,
}

impl Receiver {
    /// A receiver on a port of the kernel's choice.
    pub(crate) fn new(answer: Answer) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let receiver = Receiver {
            port: listener.local_addr().expect("an address").port(),
            inner: Arc::new(Mutex::new(Inner {
                received: Vec::new(),
                answer,
            })),
        };
        let own = receiver.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                // A connection that breaks is the business of the other end.
                thread::spawn(move || own.serve(&stream).ok());
            }
        });
        receiver
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        let received = read_request(&mut reader)?;
        let answer = {
            let mut inner = self.lock();
            inner.received.push(received);
            inner.answer
        };
        match answer {
            Answer::Status(status) => {
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let mut stream = stream;
                stream.write_all(head.as_bytes())
            }
            Answer::HangUp => Ok(()),
            Answer::Silence => reader.read_to_end(&mut Vec::new()).map(|_| ()),
        }
    }

    /// `http://127.0.0.1:PORT/path`
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    /// From now on.
    pub(crate) fn answer(&self, answer: Answer) {
        self.lock().answer = answer;
    }

    /// What came so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.lock().received.clone()
    }

    /// Waits until so many requests have come.
    #[track_caller]
    pub(crate) fn wait(&self, count: usize) -> Vec<Received> {
        let found = wait_until(PATIENCE, || {
            let received = self.received();
            (received.len() >= count).then_some(received)
        });
        found.unwrap_or_else(|| panic!("{count} requests did not come: {:?}", self.received()))
    }
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Received> {
    let mut line = || -> io::Result<String> {
        let mut text = String::new();
        reader.read_line(&mut text)?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    };
    let first = line()?;
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = Vec::new();
    loop {
        let text = line()?;
        let Some((name, value)) = text.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = header(&headers, "content-length").and_then(|length| length.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Received {
        method,
        path,
        headers,
        body,
    })
}
