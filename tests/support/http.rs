//! HTTP/1.1 as plainly as it can be written: one request per connection, so that a test sees what is on the wire.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::wait::PATIENCE;

/// Headers of a request.
pub(crate) type Headers<'a> = &'a [(&'a str, &'a str)];

/// Talks to one address; cheap to clone and to send to another thread.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// `host:port`
    authority: String,
}

/// What came back, decoded.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// In the order of the wire, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|error| panic!("not JSON: {error}: {} {}", self.status, self.text()))
    }

    /// Itself, after a check of the status that shows the body when it fails.
    #[track_caller]
    pub(crate) fn expect_status(self, status: u16) -> Response {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

impl Client {
    /// For a URL such as `http://127.0.0.1:8470`; a path in it is dropped.
    pub(crate) fn new(url: &str) -> Client {
        let rest = url.strip_prefix("http://").expect("an http URL");
        Client {
            authority: rest.split('/').next().unwrap_or_default().to_owned(),
        }
    }

    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// One request; an error is a connection that failed or broke, which is what a test of kill -9 wants to see.
    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: &[u8],
    ) -> io::Result<Response> {
        let mut reader = self.send(method, path, headers, body)?;
        let (status, headers) = read_head(&mut reader)?;
        let body = if method == "HEAD" || matches!(status, 204 | 304) {
            Vec::new()
        } else {
            read_body(&mut reader, &headers)?
        };
        Ok(Response {
            status,
            headers,
            body,
        })
    }

    /// Sends a request and leaves the answer in the reader.
    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: Headers<'_>,
        body: &[u8],
    ) -> io::Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.authority)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
        let given = |name: &str| headers.iter().any(|(have, _)| have.eq_ignore_ascii_case(name));
        let length = body.len().to_string();
        let own = [
            ("host", self.authority.as_str()),
            ("connection", "close"),
            ("content-length", &length),
        ];
        for (name, value) in own.iter().filter(|(name, _)| !given(name)).chain(headers) {
            write!(bytes, "{name}: {value}\r\n")?;
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        // A server that refuses early may have closed; its answer is still to be read.
        let written = stream.write_all(&bytes);
        if written.is_err() && body.is_empty() {
            written?;
        }
        Ok(BufReader::new(stream))
    }
}

pub(crate) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(have, _)| have.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

pub(crate) fn read_head(reader: &mut impl BufRead) -> io::Result<(u16, Vec<(String, String)>)> {
    let first = read_line(reader)?;
    let status = first.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or_else(|| broken(format!("not a status line: {first:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            return Ok((status, headers));
        }
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| broken(format!("not a header: {line:?}")))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

pub(crate) fn is_chunked(headers: &[(String, String)]) -> bool {
    header(headers, "transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"))
}

pub(crate) fn read_body(reader: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if is_chunked(headers) {
        while let Some(mut chunk) = read_chunk(reader)? {
            body.append(&mut chunk);
        }
        while !read_line(reader)?.is_empty() {}
    } else if let Some(length) = header(headers, "content-length") {
        let length = length
            .parse()
            .map_err(|_| broken(format!("not a length: {length:?}")))?;
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    } else {
        reader.read_to_end(&mut body)?;
    }
    Ok(body)
}

/// The next chunk; `None` for the last, whose trailers are still to be read.
pub(crate) fn read_chunk(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let line = read_line(reader)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    let size =
        usize::from_str_radix(digits, 16).map_err(|_| broken(format!("not a chunk size: {line:?}")))?;
    if size == 0 {
        return Ok(None);
    }
    let mut chunk = vec![0; size];
    reader.read_exact(&mut chunk)?;
    if !read_line(reader)?.is_empty() {
        return Err(broken(format!("a chunk is longer than its size {line:?}")));
    }
    Ok(Some(chunk))
}

fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the connection ended inside an answer",
        ));
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn broken(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
