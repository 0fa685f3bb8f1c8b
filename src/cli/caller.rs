//! Who calls: the key and the tenant that go with every request. A key never stands in the arguments, where every process of
//! the machine could read it.

use std::path::Path;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use super::failure::Failure;

/// A key is shorter than this; a file that is longer is another file.
const KEY_BYTES_MAX: usize = 512;

const TENANT: HeaderName = HeaderName::from_static("x-tenant-id");

/// The caller of a session.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) struct Caller {
    key: Option<String>,
    tenant: Option<String>,
}

/// Without the key.
impl std::fmt::Debug for Caller {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Caller")
            .field("key", &self.key.as_ref().map(|_| "…"))
            .field("tenant", &self.tenant)
            .finish()
    }
}

impl Caller {
    /// The file wins over the variable.
    pub(super) fn new(
        key_file: Option<&Path>,
        variable: Option<String>,
        tenant: Option<String>,
    ) -> Result<Caller, Failure> {
        let key = match key_file {
            Some(path) => {
                let shown = path.display();
                let text = std::fs::read_to_string(path)
                    .map_err(|error| Failure::Usage(format!("--key-file {shown}: {error}")))?;
                Some(checked(&text).ok_or_else(|| {
                    Failure::Usage(format!(
                        "--key-file {shown}: it must hold one key on one line, as `ductor key create` prints it"
                    ))
                })?)
            }
            None => variable
                .map(|text| {
                    let bad = || Failure::Usage("DUCTOR_API_KEY must hold one key".to_owned());
                    checked(&text).ok_or_else(bad)
                })
                .transpose()?,
        };
        Ok(Caller { key, tenant })
    }

    /// What is sent along.
    pub(super) fn headers(&self) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            let mut value = HeaderValue::from_str(&format!("Bearer {key}"))
                .map_err(|_| Failure::Usage("the key has a character that no key has".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        if let Some(tenant) = &self.tenant {
            let value = HeaderValue::from_str(tenant)
                .ok()
                .filter(|_| !tenant.is_empty() && tenant.is_ascii());
            let value =
                value.ok_or_else(|| Failure::Usage(format!("--tenant `{tenant}` is no name of a tenant")))?;
            headers.insert(TENANT, value);
        }
        Ok(headers)
    }
}

fn checked(text: &str) -> Option<String> {
    let key = text.trim();
    let fits = (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    fits.then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_from_its_file_or_its_variable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "dk_1_abc\n").unwrap();
        let bearer = |caller: Caller| {
            let headers = caller.headers().unwrap();
            headers
                .get(AUTHORIZATION)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let variable = || Some("dk_2_def".to_owned());
        assert_eq!(
            bearer(Caller::new(Some(&path), variable(), None).unwrap()).as_deref(),
            Some("Bearer dk_1_abc")
        );
        assert_eq!(
            bearer(Caller::new(None, variable(), None).unwrap()).as_deref(),
            Some("Bearer dk_2_def")
        );
        assert_eq!(bearer(Caller::default()), None);
        assert!(!format!("{:?}", Caller::new(Some(&path), None, None).unwrap()).contains("abc"));
    }

    #[test]
    fn what_is_no_key_is_told_without_showing_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "secret one\nsecret two\n").unwrap();
        for failure in [
            Caller::new(Some(&path), None, None).unwrap_err(),
            Caller::new(Some(&folder.path().join("none")), None, None).unwrap_err(),
            Caller::new(None, Some(String::new()), None).unwrap_err(),
        ] {
            assert!(
                matches!(&failure, Failure::Usage(text) if !text.contains("secret one")),
                "{failure:?}"
            );
        }
        let tenant = |name: &str| Caller::new(None, None, Some(name.to_owned())).unwrap().headers();
        assert_eq!(tenant("acme").unwrap().get(TENANT).unwrap(), "acme");
        assert!(tenant("").is_err() && tenant("a\nb").is_err());
    }
}
