//! Where each value in force comes from: a line of a file, a variable, a flag, or nobody, which is the default.
//!
//! It walks the table of keys over the trees of the files; it reads nothing that a reader has refused.

use std::rc::Rc;

use super::cronstable;
use super::fault::{Fault, Place};
use super::keys::{Key, Section, Unset};
use super::model::{CommandConfig, Config};
use super::overrides::{Override, Overrides};
use super::reading::{Field, Fields, Reading};
use super::shape::{Shape, Text};
use super::source::{Form, Sources};
use super::substitute::{Environment, substitute};
use super::tree::{self, Node, Value};

/// What stands in place of a value that may be a secret.
const HIDDEN: &str = "(hidden)";

const DEFAULT: &str = "default";

/// A value in force and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Like `server.listen` or `jobs.backup.killTimeout`.
    pub key: String,
    /// As one would write it, on one line.
    pub value: String,
    /// `ductor.yaml:7`, `DUCTOR_LISTEN`, `--listen` or `default`.
    pub from: String,
}

/// All of them, in the order of the table; `config` is what the same sources were read to.
pub fn origins(
    sources: &Sources,
    environment: &Environment<'_>,
    overrides: &Overrides,
    config: &Config,
) -> Vec<Origin> {
    let mut walk = Walk {
        sources,
        environment,
        faults: Vec::new(),
        found: Vec::new(),
    };
    let documents = walk.documents();
    for key in Section::Document.known() {
        if let Shape::Map(section) = key.shape {
            // `defaults` show at the jobs that inherit them.
            if section != Section::Defaults {
                walk.single(&documents, key.word, section);
            }
        } else if let Shape::Named(section) = key.shape {
            walk.named(&documents, key.word, section);
        } else if let Shape::ListOf(section) = key.shape {
            walk.listed(&documents, key.word, section);
        } else {
            walk.repeated(&documents, key);
        }
    }
    walk.crontab_jobs(config);
    let mut found = walk.found;
    lay_over(&mut found, overrides);
    if let Some(path) = found.iter_mut().find(|origin| origin.key == "state.path") {
        path.value = config.state.path.display().to_string();
    }
    found
}

/// Flags and variables win over the files.
fn lay_over(found: &mut Vec<Origin>, overrides: &Overrides) {
    let given: [(&str, &Option<Override>); 5] = [
        ("server.listen", &overrides.listen),
        ("state.path", &overrides.state_dir),
        ("node.name", &overrides.node_name),
        ("logging.level", &overrides.log_level),
        ("logging.format", &overrides.log_format),
    ];
    for (key, given) in given {
        let Some(given) = given else { continue };
        let origin = Origin {
            key: key.to_owned(),
            value: given.value.clone(),
            from: given.origin.to_owned(),
        };
        match found.iter_mut().find(|known| known.key == key) {
            Some(known) => *known = origin,
            None => found.push(origin),
        }
    }
}

/// The keys of one file.
type Document = (usize, Fields);

struct Walk<'a> {
    sources: &'a Sources,
    environment: &'a Environment<'a>,
    /// Everything wrong has been told by the readers.
    faults: Vec<Fault>,
    found: Vec<Origin>,
}

/// The layers that a key is looked for in: the first that has it wins.
type Layers = Vec<Fields>;

impl Walk<'_> {
    fn reading(&mut self, file: usize) -> Reading<'_> {
        Reading {
            source: &self.sources.files[file],
            environment: self.environment,
            faults: &mut self.faults,
        }
    }

    fn documents(&mut self) -> Vec<Document> {
        let sources = self.sources;
        let mut trees: Vec<(usize, Rc<Node>)> = Vec::new();
        for (file, source) in sources.files.iter().enumerate() {
            let parsed = match source.form {
                Form::Crontab { .. } => None,
                Form::Yaml | Form::Cronstable => tree::parse(source).ok(),
            };
            let Some(parsed) = parsed else { continue };
            let is_ours = source.form == Form::Yaml;
            let adapted = if is_ours {
                parsed
            } else {
                cronstable::adapt(&parsed, &mut self.faults)
            };
            trees.push((file, adapted));
        }
        let opened = trees.into_iter().filter_map(|(file, node)| {
            let fields = self.reading(file).fields(&node, Section::Document)?;
            Some((file, fields))
        });
        opened.collect()
    }

    /// A key that each file may have for itself.
    fn repeated(&mut self, documents: &[Document], key: &Key) {
        for field in documents.iter().filter_map(|(_, fields)| fields.get(key.word)) {
            let value = self.shown(key.shape, &field.node);
            self.push(key.word.to_owned(), value, line_of(&field.key_at));
        }
    }

    /// What a line of a crontab says.
    fn crontab_jobs(&mut self, config: &Config) {
        let sources = self.sources;
        let is_table = |file: &str| {
            let mut files = sources.files.iter();
            files.any(|source| &*source.name == file && matches!(source.form, Form::Crontab { .. }))
        };
        for job in config.jobs.iter().filter(|job| is_table(&job.at.file)) {
            let from = line_of(&job.at);
            let schedule = job.schedule.as_ref().map(|schedule| schedule.text.clone());
            let command = match &job.launch.command {
                CommandConfig::Shell(text) => text.clone(),
                CommandConfig::List(words) => words.join(" "),
            };
            for (word, value) in [
                ("command", Some(command)),
                ("schedule", schedule),
                ("timezone", job.timezone.clone()),
                ("user", job.launch.user.clone()),
            ] {
                if let Some(value) = value {
                    self.push(format!("jobs.{}.{word}", job.name), value, from.clone());
                }
            }
        }
    }

    /// A section that stands in one file only.
    fn single(&mut self, documents: &[Document], word: &str, section: Section) {
        let mut layers = Vec::new();
        for (file, fields) in documents {
            if let Some(field) = fields.get(word) {
                layers.extend(self.reading(*file).fields(&field.node, section));
            }
        }
        let layers: Vec<&Fields> = layers.iter().collect();
        self.map(&format!("{word}."), section, &layers);
    }

    fn named(&mut self, documents: &[Document], word: &str, section: Section) {
        for (file, fields) in documents {
            let Some(field) = fields.get(word) else { continue };
            let mut reading = self.reading(*file);
            for (name, _, node) in reading.pairs(&field.node, word).unwrap_or_default() {
                let layer = self.reading(*file).fields(&node, section);
                let layers: Vec<&Fields> = layer.iter().collect();
                self.map(&format!("{word}.{name}."), section, &layers);
            }
        }
    }

    /// Jobs or dags, each with the `defaults` of its file below it.
    fn listed(&mut self, documents: &[Document], word: &str, section: Section) {
        for (file, fields) in documents {
            let Some(list) = fields.get(word) else { continue };
            let mut reading = self.reading(*file);
            let items = reading.list(&list).unwrap_or_default();
            let base = fields
                .get("defaults")
                .and_then(|field| reading.fields(&field.node, Section::Defaults));
            for item in items {
                let Some(own) = self.reading(*file).fields(&item, section) else {
                    continue;
                };
                let Some(name) = own.get("name").and_then(|field| text_of(&field.node)) else {
                    continue;
                };
                let tasks = own.get("tasks");
                let layers: Vec<&Fields> = [Some(&own), base.as_ref()].into_iter().flatten().collect();
                self.map(&format!("{word}.{name}."), section, &layers);
                if let Some(tasks) = tasks {
                    self.tasks(*file, &format!("{word}.{name}.tasks."), &tasks, base.as_ref());
                }
            }
        }
    }

    /// An approval inherits nothing.
    fn tasks(&mut self, file: usize, path: &str, list: &Field, base: Option<&Fields>) {
        for item in self.reading(file).list(list).unwrap_or_default() {
            let Some(own) = self.reading(file).fields(&item, Section::Task) else {
                continue;
            };
            let text = |word: &str| own.get(word).and_then(|field| text_of(&field.node));
            let Some(id) = text("id") else { continue };
            if text("type").as_deref() == Some("approval") {
                let given = Section::Task
                    .known()
                    .filter_map(|key| Some((key, own.get(key.word)?)));
                for (key, field) in given {
                    let value = self.shown(key.shape, &field.node);
                    self.push(format!("{path}{id}.{}", key.word), value, line_of(&field.key_at));
                }
                continue;
            }
            let layers: Vec<&Fields> = [Some(&own), base].into_iter().flatten().collect();
            self.map(&format!("{path}{id}."), Section::Task, &layers);
        }
    }

    /// Each key of a map, from the first layer that has it.
    fn map(&mut self, path: &str, section: Section, layers: &[&Fields]) {
        for key in section.known() {
            let given: Vec<Field> = layers.iter().filter_map(|layer| layer.get(key.word)).collect();
            let name = format!("{path}{}", key.word);
            match (key.shape, given.first()) {
                (Shape::Map(inner) | Shape::Optional(&Shape::Map(inner)), _) => {
                    let opened: Layers = given.iter().filter_map(|field| self.open(field, inner)).collect();
                    let opened: Vec<&Fields> = opened.iter().collect();
                    self.map(&format!("{name}."), inner, &opened);
                }
                (Shape::Environment | Shape::HiddenMap, Some(_)) => self.variables(&name, &given),
                // Its tasks are told one by one.
                (Shape::ListOf(Section::Task), _) => {}
                (shape, Some(field)) => {
                    let value = self.shown(shape, &field.node);
                    self.push(name, value, line_of(&field.key_at));
                }
                (_, None) => {
                    if let Unset::Is(value) = key.unset {
                        self.push(name, value.to_owned(), DEFAULT.to_owned());
                    }
                }
            }
        }
    }

    fn open(&mut self, field: &Field, section: Section) -> Option<Fields> {
        let file = self
            .sources
            .files
            .iter()
            .position(|source| source.name == field.node.at.file)?;
        self.reading(file).fields(&field.node, section)
    }

    /// Names of variables; their values may be secret.
    fn variables(&mut self, path: &str, given: &[Field]) {
        let mut seen = Vec::new();
        for field in given {
            for (name, from) in variables_of(&field.node) {
                if !seen.contains(&name) {
                    self.push(format!("{path}.{name}"), HIDDEN.to_owned(), from);
                    seen.push(name);
                }
            }
        }
    }

    fn shown(&self, shape: Shape, node: &Node) -> String {
        // A map says where it is read; a text may be the secret itself.
        let is_text = node.scalar().is_some() || tree::entry(node, "value").is_some();
        if is_text && matches!(shape, Shape::Hidden(_)) {
            return HIDDEN.to_owned();
        }
        let kind = shape.text().unwrap_or(Text::Value);
        let replaced = |text: &str| {
            let result = kind
                .is_substituted()
                .then(|| substitute(text, self.environment).ok());
            result.flatten().unwrap_or_else(|| text.to_owned())
        };
        flow(node, &replaced)
    }

    fn push(&mut self, key: String, value: String, from: String) {
        self.found.push(Origin { key, value, from });
    }
}

fn text_of(node: &Node) -> Option<String> {
    node.scalar().map(|(text, _)| text.to_owned())
}

fn line_of(at: &Place) -> String {
    format!("{}:{}", at.file, at.line)
}

/// The variables of a map, or of a list of `key` and `value`, with their places.
fn variables_of(node: &Node) -> Vec<(String, String)> {
    match &node.value {
        Value::Mapping(pairs) => {
            let named = pairs
                .iter()
                .filter_map(|(key, _)| Some((text_of(key)?, line_of(&key.at))));
            named.collect()
        }
        Value::Sequence(items) => {
            let keys = items.iter().filter_map(|item| tree::entry(item, "key"));
            keys.filter_map(|key| Some((text_of(key)?, line_of(&key.at))))
                .collect()
        }
        Value::Scalar { .. } => Vec::new(),
    }
}

/// A value on one line.
fn flow(node: &Node, replaced: &dyn Fn(&str) -> String) -> String {
    match &node.value {
        Value::Sequence(items) => {
            let items: Vec<String> = items.iter().map(|item| flow(item, replaced)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Mapping(pairs) => {
            let pairs = pairs
                .iter()
                .map(|(key, value)| format!("{}: {}", flow(key, replaced), flow(value, replaced)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Scalar { .. } if node.is_null() => "null".to_owned(),
        Value::Scalar { .. } => {
            let text = node.scalar().map_or("", |(text, _)| text);
            let lines: Vec<&str> = text
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            replaced(&lines.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::load_tests::{Schedules, environment};
    use super::super::{Override, load};
    use super::*;

    fn told(files: &[(&str, &str)], overrides: &Overrides) -> Vec<String> {
        let sources = Sources::in_memory(files);
        let (config, _) = load(&sources, &environment, overrides, &Schedules).unwrap();
        let found = origins(&sources, &environment, overrides, &config);
        found
            .iter()
            .map(|origin| format!("{} = {} ({})", origin.key, origin.value, origin.from))
            .collect()
    }

    #[test]
    fn each_value_says_where_it_comes_from() {
        let overrides = Overrides {
            node_name: Override::choose(("--node", None), ("DUCTOR_NODE", Some("n-1".to_owned()))),
            log_level: Override::choose(("--log", Some("debug".to_owned())), ("DUCTOR_LOG", None)),
            ..Overrides::default()
        };
        let a = "\
server:
  listen: 127.0.0.1:${PORT}
logging: {level: warn}
pools: {p: {slots: 2}}
defaults:
  killTimeout: 5
  environment: {A: one, B: two}
  verify: {timeout: 9}
jobs:
  - name: a
    command: |
      echo one
      echo two
    killTimeout: 7
    environment:
      - {key: B, value: secret}
    verify: {command: check}
";
        let c = "defaults: {killTimeout: 4}\ndags:\n  - name: d\n    tasks:\n      - {id: one, command: x}\n      \
                 - {id: ok, type: approval, dependsOn: [one]}\n";
        let b = "jobs:\n  - {name: b, command: [x, y], schedule: {hour: 3}, workingDirectory: \"${X}\"}\n";
        let told = told(&[("a.yaml", a), ("b.yaml", b), ("c.yaml", c)], &overrides);
        for expected in [
            "server.listen = 127.0.0.1:9000 (a.yaml:2)",
            "server.maxBodyBytes = 4MiB (default)",
            "state.path = state (default)",
            "node.name = n-1 (DUCTOR_NODE)",
            "logging.level = debug (--log)",
            "pools.p.slots = 2 (a.yaml:4)",
            "pools.p.maxQueued = 1000 (default)",
            "jobs.a.command = echo one; echo two (a.yaml:11)",
            "jobs.a.killTimeout = 7 (a.yaml:14)",
            "jobs.a.environment.A = (hidden) (a.yaml:7)",
            "jobs.a.environment.B = (hidden) (a.yaml:16)",
            "jobs.a.verify.command = check (a.yaml:17)",
            "jobs.a.verify.timeout = 9 (a.yaml:8)",
            "jobs.b.killTimeout = 30s (default)",
            "jobs.b.command = [x, y] (b.yaml:2)",
            "jobs.b.schedule = {hour: 3} (b.yaml:2)",
            "jobs.b.workingDirectory = /srv/x (b.yaml:2)",
            "jobs.b.failsWhen.nonzeroReturn = true (default)",
            "dags.d.retainRuns = 50 (default)",
            "dags.d.tasks.one.command = x (c.yaml:5)",
            "dags.d.tasks.one.killTimeout = 4 (c.yaml:1)",
            "dags.d.tasks.one.retries = 0 (default)",
            "dags.d.tasks.ok.dependsOn = [one] (c.yaml:6)",
        ] {
            assert!(
                told.iter().any(|line| line == expected),
                "{expected} is not in\n{}",
                told.join("\n")
            );
        }
        assert!(!told.join("\n").contains("secret"), "{told:?}");
        assert!(
            !told.iter().any(|line| line.starts_with("jobs.b.verify.command")),
            "nothing is not told"
        );
        assert!(!told.join("\n").contains("tasks.ok.killTimeout"), "{told:?}");
    }
}
