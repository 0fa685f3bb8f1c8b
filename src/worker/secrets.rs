//! Secrets of one attempt: read when it begins, given to its command and to `verify`, hidden in what they print, and gone
//! with it. No error of this file shows a value.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use super::environment::expand_home;
use super::mask::{Mask, Needles, masked};
use crate::domain::workflow::definition::{CommandStep, SecretFrom};
use crate::words::limits;

/// The values with their names.
#[derive(Default)]
pub struct Secrets {
    variables: Vec<(String, String)>,
    needles: Option<Arc<Needles>>,
}

/// Names only.
impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.variables.iter().map(|(name, _)| name);
        out.debug_set().entries(names).finish()
    }
}

impl Secrets {
    /// Reads all of `step`. The error is the sentence after `launch failed: `. Reads files: call it from a blocking
    /// context.
    pub fn resolve(step: &CommandStep) -> Result<Secrets, String> {
        let mut variables = Vec::new();
        let mut bytes = 0;
        for secret in &step.secrets {
            let name = &secret.name;
            let value = value_of(&secret.from).map_err(|why| format!("secret '{name}': {why}"))?;
            bytes += value.len();
            if bytes > limits::SECRETS_BYTES_MAX {
                return Err(format!(
                    "secret '{name}': with it the secrets have more than {} bytes",
                    limits::SECRETS_BYTES_MAX
                ));
            }
            variables.push((name.clone(), value));
        }
        let needles = Needles::of(variables.iter().map(|(_, value)| value.as_str()));
        Ok(Secrets {
            variables,
            needles: needles.map(Arc::new),
        })
    }

    /// Names and values, for the environment of a command.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// A filter for the output of one process.
    pub fn filter(&self) -> Mask {
        Mask::new(self.needles.clone())
    }

    /// A sentence that may be stored or logged.
    pub fn masked(&self, text: &str) -> String {
        match &self.needles {
            None => text.to_owned(),
            Some(needles) => masked(needles, text),
        }
    }
}

/// The value now; the error says why there is none.
pub fn value_of(from: &SecretFrom) -> Result<String, String> {
    let (bytes, source) = match from {
        SecretFrom::Variable(name) => {
            use std::os::unix::ffi::OsStringExt;
            let value = std::env::var_os(name).ok_or_else(|| format!("variable {name} is not set"))?;
            (value.into_vec(), format!("variable {name}"))
        }
        SecretFrom::File(path) => {
            let mut bytes = read(path).map_err(|error| format!("file {path}: {error}"))?;
            if bytes.last() == Some(&b'\n') {
                bytes.pop();
            }
            (bytes, format!("file {path}"))
        }
    };
    if bytes.len() > limits::SECRET_BYTES_MAX {
        let max = limits::SECRET_BYTES_MAX;
        return Err(format!("{source}: more than {max} bytes"));
    }
    if bytes.contains(&0) {
        return Err(format!("{source}: it has a NUL byte"));
    }
    String::from_utf8(bytes).map_err(|_| format!("{source}: it is not UTF-8"))
}

/// At most one value and what shows that it is too long. Nothing that could make an open wait is opened.
fn read(path: &str) -> std::io::Result<Vec<u8>> {
    let path = expand_home(path);
    if !std::fs::metadata(&path)?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let most = limits::SECRET_BYTES_MAX as u64 + 2;
    File::open(&path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::workflow::definition::SecretRef;
    use crate::domain::workflow::definition::tests::sample;

    fn step(from: SecretFrom) -> CommandStep {
        let mut step = sample("a", None).steps.remove(0).command;
        step.secrets = vec![SecretRef {
            name: "TOKEN".to_owned(),
            from,
        }];
        step
    }

    #[test]
    fn a_file_is_read_without_its_last_newline() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let max = limits::SECRET_BYTES_MAX;
        for (text, expected) in [
            ("hunter2-long\n".to_owned(), Ok("hunter2-long".to_owned())),
            ("two\n\n".to_owned(), Ok("two\n".to_owned())),
            (String::new(), Ok(String::new())),
            (format!("{}\n", "x".repeat(max)), Ok("x".repeat(max))),
            ("x".repeat(max + 1), Err("more than")),
            ("x".repeat(max + 100_000), Err("more than")),
            ("a\0b".to_owned(), Err("NUL")),
        ] {
            std::fs::write(&path, &text).unwrap();
            let found = Secrets::resolve(&step(SecretFrom::File(path.display().to_string())));
            match (found, expected) {
                (Ok(found), Ok(value)) => {
                    assert_eq!(found.variables(), [("TOKEN".to_owned(), value)]);
                    assert_eq!(format!("{found:?}"), r#"{"TOKEN"}"#);
                }
                (Err(why), Err(part)) => {
                    assert!(
                        why.starts_with("secret 'TOKEN': file ") && why.contains(part),
                        "{why}"
                    );
                }
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let missing = Secrets::resolve(&step(SecretFrom::Variable("NO_SUCH_VARIABLE_HERE".to_owned())));
        assert_eq!(
            missing.unwrap_err(),
            "secret 'TOKEN': variable NO_SUCH_VARIABLE_HERE is not set"
        );
        let folder = Secrets::resolve(&step(SecretFrom::File("/".to_owned())));
        assert_eq!(
            folder.unwrap_err(),
            "secret 'TOKEN': file /: it is not a regular file"
        );
    }
}
