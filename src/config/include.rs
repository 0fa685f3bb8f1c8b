//! Which files form one configuration: the file or folder that was named, what they `include`, and the tables named
//! under `crontabs`. A file that is reached twice is read once; a file that leads to itself is a fault.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::fault::{Fault, Place, shown, shown_sentence};
use super::glob::{self, GlobFault};
use super::keys::Section;
use super::reading::{Field, Fields, Reading, resolved};
use super::source::{FILES_MAX, Form, Source, Sources, folder_of, place_of, read_file, why};
use super::substitute::Environment;
use super::tree::{self, Node, Value};

/// Files that lead to each other; a person keeps three in mind.
const DEPTH_MAX: usize = 16;

/// Bytes of all files together.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A file that another one names.
struct Wanted {
    path: PathBuf,
    /// As it is written, or found from there.
    name: String,
    /// Given with it; else its name tells.
    form: Option<Form>,
    at: Place,
    is_glob: bool,
}

impl Sources {
    /// Reads a file, or every `*.yaml` and `*.crontab` of a folder in name order, and all that they name. What is wrong
    /// with the named ones is kept and reported by `load`, together with everything else.
    pub fn read(path: &Path, environment: &Environment<'_>) -> Result<Self, Vec<Fault>> {
        let paths = if path.is_dir() {
            files_of(path).map_err(|fault| vec![*fault])?
        } else {
            vec![path.to_owned()]
        };
        let mut walk = Walk {
            environment,
            sources: Self::default(),
            seen: HashMap::new(),
            bytes: 0,
            is_full: false,
        };
        let mut faults = Vec::new();
        for path in &paths {
            if let Err(fault) = walk.visit(path, Form::of(path), &mut Vec::new()) {
                faults.push(*fault);
            }
        }
        if faults.is_empty() {
            Ok(walk.sources)
        } else {
            faults.extend(walk.sources.faults);
            Err(faults)
        }
    }
}

fn files_of(directory: &Path) -> Result<Vec<PathBuf>, Box<Fault>> {
    let at = place_of(directory);
    let unreadable = |error: &std::io::Error| {
        Fault::error(
            "config/unreadable",
            &at,
            format!("cannot list the directory: {}", why(error)),
        )
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).map_err(|error| unreadable(&error))? {
        let path = entry.map_err(|error| unreadable(&error))?.path();
        let is_member = path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "crontab");
        if is_member && !path.is_dir() {
            paths.push(path);
        }
        if paths.len() > FILES_MAX {
            return Err(too_many(&at).into());
        }
    }
    if paths.is_empty() {
        let message = "the directory has no `*.yaml` or `*.crontab` file";
        return Err(Fault::error("config/not-found", &at, message)
            .with_help("`ductor init` writes a first one")
            .into());
    }
    paths.sort();
    Ok(paths)
}

fn too_many(at: &Place) -> Fault {
    let message = format!("a configuration may have at most {FILES_MAX} files");
    Fault::error("config/too-large", at, message)
}

struct Walk<'a> {
    environment: &'a Environment<'a>,
    sources: Sources,
    /// Where each file stands in `sources`, by its real path.
    seen: HashMap<PathBuf, usize>,
    bytes: usize,
    /// A bound was hit and reported; nothing more is read.
    is_full: bool,
}

impl Walk<'_> {
    /// Reads a file and what it names. `above` are the files that led here, by real path and by name.
    fn visit(
        &mut self,
        path: &Path,
        form: Form,
        above: &mut Vec<(PathBuf, String)>,
    ) -> Result<(), Box<Fault>> {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if self.is_full || self.seen.contains_key(&real) {
            return Ok(());
        }
        let source = read_file(path, form)?;
        self.bytes = self.bytes.saturating_add(source.text.len());
        if self.sources.files.len() == FILES_MAX || self.bytes > BYTES_MAX {
            self.is_full = true;
            let fault = if self.bytes > BYTES_MAX {
                let message = "the files of a configuration hold more than 64 MiB together";
                Fault::error("config/too-large", &place_of(path), message)
            } else {
                too_many(&place_of(path))
            };
            return Err(fault.into());
        }
        let index = self.sources.files.len();
        let name = source.name.to_string();
        self.sources.files.push(source);
        self.seen.insert(real.clone(), index);
        above.push((real, name));
        let wanted = self.members(index);
        for member in wanted {
            self.follow(&member, form, above);
        }
        above.pop();
        Ok(())
    }

    fn follow(&mut self, wanted: &Wanted, form: Form, above: &mut Vec<(PathBuf, String)>) {
        let real = fs::canonicalize(&wanted.path).unwrap_or_else(|_| wanted.path.clone());
        if let Some(from) = above.iter().position(|(path, _)| *path == real) {
            // A glob in a file's own folder finds that file too, and nobody means it.
            if !(wanted.is_glob && from + 1 == above.len()) {
                let root = folder_of(Path::new(&*self.sources.files[0].name));
                let fault = cycle(&wanted.at, &above[from..], &root);
                self.sources.faults.push(fault);
            }
            return;
        }
        if let (Some(given), Some(index)) = (wanted.form, self.seen.get(&real)) {
            // Named under `crontabs` after its folder or an include had brought it: what was said there counts.
            let source = &mut self.sources.files[*index];
            if matches!(source.form, Form::Crontab { .. }) {
                source.form = given;
            }
        }
        if above.len() >= DEPTH_MAX {
            let message = format!("files include each other more than {DEPTH_MAX} deep here");
            let fault = Fault::error("config/include", &wanted.at, message);
            self.sources.faults.push(fault);
            return;
        }
        let own = wanted.form.unwrap_or(Form::of(&wanted.path));
        // What a file of cronstable includes is one too.
        let inherits = form == Form::Cronstable && matches!(own, Form::Yaml | Form::Cronstable);
        let own = if inherits { Form::Cronstable } else { own };
        let is_new = !self.seen.contains_key(&real);
        if let Err(fault) = self.visit(&wanted.path, own, above) {
            let fault = self.named(*fault, wanted);
            self.sources.faults.push(fault);
        }
        if let (true, Some(index)) = (is_new && inherits, self.seen.get(&real)) {
            self.sources.files[*index].included_at = Some(wanted.at.clone());
        }
    }

    /// A file that cannot be read is pointed at where it is named.
    fn named(&self, fault: Fault, wanted: &Wanted) -> Fault {
        if fault.at.line != 0 {
            return fault.with_related(&wanted.at, "it is named here");
        }
        let name = shown_sentence(&wanted.name);
        let is_folder = wanted.path.is_dir();
        let message = if is_folder {
            format!("`{name}` is a directory")
        } else {
            format!("`{name}`: {}", fault.message)
        };
        let written = self.written(&wanted.at);
        let help = if is_folder {
            Some(format!("name its files: {}/*.yaml", name.trim_end_matches('/')))
        } else if wanted.form.is_some() && written.contains("${") {
            Some("variables are not replaced under `crontabs`".to_owned())
        } else {
            fault.help
        };
        Fault::error("config/include", &wanted.at, message).with_help_if(help)
    }

    fn written(&self, at: &Place) -> &str {
        let text = self.sources.text_of(&at.file).unwrap_or_default();
        text.get(at.span.clone()).unwrap_or_default()
    }

    /// The files that one file names. Its other faults are left to `load`, which reads it again with all others.
    fn members(&mut self, index: usize) -> Vec<Wanted> {
        let source = &mut self.sources.files[index];
        let may_name = matches!(source.form, Form::Yaml | Form::Cronstable)
            && (source.text.contains("include") || source.text.contains("crontabs"));
        if !may_name {
            return Vec::new();
        }
        source.is_followed = true;
        let source = &self.sources.files[index];
        let Ok(document) = tree::parse(source) else {
            return Vec::new();
        };
        let mut faults = Vec::new();
        let mut members = Members {
            source,
            reading: Reading {
                source,
                environment: self.environment,
                faults: &mut faults,
            },
            wanted: Vec::new(),
        };
        members.read(&document);
        let wanted = members.wanted;
        self.sources.faults.extend(faults);
        wanted
    }
}

fn cycle(at: &Place, chain: &[(PathBuf, String)], root: &Path) -> Fault {
    let from_root = |name: &'_ str| {
        Path::new(name)
            .strip_prefix(root)
            .map(Path::display)
            .ok()
            .map_or_else(|| name.to_owned(), |name| name.to_string())
    };
    let mut names: Vec<String> = chain.iter().map(|(_, name)| from_root(name)).collect();
    names.extend(names.first().cloned());
    let message = match names.as_slice() {
        [own, _] => format!("`{}` includes itself", shown_sentence(own)),
        _ => format!(
            "files include each other in a circle: {}",
            shown_sentence(&names.join(" -> "))
        ),
    };
    Fault::error("config/include", at, message)
}

struct Members<'a> {
    source: &'a Source,
    reading: Reading<'a>,
    wanted: Vec<Wanted>,
}

impl Members<'_> {
    fn read(&mut self, document: &Node) {
        let Some(fields) = self.fields(document, Section::Document) else {
            return;
        };
        if let Some(field) = fields.get("include") {
            for item in self.items(&field) {
                if let Some(text) = self.reading.substituted_of(&item, "an item of `include`") {
                    self.add(&text, &item, None);
                }
            }
        }
        if let Some(field) = fields.get("crontabs") {
            for item in self.items(&field) {
                self.crontab(&item);
            }
        }
    }

    /// The keys of a map whose faults `load` will report.
    fn fields(&mut self, node: &Node, section: Section) -> Option<Fields> {
        let mut unheard = Vec::new();
        Reading {
            source: self.source,
            environment: self.reading.environment,
            faults: &mut unheard,
        }
        .fields(node, section)
    }

    /// A list, or one item without a list around it.
    fn items(&mut self, field: &Field) -> Vec<Rc<Node>> {
        match &field.node.value {
            Value::Scalar { .. } if !field.node.is_null() => vec![field.node.clone()],
            Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => {
                self.reading.list(field).unwrap_or_default()
            }
        }
    }

    /// A path, or `{path, user}`.
    fn crontab(&mut self, item: &Rc<Node>) {
        let form = |user_column| Some(Form::Crontab { user_column });
        if let Value::Scalar { .. } = item.value {
            if let Some(text) = self.reading.text_of(item, "an item of `crontabs`") {
                self.add(&text, item, form(false));
            }
            return;
        }
        let Some(fields) = self.reading.fields(item, Section::Crontab) else {
            return;
        };
        let user_column = fields.get("user").map(|field| self.reading.boolean(&field));
        let Some(path) = fields.get("path") else {
            let message = "an item of `crontabs` needs a `path`";
            self.reading.error("config/missing", &item.at, message);
            return;
        };
        if let (Some(text), None | Some(Some(_))) = (self.reading.word(&path), user_column) {
            self.add(&text, &path.node, form(user_column.flatten() == Some(true)));
        }
    }

    fn add(&mut self, text: &str, node: &Node, form: Option<Form>) {
        let mut refuse = |message: String, help: Option<&str>| {
            let fault = Fault::error("config/include", &node.at, message);
            self.reading.report(fault.with_help_if(help.map(str::to_owned)));
        };
        if text.trim().is_empty() {
            refuse("the name of a file is empty".to_owned(), None);
            return;
        }
        if text.starts_with('~') {
            let help = form.is_none().then_some("write ${HOME} instead");
            refuse("the name of a file cannot begin with `~`".to_owned(), help);
            return;
        }
        let folder = folder_of(Path::new(&*self.source.name));
        let path = resolved(&folder, text);
        let is_glob = glob::is_glob(text) && !path.exists();
        let wanted = |path: PathBuf| Wanted {
            name: path.strip_prefix(&folder).unwrap_or(&path).display().to_string(),
            path,
            form,
            at: node.at.clone(),
            is_glob,
        };
        if !is_glob {
            self.wanted.push(wanted(path));
            return;
        }
        match glob::expand(&path) {
            Ok(paths) if paths.is_empty() => {
                let message = format!("`{}` matches no file", shown(text));
                self.reading
                    .report(Fault::note("config/include", &node.at, message));
            }
            Ok(paths) => self.wanted.extend(paths.into_iter().map(wanted)),
            Err(GlobFault::Folder(path, error)) => {
                let path = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
                let message = format!("cannot list `{}`: {}", shown_sentence(&path), why(&error));
                refuse(message, None);
            }
            Err(GlobFault::Pattern(why)) => refuse(why.to_owned(), None),
            Err(GlobFault::TooMany) => {
                refuse("it would look at more than 100000 files".to_owned(), None);
            }
        }
    }
}
