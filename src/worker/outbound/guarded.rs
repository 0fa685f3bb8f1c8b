//! The HTTP client of workflows: one request, behind the egress guard.
//!
//! A name is looked up once, every address of the answer is judged, and the connection goes to one of those that were
//! allowed: the client's own resolver knows nothing but them, so there is no second answer that could differ. No redirect
//! is followed here, no proxy comes from the environment, and no connection is kept for the next request, which may have
//! to be judged by other rules.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use tokio::sync::OnceCell;

use super::guard::{Decision, Denied, Reason, decide};
use super::target::Target;
use crate::domain::workflow::http_args::HttpMethod;
use crate::words::limits;
use crate::words::network::EgressRule;

tokio::task_local! {
    /// The addresses that the request under way may connect to.
    static PINNED: Arc<[SocketAddr]>;
}

/// Knows the addresses that were judged, and no others. The client asks it in the task that sends the request, because it
/// keeps no connections; in any other task there is no answer.
struct Pinned;

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let pinned = PINNED.try_with(Clone::clone);
        Box::pin(std::future::ready(match pinned {
            Ok(addresses) => Ok(Box::new(addresses.iter().copied().collect::<Vec<_>>().into_iter()) as Addrs),
            Err(_) => Err("no address of this name was judged".into()),
        }))
    }
}

/// What is sent.
pub struct Request<'r> {
    /// How.
    pub method: HttpMethod,
    /// Where.
    pub target: &'r Target,
    /// Each passed [`check_header`]; others are left out.
    pub headers: &'r [(String, String)],
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// Where a request went, and by which rule it was allowed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Host and port as the request names them.
    pub to: String,
    /// The addresses that were allowed.
    pub addresses: Vec<SocketAddr>,
    /// Why the first of them was.
    pub reason: Reason,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendFailure {
    /// The guard lets no address of it pass.
    Denied(Denied),
    /// The name has no address.
    Lookup(String),
    /// Nobody answers there.
    Connect(String),
    /// The encryption could not be agreed on, or the certificate is not good.
    Tls(String),
    /// The connection ended, or what came was no answer.
    Broken(String),
    /// There is no client.
    Client(String),
}

/// The head of an answer, with its body to be read.
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The name of the status.
    pub reason: &'static str,
    /// Its headers: names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    response: Response,
}

impl Answer {
    /// Bytes that the body should have, if the answer says so.
    pub fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// The next piece of the body.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, SendFailure> {
        match self.response.chunk().await {
            Ok(chunk) => Ok(chunk.map(|bytes| bytes.to_vec())),
            Err(error) => Err(SendFailure::Broken(cause_of(&error.without_url()))),
        }
    }
}

/// What is wrong with a header that cannot be sent.
pub fn check_header(name: &str, value: &str) -> Result<(), &'static str> {
    header(name, value).map(drop)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), &'static str> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| "its name is no name of a header")?;
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| "its value has a control character or more than one line")?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// The client. Clones share it.
#[derive(Debug, Clone)]
pub struct GuardedClient {
    plain: Option<Client>,
    /// Made when it is needed first: reading the machine's certificates takes a while.
    secure: Arc<OnceCell<Client>>,
}

impl GuardedClient {
    /// A client that has sent nothing yet.
    pub fn new() -> GuardedClient {
        GuardedClient {
            plain: builder().tls_certs_only([]).build().ok(),
            secure: Arc::default(),
        }
    }

    /// Sends one request if the guard lets it pass. The second value says where it went, also when that failed.
    pub async fn send(
        &self,
        request: Request<'_>,
        rules: &[EgressRule],
    ) -> (Result<Answer, SendFailure>, Option<Passage>) {
        let passage = match passage_to(request.target, rules).await {
            Ok(passage) => passage,
            Err(failure) => return (Err(failure), None),
        };
        let pinned: Arc<[SocketAddr]> = passage.addresses.as_slice().into();
        let answer = PINNED.scope(pinned, self.exchange(request)).await;
        (answer, Some(passage))
    }

    async fn exchange(&self, request: Request<'_>) -> Result<Answer, SendFailure> {
        let Request {
            method,
            target,
            headers,
            body,
        } = request;
        let client = self.client_for(target).await?;
        let method = match method {
            HttpMethod::Get => reqwest::Method::GET,
            HttpMethod::Head => reqwest::Method::HEAD,
            HttpMethod::Post => reqwest::Method::POST,
            HttpMethod::Put => reqwest::Method::PUT,
            HttpMethod::Patch => reqwest::Method::PATCH,
            HttpMethod::Delete => reqwest::Method::DELETE,
            HttpMethod::Options => reqwest::Method::OPTIONS,
        };
        let headers: HeaderMap = { headers.iter() }
            .filter_map(|(name, value)| header(name, value).ok())
            .collect();
        let mut prepared = client.request(method, target.url.clone()).headers(headers);
        if let Some(body) = body {
            prepared = prepared.body(body);
        }
        match prepared.send().await {
            Ok(response) => Ok(Answer {
                status: response.status().as_u16(),
                reason: response.status().canonical_reason().unwrap_or_default(),
                headers: texts_of(response.headers()),
                response,
            }),
            Err(error) => Err(failure_of(error, target.is_secure())),
        }
    }

    async fn client_for(&self, target: &Target) -> Result<Client, SendFailure> {
        if !target.is_secure() {
            let why = || SendFailure::Client("the HTTP client could not start".to_owned());
            return self.plain.clone().ok_or_else(why);
        }
        let make = async || match tokio::task::spawn_blocking(|| builder().build()).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => Err(SendFailure::Client(format!(
                "TLS cannot be used: {}",
                cause_of(&error)
            ))),
            Err(error) => Err(SendFailure::Client(error.to_string())),
        };
        self.secure.get_or_try_init(make).await.cloned()
    }
}

impl Default for GuardedClient {
    fn default() -> GuardedClient {
        GuardedClient::new()
    }
}

fn texts_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = headers.iter();
    headers
        .map(|(name, value)| (name.as_str().to_owned(), text(value)))
        .collect()
}

fn builder() -> reqwest::ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .pool_max_idle_per_host(0)
        .dns_resolver(Arc::new(Pinned))
        .user_agent(concat!("ductor/", env!("CARGO_PKG_VERSION")))
}

/// Looks the target up and judges what is found. What may not be reached is dropped from the answer; nothing left is a
/// refusal.
async fn passage_to(target: &Target, rules: &[EgressRule]) -> Result<Passage, SendFailure> {
    let (name, port) = (target.name(), target.port());
    let found: Vec<SocketAddr> = match (target.address(), name) {
        (Some(address), _) => vec![SocketAddr::new(address, port)],
        (None, Some(name)) => {
            let answer = tokio::net::lookup_host((name, port)).await;
            let answer = answer.map_err(|error| SendFailure::Lookup(error.to_string()))?;
            answer.take(limits::HTTP_ADDRESSES_MAX).collect()
        }
        (None, None) => Vec::new(),
    };
    let mut passage: Option<Passage> = None;
    let mut denied = None;
    for address in found {
        match decide(address.ip(), name, port, rules) {
            Decision::Allowed(reason) => match &mut passage {
                Some(passage) => passage.addresses.push(address),
                None => {
                    passage = Some(Passage {
                        to: target.shown(),
                        addresses: vec![address],
                        reason,
                    });
                }
            },
            Decision::Denied(why) => denied = denied.or(Some(why)),
        }
    }
    passage.ok_or_else(|| match denied {
        Some(why) => SendFailure::Denied(why),
        None => SendFailure::Lookup("the name has no address".to_owned()),
    })
}

fn failure_of(error: reqwest::Error, is_secure: bool) -> SendFailure {
    let error = error.without_url();
    let cause = cause_of(&error);
    if !error.is_connect() {
        return SendFailure::Broken(cause);
    }
    if is_secure && is_of_tls(&error) {
        return SendFailure::Tls(cause);
    }
    SendFailure::Connect(cause)
}

/// What rustls refuses comes as invalid data; who speaks no TLS hangs up in its middle.
fn is_of_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        let io = cause.downcast_ref::<std::io::Error>();
        let kind = io.map(std::io::Error::kind);
        if let Some(std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof) = kind {
            return true;
        }
        // The source of an I/O error is not what it wraps, but what stands behind that.
        next = match io.and_then(std::io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    false
}

/// The innermost cause, which is the one that helps.
fn cause_of(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passage(url: &str, rules: &[&str]) -> Result<Passage, SendFailure> {
        let rules: Vec<EgressRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        passage_to(&Target::parse(url).unwrap(), &rules).await
    }

    #[tokio::test]
    async fn a_name_that_leads_inside_is_denied_unless_it_is_listed() {
        for url in ["http://localhost/", "http://LOCALHOST:81/"] {
            assert_eq!(
                passage(url, &[]).await.unwrap_err(),
                SendFailure::Denied(Denied::Loopback),
                "{url}"
            );
        }
        let allowed = passage("http://localhost:81/", &["localhost:81"]).await.unwrap();
        assert!(!allowed.addresses.is_empty());
        assert!(
            allowed
                .addresses
                .iter()
                .all(|address| address.ip().is_loopback() && address.port() == 81)
        );
        assert_eq!(allowed.reason.to_string(), "egress.allow localhost:81");
        let only_v4 = passage("http://localhost:81/", &["127.0.0.1"]).await.unwrap();
        assert!(only_v4.addresses.iter().all(SocketAddr::is_ipv4), "{only_v4:?}");
    }

    #[tokio::test]
    async fn an_address_is_judged_without_a_lookup() {
        for url in [
            "http://0x7f.1/",
            "http://[::ffff:127.0.0.1]/",
            "http://2130706433/",
        ] {
            let denied = passage(url, &[]).await.unwrap_err();
            assert_eq!(denied, SendFailure::Denied(Denied::Loopback), "{url}");
        }
        let public = passage("http://1.1.1.1/", &[]).await.unwrap();
        assert_eq!(
            (public.to.as_str(), public.reason),
            ("1.1.1.1:80", Reason::Public)
        );
    }

    #[tokio::test]
    async fn the_client_knows_no_address_that_was_not_judged() {
        let target = Target::parse("http://localhost:9/").unwrap();
        let request = Request {
            method: HttpMethod::Get,
            target: &target,
            headers: &[],
            body: None,
        };
        // The same client, without the judgement before it.
        match GuardedClient::new().exchange(request).await {
            Err(SendFailure::Connect(why)) => assert_eq!(why, "no address of this name was judged"),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("it connected"),
        }
    }

    #[test]
    fn a_header_is_checked_before_it_is_sent() {
        assert_eq!(check_header("x-a", "b c\u{e9}"), Ok(()));
        assert!(check_header("x a", "b").is_err());
        assert!(check_header("x-a", "b\r\nx: y").is_err());
    }
}
