//! Reading requests: query parameters and JSON objects whose every field is known.

use axum::extract::Query;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use serde_json::{Map, Value};

use super::error::{FieldFault, Problem};
use crate::expr::schema::Issue;
use crate::words::limits;

/// What a request without parameters or fields knows.
pub(super) const NOTHING: &[&str] = &[];

/// The query parameters, each checked to be known. Repeated ones stay repeated.
pub(super) fn query(uri: &Uri, known: &[impl AsRef<str>]) -> Result<Vec<(String, String)>, Problem> {
    let known = names(known);
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map_err(|_| Problem::unreadable("the query string cannot be read"))?;
    match pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => Err(Problem::unreadable(format!(
            "unknown query parameter `{name}`{}",
            did_you_mean(name, &known)
        ))),
        None => Ok(pairs),
    }
}

/// A value that does not match the schema of its definition, with a place for each fault.
pub(super) fn against_schema(at: &str, issues: &[Issue]) -> Problem {
    let fault = |issue: &Issue| FieldFault {
        pointer: format!("{at}{}", issue.pointer),
        code: "schema",
        detail: issue.message.clone(),
    };
    Problem::invalid(issues.iter().map(fault).collect())
}

/// The last value of a parameter.
pub(super) fn last<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    pairs
        .iter()
        .rev()
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.as_str())
}

/// A parameter that is a number inside a range.
pub(super) fn number<T>(pairs: &[(String, String)], name: &str, min: T, max: T) -> Result<Option<T>, Problem>
where
    T: std::str::FromStr + PartialOrd + std::fmt::Display + Copy,
{
    let Some(text) = last(pairs, name) else {
        return Ok(None);
    };
    match text.parse::<T>() {
        Ok(value) if value >= min && value <= max => Ok(Some(value)),
        Ok(_) | Err(_) => Err(Problem::unreadable(format!(
            "`{name}` must be a number from {min} to {max}"
        ))),
    }
}

/// A parameter that is `true` or `false`.
pub(super) fn flag(pairs: &[(String, String)], name: &str) -> Result<Option<bool>, Problem> {
    match last(pairs, name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Problem::unreadable(format!("`{name}` must be `true` or `false`"))),
    }
}

/// The JSON object of a body; no body is an empty one. Unknown fields are faults.
pub(super) fn object(
    body: &[u8],
    known: &[impl AsRef<str>],
) -> Result<(Map<String, Value>, Vec<FieldFault>), Problem> {
    let known = names(known);
    if body.is_empty() {
        return Ok((Map::new(), Vec::new()));
    }
    let text = std::str::from_utf8(body).map_err(|_| Problem::unreadable("the body is not UTF-8"))?;
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Problem::unreadable(format!("the body is not JSON: {error}")))?;
    let Value::Object(fields) = value else {
        return Err(Problem::invalid(vec![fault(
            "",
            "type",
            "the body must be an object",
        )]));
    };
    let unknown = fields.keys().filter(|name| !known.contains(&name.as_str()));
    let faults = unknown
        .take(limits::PROBLEM_FAULTS_MAX)
        .map(|name| {
            fault(
                name,
                "unknown_field",
                &format!("unknown field{}", did_you_mean(name, &known)),
            )
        })
        .collect();
    Ok((fields, faults))
}

/// Checks that a body, if there is one, is an empty object.
pub(super) fn no_fields(body: &[u8]) -> Result<(), Problem> {
    let (_, faults) = object(body, NOTHING)?;
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(faults))
    }
}

/// A fault of a field of the body.
pub(super) fn fault(field: &str, code: &'static str, detail: &str) -> FieldFault {
    FieldFault {
        pointer: format!("/{}", escaped(field)),
        code,
        detail: detail.to_owned(),
    }
}

/// A name as one part of a pointer (RFC 6901).
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn names(known: &[impl AsRef<str>]) -> Vec<&str> {
    known.iter().map(AsRef::as_ref).collect()
}

fn did_you_mean(name: &str, known: &[&str]) -> String {
    // The distance costs the product of both, in memory too; no field has such a name.
    if name.len() > limits::HINT_BYTES_MAX {
        return String::new();
    }
    let near = known
        .iter()
        .map(|word| (strsim::damerau_levenshtein(name, word), word))
        .min();
    match near {
        Some((distance, word)) if distance <= 2 => format!("; did you mean `{word}`?"),
        Some(_) | None => String::new(),
    }
}

/// The idempotency key of a request, if it has one.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let name = HeaderName::from_static("idempotency-key");
    let Some(value) = the_one(headers, &name)? else {
        return Ok(None);
    };
    let fits = |text: &&str| (1..=limits::IDEMPOTENCY_KEY_BYTES_MAX).contains(&text.len());
    match value.to_str().ok().filter(fits) {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Problem::unreadable(
            "Idempotency-Key must have 1 to 128 printable ASCII characters",
        )),
    }
}

/// A header that may be sent once: two of them mean two things, and who reads which is anybody's guess.
pub(super) fn the_one<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h HeaderValue>, Problem> {
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() {
        return Err(Problem::unreadable(format!("`{name}` may be sent once")));
    }
    Ok(first)
}

/// A name as one segment of a path.
pub(super) fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&crate::words::ids::hex(&[byte]).to_ascii_uppercase());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_fields_are_named_with_what_was_meant() {
        let (_, faults) = object(br#"{"retrys": true}"#, &["retries"]).unwrap();
        assert_eq!(faults[0].detail, "unknown field; did you mean `retries`?");
        assert_eq!(faults[0].pointer, "/retrys");
        assert!(
            object(b"{", NOTHING).is_err()
                && object(b"[]", NOTHING).is_err()
                && object(b"\xff", NOTHING).is_err()
        );
        assert!(object(b"", &["a"]).unwrap().1.is_empty());
    }

    #[test]
    fn a_name_becomes_one_segment() {
        assert_eq!(segment("a b/\u{e9}-1"), "a%20b%2F%C3%A9-1");
    }

    #[test]
    fn numbers_have_a_range() {
        let pairs = query(&"/x?limit=5&limit=7".parse().unwrap(), &["limit"]).unwrap();
        assert_eq!(number(&pairs, "limit", 1, 10).ok(), Some(Some(7)));
        assert!(number(&pairs, "limit", 1, 6).is_err());
        assert!(query(&"/x?limt=5".parse().unwrap(), &["limit"]).is_err());
    }
}
