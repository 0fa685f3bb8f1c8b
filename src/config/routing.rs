//! The section `routing`: the bundles that a daemon keeps in force. What stands in them is read when they are applied.

use std::path::PathBuf;
use std::rc::Rc;

use serde::Serialize;

use super::fault::{Fault, Place, shown};
use super::keys::Section;
use super::model::SecretSource;
use super::reading::{Field, Reading, resolved};
use super::report_model::shown_secret;
use super::reports;
use super::sections::{open, set};
use super::tenants::{mode, shown_mode};
use super::tree::{Node, Value};
use crate::domain::access::naming::{TENANT_RULE, is_tenant};
use crate::domain::routing::objects::PipelineMode;

/// Bundles of one daemon. Each is looked at every few seconds.
const BUNDLES_MAX: usize = 100;

/// Bundles, what happens when somebody changes by hand what they declare, and what holds where nobody else says so.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RoutingConfig {
    /// How checks run where neither pool nor tenant say so.
    #[serde(serialize_with = "shown_mode")]
    pub pipeline_mode: PipelineMode,
    /// None: alerts are not signed.
    #[serde(serialize_with = "shown_secret")]
    pub alert_secret: Option<SecretSource>,
    /// What was changed by hand is put back.
    pub enforce: bool,
    /// In the order of the file, which is the order in which they are applied.
    pub bundles: Vec<BundleConfig>,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        Self {
            pipeline_mode: PipelineMode::Linear,
            alert_secret: None,
            enforce: false,
            bundles: Vec::new(),
        }
    }
}

/// One file of declared routing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleConfig {
    /// As it is written.
    pub path: String,
    /// Whose objects these are.
    pub tenant: String,
    /// Objects that the bundle once applied and no longer has go.
    pub prune: bool,
    /// Where the waiting work of recipient pools and claim queues that go waits then.
    pub drain_to: Option<String>,
    #[serde(skip)]
    pub file: PathBuf,
    #[serde(skip)]
    pub at: Place,
}

pub(super) fn routing(reading: &mut Reading<'_>, field: &Field, routing: &mut RoutingConfig) {
    let Some(fields) = open(reading, field, Section::Routing, "routing.") else {
        return;
    };
    if let Some(field) = fields.get("enforce") {
        set(&mut routing.enforce, reading.boolean(&field));
    }
    set(&mut routing.pipeline_mode, mode(reading, &fields));
    if let Some(field) = fields.get("alertSecret") {
        routing.alert_secret = reports::secret(reading, &field, "routing.alertSecret: ");
    }
    let Some(field) = fields.get("bundles") else {
        return;
    };
    let items = match &field.node.value {
        Value::Scalar { .. } if !field.node.is_null() => vec![Rc::clone(&field.node)],
        Value::Scalar { .. } | Value::Sequence(_) | Value::Mapping(_) => {
            reading.list(&field).unwrap_or_default()
        }
    };
    if items.len() > BUNDLES_MAX {
        let message = format!("routing.bundles has more than {BUNDLES_MAX} items");
        reading.error("config/out-of-range", field.at(), message);
        return;
    }
    for item in items {
        let Some(bundle) = bundle(reading, &item) else {
            continue;
        };
        let twice = routing.bundles.iter().find(|other| other.file == bundle.file);
        if let Some(first) = twice {
            let message = format!("the bundle `{}` is named twice", shown(&bundle.path));
            let fault = Fault::error("config/duplicate-key", &bundle.at, message);
            reading.report(fault.with_related(&first.at, "the first one stands here"));
            continue;
        }
        routing.bundles.push(bundle);
    }
}

/// A path, or a map about it.
fn bundle(reading: &mut Reading<'_>, item: &Rc<Node>) -> Option<BundleConfig> {
    let of_file = |path: String, file: PathBuf, at: Place| BundleConfig {
        path,
        tenant: "default".to_owned(),
        prune: false,
        drain_to: None,
        file,
        at,
    };
    if let Value::Scalar { .. } = item.value {
        let text = reading.substituted_of(item, "an item of `routing.bundles`")?;
        if text.trim().is_empty() {
            reading.error(
                "config/bad-value",
                &item.at,
                "the name of a bundle's file is empty",
            );
            return None;
        }
        let file = resolved(&reading.source.directory, &text);
        return Some(of_file(text, file, item.at.clone()));
    }
    let fields = reading.fields(item, Section::RoutingBundle)?;
    let Some(path) = fields.get("path") else {
        let message = "an item of `routing.bundles` needs a `path`";
        reading.error("config/missing", &item.at, message);
        return None;
    };
    let file = reading.path(&path)?;
    let text = path.node.scalar().map(|(text, _)| text.to_owned());
    let mut bundle = of_file(text.unwrap_or_default(), file, path.at().clone());
    if let Some(field) = fields.get("tenant") {
        let name = reading.substituted(&field)?;
        if !is_tenant(&name) {
            reading.error("config/bad-value", field.at(), TENANT_RULE);
            return None;
        }
        bundle.tenant = name;
    }
    if let Some(field) = fields.get("prune") {
        set(&mut bundle.prune, reading.boolean(&field));
    }
    if let Some(field) = fields.get("drainTo") {
        bundle.drain_to = reading.text(&field);
        if !bundle.prune {
            let message = "`drainTo` needs `prune: true`: nothing else makes a pool go";
            reading.report(Fault::error("config/needs-prune", &field.key_at, message));
        }
    }
    Some(bundle)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::load_tests::{faults, good};
    use super::*;

    #[test]
    fn bundles_are_paths_or_maps() {
        let config = good(
            "\
routing:
  enforce: true
  bundles:
    - desk.yaml
    - {path: '${X}/leads.yaml', tenant: sales, prune: true, drainTo: pond}
",
        );
        let routing = &config.routing;
        assert!(routing.enforce);
        let (desk, leads) = (&routing.bundles[0], &routing.bundles[1]);
        assert!(desk.file.ends_with("desk.yaml"));
        assert_eq!((desk.tenant.as_str(), desk.prune), ("default", false));
        assert_eq!(leads.file, Path::new("/srv/x/leads.yaml"));
        assert_eq!((leads.tenant.as_str(), leads.prune), ("sales", true));
        assert_eq!(leads.drain_to.as_deref(), Some("pond"));
        let one = good("routing: {bundles: desk.yaml}\n");
        assert_eq!(one.routing.bundles.len(), 1);
        assert!(
            !one.routing.enforce,
            "what people do stands, unless it is said otherwise"
        );
    }

    #[test]
    fn bundles_are_checked() {
        for (text, expected) in [
            ("routing: {bundles: ['']}", "the name of a bundle's file is empty"),
            ("routing: {bundles: [{tenant: a}]}", "needs a `path`"),
            ("routing: {bundles: [a, ./a]}", "the bundle `./a` is named twice"),
            ("routing: {bundles: [{path: a, tenant: A}]}", TENANT_RULE),
            (
                "routing: {bundles: [{path: a, drainTo: p}]}",
                "`drainTo` needs `prune: true`",
            ),
            (
                "routing: {bundles: [{path: a, prun: true}]}",
                "unknown key `prun`",
            ),
            ("routing: {bundles: {a: b}}", "must be a list"),
            ("routing: {enforce: maybe}", "must be true or false"),
            ("routing: {bundle: [a]}", "did you mean `bundles`?"),
        ] {
            let found = faults(text);
            assert!(
                found.iter().any(|fault| fault.contains(expected)),
                "{text}: {found:?}"
            );
        }
        let many: Vec<String> = (0..=BUNDLES_MAX).map(|n| format!("b{n}.yaml")).collect();
        let found = faults(&format!("routing: {{bundles: [{}]}}", many.join(", ")));
        assert!(found[0].contains("more than 100 items"), "{found:?}");
    }
}
