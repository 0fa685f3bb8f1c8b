//! The HTTP client of the daemon. The only file that sends something to another host.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use tokio::sync::OnceCell;

use super::letter::{Letter, Method};
use crate::domain::report::Delivery;
use crate::words::limits;

/// Characters of a failed answer that are shown.
const SHOWN_MAX: usize = 160;

/// Sends letters. Clones share its clients.
#[derive(Debug, Clone)]
pub struct Outbound {
    plain: Option<Client>,
    /// Made when it is needed first: a machine without certificates of authorities can still be told over http.
    secure: Arc<OnceCell<Client>>,
    timeout: Duration,
}

impl Outbound {
    /// A sender that has sent nothing yet.
    pub fn new() -> Outbound {
        Outbound::with_timeout(Duration::from_millis(limits::WEBHOOK_TIMEOUT_MS))
    }

    fn with_timeout(timeout: Duration) -> Outbound {
        Outbound {
            plain: client().tls_certs_only([]).build().ok(),
            secure: Arc::default(),
            timeout,
        }
    }

    /// Sends a letter. Any status of success is a delivery; 410 says that nobody will ever listen there again.
    pub async fn send(&self, letter: &Letter) -> Delivery {
        match tokio::time::timeout(self.timeout, self.exchange(letter)).await {
            Ok(delivery) => delivery,
            Err(_) => Delivery::Failed(format!("no answer within {} s", self.timeout.as_secs())),
        }
    }

    async fn exchange(&self, letter: &Letter) -> Delivery {
        let client = match self.client_for(&letter.url).await {
            Ok(client) => client,
            Err(why) => return Delivery::Failed(why),
        };
        let mut request = match letter.method {
            Method::Get => client.get(&letter.url),
            Method::Post => client.post(&letter.url).body(letter.body.clone()),
        };
        for (name, value) in &letter.headers {
            request = request.header(name, value);
        }
        match request.send().await {
            Ok(answer) => judge(answer, letter).await,
            Err(error) => Delivery::Failed(letter.shown(&cause_of(error))),
        }
    }

    async fn client_for(&self, url: &str) -> Result<Client, String> {
        let is_secure = url
            .get(..8)
            .is_some_and(|begin| begin.eq_ignore_ascii_case("https://"));
        if !is_secure {
            return self
                .plain
                .clone()
                .ok_or_else(|| "the HTTP client could not start".to_owned());
        }
        let make = async || {
            let built = tokio::task::spawn_blocking(|| client().build()).await;
            match built {
                Ok(Ok(client)) => Ok(client),
                Ok(Err(error)) => Err(format!("TLS cannot be used: {}", cause_of(error))),
                Err(error) => Err(error.to_string()),
            }
        };
        self.secure.get_or_try_init(make).await.cloned()
    }
}

impl Default for Outbound {
    fn default() -> Outbound {
        Outbound::new()
    }
}

fn client() -> reqwest::ClientBuilder {
    Client::builder()
        // Only the variables that are documented are read: no proxy comes from the environment.
        .no_proxy()
        .redirect(Policy::none())
        .pool_max_idle_per_host(0)
        .connect_timeout(Duration::from_millis(limits::WEBHOOK_TIMEOUT_MS / 2))
        .user_agent(concat!("ductor/", env!("CARGO_PKG_VERSION")))
}

async fn judge(answer: Response, letter: &Letter) -> Delivery {
    let status = answer.status();
    if status.is_success() {
        return Delivery::Done;
    }
    let code = status.as_u16();
    let name = status.canonical_reason().unwrap_or_default();
    let said = format!("the receiver answered {code} {name}")
        .trim_end()
        .to_owned();
    if status == StatusCode::GONE {
        return Delivery::Refused(said);
    }
    if status.is_redirection() {
        return Delivery::Failed(format!(
            "{said}; redirects are not followed, give the final address"
        ));
    }
    let begin = beginning(answer).await;
    let begin = letter.shown(&begin);
    let shown: String = begin
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .filter(|letter| !letter.is_control())
        .take(SHOWN_MAX)
        .collect();
    Delivery::Failed(if shown.is_empty() {
        said
    } else {
        format!("{said}: {shown}")
    })
}

/// The first bytes of an answer, however long it would become.
async fn beginning(mut answer: Response) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < limits::WEBHOOK_ANSWER_BYTES_MAX {
        match answer.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) | Err(_) => break,
        }
    }
    bytes.truncate(limits::WEBHOOK_ANSWER_BYTES_MAX);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The innermost cause, which is the one that helps: `Connection refused`, not `error sending request`.
fn cause_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::domain::report::Value;

    /// A receiver that answers with these bytes and then goes on as `endless` says.
    async fn receiver(answer: &'static str, endless: bool) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    let read = stream.read(&mut request).await;
                    let mut alive = read.is_ok() && stream.write_all(answer.as_bytes()).await.is_ok();
                    if answer.is_empty() {
                        // It never answers, and holds the connection until the other end has had enough.
                        while stream.read(&mut request).await.is_ok_and(|count| count > 0) {}
                    }
                    while endless && alive {
                        alive = stream.write_all(&[b'x'; 4096]).await.is_ok();
                    }
                });
            }
        });
        format!("http://{address}/hook/with-a-token")
    }

    async fn sent(url: &str, timeout_ms: u64) -> Delivery {
        let letter = Letter::of_heartbeat(&Value::Literal(url.to_owned())).unwrap();
        let outbound = Outbound::with_timeout(Duration::from_millis(timeout_ms));
        outbound.send(&letter).await
    }

    async fn failed(url: &str, timeout_ms: u64) -> String {
        match sent(url, timeout_ms).await {
            Delivery::Failed(why) => why,
            other @ (Delivery::Done | Delivery::Refused(_)) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_hostile_receiver_costs_a_bounded_time() {
        let silent = receiver("", false).await;
        assert_eq!(failed(&silent, 1_000).await, "no answer within 1 s");
        let endless = receiver("HTTP/1.1 500 X\r\ncontent-type: text/plain\r\n\r\n", true).await;
        let why = failed(&endless, 5_000).await;
        assert_eq!(
            why,
            format!(
                "the receiver answered 500 Internal Server Error: {}",
                "x".repeat(160)
            )
        );
        let endless = receiver("HTTP/1.1 200 OK\r\n\r\n", true).await;
        assert_eq!(sent(&endless, 5_000).await, Delivery::Done);
        let endless_head = receiver("HTTP/1.1 200 OK\r\nx: ", true).await;
        let why = failed(&endless_head, 5_000).await;
        assert!(!why.contains("with-a-token"), "{why}");
    }

    #[tokio::test]
    async fn redirects_are_not_followed_and_gone_is_for_ever() {
        let moved = receiver(
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n",
            false,
        )
        .await;
        assert_eq!(
            failed(&moved, 5_000).await,
            "the receiver answered 302 Found; redirects are not followed, give the final address"
        );
        let gone = receiver("HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n", false).await;
        assert_eq!(
            sent(&gone, 5_000).await,
            Delivery::Refused("the receiver answered 410 Gone".to_owned())
        );
    }

    #[tokio::test]
    async fn errors_show_neither_the_address_nor_what_it_hides() {
        let echo = "HTTP/1.1 400 X\r\ncontent-length: 31\r\n\r\nno \x1b[31m hook/with-a-token\nhere";
        let echoes = receiver(echo, false).await;
        assert_eq!(
            failed(&echoes, 5_000).await,
            "the receiver answered 400 Bad Request: no [31m *** here"
        );
        // A port that was free a moment ago, and that nobody has been given since.
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let closed = format!("http://{}/hook/with-a-token", listener.local_addr().unwrap());
        drop(listener);
        assert_eq!(failed(&closed, 5_000).await, "Connection refused (os error 111)");
    }
}
