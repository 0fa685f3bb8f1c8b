//! `secrets` of a job and of `defaults`: names and where their values will be read. Values are not known here.

use std::collections::HashSet;

use super::fault::{Fault, shown};
use super::job_layer::LayerReader;
use super::keys::Section;
use super::model::{SecretConfig, SecretSource};
use super::reading::{Field, Fields};

/// Secrets of one job: each output byte is compared with all of them.
const SECRETS_MAX: usize = 64;

/// Bytes of the name of a variable.
const NAME_BYTES_MAX: usize = 1024;

impl LayerReader<'_, '_> {
    pub(super) fn secrets(&mut self, field: &Field) -> Vec<SecretConfig> {
        let items = self.reading.list(field).unwrap_or_default();
        if items.len() > SECRETS_MAX {
            let message = self.text(&format!("secrets has more than {SECRETS_MAX} items"));
            self.reading.error("config/too-large", field.at(), message);
            return Vec::new();
        }
        let mut seen = HashSet::new();
        let mut secrets = Vec::new();
        for item in items {
            let Some(fields) = self.reading.fields(&item, Section::Secret) else {
                continue;
            };
            let fields = fields.with_subject(self.subject).with_path("secrets.");
            if let Some(secret) = self.secret(&fields, &mut seen) {
                secrets.push(secret);
            }
        }
        secrets
    }

    fn secret(&mut self, fields: &Fields, seen: &mut HashSet<String>) -> Option<SecretConfig> {
        let Some(field) = fields.get("name") else {
            let message = self.text("a secret needs a `name`");
            self.reading.error("config/missing", &fields.at, message);
            return None;
        };
        let name = self.reading.text(&field)?;
        let at = field.at().clone();
        if !is_variable(&name) {
            let message = self.text(&format!(
                "secret '{}': name must be a variable name",
                shown(&name)
            ));
            let fault = Fault::error("config/bad-value", &at, message);
            let help = "letters, digits and `_`, and no digit first";
            self.reading.report(fault.with_help(help));
            return None;
        }
        if !seen.insert(name.clone()) {
            let message = self.text(&format!("secret '{}' is given twice", shown(&name)));
            self.reading.error("config/duplicate-key", &at, message);
            return None;
        }
        let from = match (fields.get("fromFile"), fields.get("fromEnvVar")) {
            (Some(file), None) => SecretSource::File(self.reading.path(&file)?),
            (None, Some(variable)) => SecretSource::Variable(self.reading.word(&variable)?),
            (Some(_), Some(_)) | (None, None) => {
                let rule = format!("secret '{}': give fromFile or fromEnvVar", shown(&name));
                let message = self.text(&rule);
                self.reading.error("config/missing", &at, message);
                return None;
            }
        };
        Some(SecretConfig { name, from, at })
    }
}

fn is_variable(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// By name: the job's secret stands where the default stood, its new ones follow.
pub(super) fn merged(base: &[SecretConfig], own: Vec<SecretConfig>) -> Vec<SecretConfig> {
    let mut secrets = base.to_vec();
    for secret in own {
        if let Some(default) = secrets.iter_mut().find(|default| default.name == secret.name) {
            *default = secret;
        } else {
            secrets.push(secret);
        }
    }
    secrets
}

/// Bytes of text of one secret's reference.
pub(super) fn text_bytes(secret: &SecretConfig) -> usize {
    let from = match &secret.from {
        SecretSource::File(path) => path.as_os_str().len(),
        SecretSource::Variable(name) => name.len(),
    };
    secret.name.len() + from + size_of::<SecretConfig>()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::load_tests::{good, job_faults};
    use super::*;

    #[test]
    fn secrets_are_merged_by_name() {
        let config = good(
            "\
defaults:
  secrets:
    - {name: A, fromFile: a}
    - {name: B, fromEnvVar: B_OF_ALL}
jobs:
  - {name: j, command: c, secrets: [{name: C, fromFile: '${X}/c'}, {name: A, fromFile: ~/own}]}
  - {name: k, command: c}
",
        );
        let pairs = |job: usize| -> Vec<(String, SecretSource)> {
            let secrets = config.jobs[job].launch.secrets.iter();
            secrets
                .map(|secret| (secret.name.clone(), secret.from.clone()))
                .collect()
        };
        let file = |name: &str, path: &str| (name.to_owned(), SecretSource::File(PathBuf::from(path)));
        let b = ("B".to_owned(), SecretSource::Variable("B_OF_ALL".to_owned()));
        assert_eq!(pairs(0), [file("A", "~/own"), b.clone(), file("C", "/srv/x/c")]);
        assert_eq!(pairs(1), [file("A", "a"), b]);
        let shown = serde_json::to_value(&config.jobs[0].launch.secrets).unwrap();
        assert_eq!(
            shown,
            serde_json::json!([{"name": "A"}, {"name": "B"}, {"name": "C"}])
        );
    }

    #[test]
    fn secrets_are_checked() {
        for (keys, expected) in [
            (
                "secrets: [{name: S}]",
                "job 'j': secret 'S': give fromFile or fromEnvVar",
            ),
            (
                "secrets: [{name: S, fromFile: a, fromEnvVar: B}]",
                "job 'j': secret 'S': give fromFile or fromEnvVar",
            ),
            ("secrets: [{fromFile: a}]", "job 'j': a secret needs a `name`"),
            (
                "secrets: [{name: 1S, fromFile: a}]",
                "job 'j': secret '1S': name must be a variable name",
            ),
            (
                "secrets: [{name: '', fromFile: a}]",
                "job 'j': secret '': name must be a variable name",
            ),
            (
                "secrets: [{name: S, fromFile: a}, {name: S, fromFile: b}]",
                "job 'j': secret 'S' is given twice",
            ),
            (
                "secrets: [{name: S, fromFile: '${NONE}'}]",
                "variable `NONE` is not set",
            ),
            (
                "secrets: [{name: S, fromEnvVar: ''}]",
                "`secrets.fromEnvVar` is empty",
            ),
            (
                "secrets: [{name: S, fromFil: a}]",
                "unknown key `fromFil` in an item of `secrets`",
            ),
            ("secrets: {S: a}", "job 'j': `secrets` must be a list, not a map"),
        ] {
            let found = job_faults(keys);
            assert!(
                found.iter().any(|fault| fault.contains(expected)),
                "{keys}: {found:?}"
            );
        }
        let many: Vec<String> = (0..65).map(|n| format!("{{name: S{n}, fromFile: a}}")).collect();
        let found = job_faults(&format!("secrets: [{}]", many.join(", ")));
        assert!(found[0].contains("secrets has more than 64 items"), "{found:?}");
    }
}
