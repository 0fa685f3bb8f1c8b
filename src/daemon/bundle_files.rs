//! Files of bundles: read, taken apart, and judged without a store, with the places of what is wrong.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::config::{self, BundleConfig, Config, Fault, Place, PlainDocument, Sources};
use crate::domain::routing::bundle::{self, Document, Topology};
use crate::domain::routing::{canonical, fault};
use crate::words::limits;
use crate::words::time::{Clock, Micros, SystemClock};

/// What a plan misses that may have been declared elsewhere.
const ELSEWHERE: [&str; 3] = [
    "pool.not_found",
    "claim_queue.not_found",
    "pipeline.target_missing",
];

/// A file as the file system describes it: another one has another stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

/// The stamp of a file that is there.
pub(super) fn stamp(path: &Path) -> Option<Stamp> {
    let metadata = std::fs::metadata(path).ok()?;
    Some(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        length: metadata.len(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    })
}

/// A file that is a bundle.
#[derive(Debug)]
pub(super) struct BundleFile {
    pub(super) document: Document,
    /// Of what stands in it, however it is written.
    pub(super) digest: String,
    plain: PlainDocument,
    name: String,
}

impl BundleFile {
    /// A fault of the document with its place in the file.
    pub(super) fn placed(&self, wrong: &fault::Fault) -> Fault {
        placed(&self.plain, &self.name, wrong)
    }
}

fn placed(plain: &PlainDocument, name: &str, wrong: &fault::Fault) -> Fault {
    let at = plain
        .place(&wrong.pointer)
        .cloned()
        .unwrap_or_else(|| Place::whole(name));
    Fault::error(wrong.code, &at, wrong.detail.clone())
}

/// The text of a file; `name` is what faults call it.
fn text_of(path: &Path, name: &str) -> Result<String, Fault> {
    let refuse = |why: String| Fault::error("bundle.unreadable", &Place::whole(name), why);
    let most = limits::BUNDLE_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
    read.map_err(|error| {
        let kind = error.kind();
        refuse(if kind == std::io::ErrorKind::NotFound {
            "the file does not exist".to_owned()
        } else {
            format!("the file cannot be read: {kind}")
        })
    })?;
    String::from_utf8(bytes).map_err(|_| refuse("the file is not UTF-8 text".to_owned()))
}

/// Takes a text apart.
fn judge(name: &str, text: &str) -> Result<BundleFile, Vec<Fault>> {
    let mut plain = config::read_bundle(name, text).map_err(|fault| vec![*fault])?;
    let document = Document::read(&plain.value).map_err(|faults| {
        let placed = faults.iter().map(|wrong| placed(&plain, name, wrong));
        placed.collect::<Vec<Fault>>()
    })?;
    let digest = format!("sha256:{}", canonical::sha256(&plain.value));
    // What it says is in the document.
    plain.value = serde_json::Value::Null;
    Ok(BundleFile {
        document,
        digest,
        plain,
        name: name.to_owned(),
    })
}

/// Reads a file and takes it apart. Blocks on the disk.
pub(super) fn read(path: &Path, name: &str) -> Result<BundleFile, Vec<Fault>> {
    let text = text_of(path, name).map_err(|fault| vec![fault])?;
    judge(name, &text)
}

/// All that is wrong with the bundles of a configuration, and their texts. What they name and do not have is a warning:
/// somebody may have declared it by hand. Blocks on the disk.
pub(super) fn check(config: &Config) -> (Vec<Fault>, Sources) {
    let (mut faults, mut texts) = (Vec::new(), Vec::new());
    let mut tenants: BTreeMap<&str, Topology> = BTreeMap::new();
    let mut names: BTreeMap<(&str, String), &BundleConfig> = BTreeMap::new();
    for wanted in &config.routing.bundles {
        let name = wanted.path.clone();
        let text = match text_of(&wanted.file, &name) {
            Ok(text) => text,
            Err(fault) => {
                let message = format!("the bundle `{name}`: {}", fault.message);
                faults.push(Fault::error(fault.code, &wanted.at, message));
                continue;
            }
        };
        let judged = judge(&name, &text);
        texts.push((name, text));
        let file = match judged {
            Ok(file) => file,
            Err(wrong) => {
                faults.extend(wrong);
                continue;
            }
        };
        let key = (wanted.tenant.as_str(), file.document.name.clone());
        if let Some(first) = names.insert(key, wanted) {
            faults.push(named_twice(&file, &first.path));
            continue;
        }
        let topology = tenants.entry(&wanted.tenant).or_default();
        faults.extend(planned(&file, topology, &wanted.tenant));
    }
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
    (faults, Sources::in_memory(&texts))
}

/// Two files cannot be one bundle.
pub(super) fn named_twice(file: &BundleFile, other: &str) -> Fault {
    let detail = format!(
        "the bundle `{}` is the file `{other}` already",
        file.document.name
    );
    file.placed(&fault::Fault::new("/metadata/name", "bundle.twice", detail))
}

/// What is wrong with a bundle over what those before it declare.
fn planned(file: &BundleFile, topology: &mut Topology, tenant: &str) -> Vec<Fault> {
    let mut number = u64::try_from(topology.count()).unwrap_or(u64::MAX) << 32;
    let mut fresh = || {
        number += 1;
        let mut id = [0; 16];
        id[8..].copy_from_slice(&number.to_be_bytes());
        id
    };
    let plan = bundle::plan(topology, &file.document, false, &mut fresh);
    let is_elsewhere = |wrong: &&fault::Fault| ELSEWHERE.contains(&wrong.code);
    let mut faults: Vec<Fault> = Vec::new();
    for wrong in &plan.faults {
        let fault = file.placed(wrong);
        faults.push(if is_elsewhere(&wrong) {
            let message = format!("{}, unless somebody declares it elsewhere", fault.message);
            Fault::warning(fault.code, &fault.at, message)
        } else {
            fault
        });
    }
    faults.extend(plan.conflicts.iter().map(|wrong| file.placed(wrong)));
    for warning in &plan.warnings {
        let fault = file.placed(warning);
        faults.push(Fault::warning(fault.code, &fault.at, fault.message));
    }
    if plan.faults.is_empty() && plan.conflicts.is_empty() {
        faults.extend(tested(file, &plan.after, tenant));
    }
    *topology = plan.after;
    faults
}

fn tested(file: &BundleFile, after: &Topology, tenant: &str) -> Vec<Fault> {
    let now = Micros::from(SystemClock.now().wall);
    match bundle::run(after, &file.document.tests, tenant, now) {
        Ok(tested) => bundle::failing(&tested)
            .iter()
            .map(|wrong| file.placed(wrong))
            .collect(),
        Err(wrong) => wrong.iter().map(|wrong| file.placed(wrong)).collect(),
    }
}
