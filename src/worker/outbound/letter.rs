//! One request, before the values of its secrets are known and after.

use std::sync::Arc;

use super::signature::sign;
use crate::domain::report::{Value, WebhookRoute};
use crate::worker::mask::{Needles, masked};
use crate::worker::secrets::value_of;

/// How something is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Nothing is sent.
    Get,
    /// A body is sent.
    Post,
}

/// A request with all its values. It is not `Debug`: they may be secrets.
#[derive(Clone)]
pub struct Letter {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    hidden: Option<Arc<Needles>>,
}

impl Letter {
    /// A report to a webhook. Reads files: call it from a blocking context. The error says what is missing and shows no
    /// value.
    pub fn of_report(
        route: &WebhookRoute,
        id: &str,
        timestamp_s: i64,
        body: Vec<u8>,
    ) -> Result<Letter, String> {
        let url = resolved(&route.url).map_err(|why| format!("url: {why}"))?;
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("webhook-id".to_owned(), id.to_owned()),
            ("webhook-timestamp".to_owned(), timestamp_s.to_string()),
        ];
        let mut hidden = vec![url.clone()];
        for (name, value) in &route.headers {
            let value = resolved(value).map_err(|why| format!("header {name}: {why}"))?;
            headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            hidden.push(value.clone());
            headers.push((name.clone(), value));
        }
        if let Some(secret) = &route.secret {
            let secret = value_of(secret).map_err(|why| format!("secret: {why}"))?;
            let signature = sign(&secret, id, timestamp_s, &body).map_err(|why| format!("secret: {why}"))?;
            headers.push(("webhook-signature".to_owned(), signature));
            hidden.push(secret);
        }
        Ok(Letter {
            method: Method::Post,
            url,
            headers,
            body,
            hidden: needles(&hidden),
        })
    }

    /// A plain request. Reads files: call it from a blocking context.
    pub fn of_heartbeat(url: &Value) -> Result<Letter, String> {
        let url = resolved(url).map_err(|why| format!("url: {why}"))?;
        Ok(Letter {
            method: Method::Get,
            hidden: needles(std::slice::from_ref(&url)),
            url,
            headers: Vec::new(),
            body: Vec::new(),
        })
    }

    /// A text of the receiver that may be stored and shown.
    pub(super) fn shown(&self, text: &str) -> String {
        match &self.hidden {
            Some(needles) => masked(needles, text),
            None => text.to_owned(),
        }
    }
}

/// The whole address, what is behind its host, and each part of that: tokens stand there. What is too short to be hidden
/// is passed over.
pub(in crate::worker) fn needles(hidden: &[String]) -> Option<Arc<Needles>> {
    let behind_host = |text: &String| {
        let rest = text.split_once("://")?.1;
        Some(rest.split_once(['/', '?'])?.1.to_owned())
    };
    let behind: Vec<String> = hidden.iter().filter_map(behind_host).collect();
    let parts = behind
        .iter()
        .flat_map(|behind| behind.split(['/', '?', '&', '=']));
    let whole = hidden.iter().chain(&behind).map(String::as_str);
    Needles::of(whole.chain(parts)).map(Arc::new)
}

fn resolved(value: &Value) -> Result<String, String> {
    let text = match value {
        Value::Literal(text) => text.clone(),
        Value::From(from) => value_of(from)?,
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.chars().any(char::is_control) {
        return Err("it has more than one line, or a control character".to_owned());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::workflow::definition::SecretFrom;

    fn route(folder: &std::path::Path) -> WebhookRoute {
        let file = |name: &str| SecretFrom::File(folder.join(name).display().to_string());
        WebhookRoute {
            url: Value::From(file("url")),
            headers: vec![
                ("X-Team".to_owned(), Value::Literal("shop".to_owned())),
                ("Content-Type".to_owned(), Value::Literal("text/plain".to_owned())),
                ("Authorization".to_owned(), Value::From(file("token"))),
            ],
            secret: Some(file("secret")),
            body: None,
        }
    }

    #[test]
    fn values_are_read_for_one_letter() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("url", "https://hooks.example.org/services/T0/abcdefghij\n");
        write("token", "Bearer 0123456789");
        write("secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
        let route = route(folder.path());
        let letter = Letter::of_report(&route, "msg_1", 7, b"{}".to_vec()).unwrap();
        let names: Vec<&str> = letter.headers.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "webhook-id",
            "webhook-timestamp",
            "X-Team",
            "Content-Type",
            "Authorization",
            "webhook-signature",
        ];
        assert_eq!(names, expected);
        assert_eq!(letter.shown("no abcdefghij of T0"), "no *** of T0");
        assert_eq!(
            letter.shown(
                "no T0 services/T0/abcdefghij with Bearer 0123456789 whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
            ),
            "no T0 *** with *** ***"
        );
        write("token", "two\nlines");
        let error = Letter::of_report(&route, "msg_1", 7, Vec::new()).err().unwrap();
        assert_eq!(
            error,
            "header Authorization: it has more than one line, or a control character"
        );
        std::fs::remove_file(folder.path().join("url")).unwrap();
        let error = Letter::of_report(&route, "msg_1", 7, Vec::new()).err().unwrap();
        assert!(
            error.starts_with("url: file ") && error.contains("No such file"),
            "{error}"
        );
    }
}
