//! What a step of the type HTTP asks for, after its arguments were read and worked out.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::limits;
use crate::words::payload::JsonText;

/// How something is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// The default without a body.
    Get,
    /// As GET, without the body of the answer.
    Head,
    /// The default with a body.
    Post,
    /// Replace.
    Put,
    /// Change a part.
    Patch,
    /// Remove.
    Delete,
    /// What can be done.
    Options,
}

impl HttpMethod {
    /// All, in the order of the documentation.
    pub const ALL: [HttpMethod; 7] = [
        HttpMethod::Get,
        HttpMethod::Head,
        HttpMethod::Post,
        HttpMethod::Put,
        HttpMethod::Patch,
        HttpMethod::Delete,
        HttpMethod::Options,
    ];

    /// As it is sent.
    pub fn word(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Head => "HEAD",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
            HttpMethod::Patch => "PATCH",
            HttpMethod::Delete => "DELETE",
            HttpMethod::Options => "OPTIONS",
        }
    }

    /// The method of a word in any case.
    pub fn of_word(word: &str) -> Option<HttpMethod> {
        { HttpMethod::ALL.into_iter() }.find(|method| method.word().eq_ignore_ascii_case(word))
    }
}

/// A status that counts as success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatusWanted {
    /// This one.
    Code(u16),
    /// All that begin with this digit: `2xx`.
    Class(u8),
}

impl StatusWanted {
    /// What `expect` holds when nothing is said.
    pub const SUCCESS: StatusWanted = StatusWanted::Class(2);

    /// `204` or `2xx`.
    pub fn of_word(word: &str) -> Option<StatusWanted> {
        let (class, rest) = word.split_at_checked(1)?;
        let class = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        match rest {
            "xx" | "XX" => Some(StatusWanted::Class(class)),
            _ => word.parse().ok().and_then(StatusWanted::of_number),
        }
    }

    /// A status as a number.
    pub fn of_number(code: u16) -> Option<StatusWanted> {
        (100..=599).contains(&code).then_some(StatusWanted::Code(code))
    }

    /// Whether a status is meant.
    pub fn covers(self, status: u16) -> bool {
        match self {
            StatusWanted::Code(code) => code == status,
            StatusWanted::Class(class) => u16::from(class) == status / 100,
        }
    }
}

impl fmt::Display for StatusWanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StatusWanted::Code(code) => write!(out, "{code}"),
            StatusWanted::Class(class) => write!(out, "{class}xx"),
        }
    }
}

/// One request. Its `Debug` shows no value of a header and nothing of the URL: tokens stand there.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequestSpec {
    /// How.
    pub method: HttpMethod,
    /// Where, with or without a query.
    pub url: String,
    /// Further headers; a name is sent once.
    pub headers: BTreeMap<String, String>,
    /// What is appended to the query of the URL.
    pub query: Vec<(String, String)>,
    /// What is sent: JSON, or the letters of a JSON string if `content-type` says another type.
    pub body: Option<JsonText>,
    /// From the lookup of the name to the last byte of the answer.
    pub timeout_ms: u64,
    /// Which statuses are success; empty stands for all of 2xx.
    pub expect: Vec<StatusWanted>,
    /// How many redirects are followed.
    pub follow_redirects: u32,
    /// The longest body of an answer.
    pub max_response_bytes: u64,
}

impl HttpRequestSpec {
    /// A request with everything else as it is when nothing is said.
    pub fn new(method: HttpMethod, url: &str) -> HttpRequestSpec {
        HttpRequestSpec {
            method,
            url: url.to_owned(),
            headers: BTreeMap::new(),
            query: Vec::new(),
            body: None,
            timeout_ms: limits::HTTP_TIMEOUT_MS,
            expect: Vec::new(),
            follow_redirects: 0,
            max_response_bytes: limits::HTTP_ANSWER_BYTES,
        }
    }

    /// Whether a status is success.
    pub fn expects(&self, status: u16) -> bool {
        if self.expect.is_empty() {
            return StatusWanted::SUCCESS.covers(status);
        }
        self.expect.iter().any(|wanted| wanted.covers(status))
    }
}

impl fmt::Debug for HttpRequestSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("HttpRequestSpec")
            .field("method", &self.method)
            .field("headers", &self.headers.keys())
            .field("body_bytes", &self.body.as_ref().map(|body| body.as_str().len()))
            .field("timeout_ms", &self.timeout_ms)
            .field("expect", &self.expect)
            .field("follow_redirects", &self.follow_redirects)
            .field("max_response_bytes", &self.max_response_bytes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_read_as_codes_and_classes() {
        let check = |word: &str, covered: &[u16], not: &[u16]| {
            let wanted = StatusWanted::of_word(word).unwrap();
            assert_eq!(wanted.to_string(), word);
            assert!(covered.iter().all(|status| wanted.covers(*status)), "{word}");
            assert!(!not.iter().any(|status| wanted.covers(*status)), "{word}");
        };
        check("2xx", &[200, 204, 299], &[199, 300]);
        check("404", &[404], &[400, 405]);
        for bad in [
            "", "2", "20", "0xx", "6xx", "2xxx", "600", "99", "+20", "2x", "é00",
        ] {
            assert_eq!(StatusWanted::of_word(bad), None, "{bad}");
        }
    }

    #[test]
    fn nothing_said_expects_success() {
        let mut spec = HttpRequestSpec::new(HttpMethod::Get, "https://example.org");
        assert!(spec.expects(201) && !spec.expects(302));
        spec.expect = vec![StatusWanted::Code(404)];
        assert!(spec.expects(404) && !spec.expects(200));
        assert_eq!(HttpMethod::of_word("patch"), Some(HttpMethod::Patch));
        assert_eq!(HttpMethod::of_word("TRACE"), None);
    }

    #[test]
    fn debug_shows_no_value() {
        let mut spec = HttpRequestSpec::new(HttpMethod::Get, "https://example.org/secret-path");
        spec.headers
            .insert("authorization".to_owned(), "secret-token".to_owned());
        spec.query.push(("key".to_owned(), "secret-key".to_owned()));
        let shown = format!("{spec:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(shown.contains("authorization"));
    }
}
