//! The keys that say when a job may begin and begin again: `onMissed`, `startingDeadlineSeconds`,
//! `onlyIfLastSucceeded`, `clusterPolicy`, `onFailure.retry`.

use super::fault::Place;
use super::job_layer::LayerReader;
use super::keys::Section;
use super::model::{ClusterPolicy, OnMissed, PolicyConfig, RetryConfig};
use super::quantity;
use super::reading::{Field, Fields};

const YEAR_MS: u64 = 31_536_000 * 1000;

/// Attempts after the first one that a finite `maximumRetries` may ask for.
const RETRIES_MAX: i64 = 1_000_000;

/// A number of retries; None is without end.
#[derive(Clone, Copy)]
struct Retries(Option<u32>);

/// One layer of the policy keys. A key that is absent, or faulty and reported, is None.
#[derive(Clone, Default)]
pub(super) struct PolicyLayer {
    on_missed: Option<OnMissed>,
    starting_deadline_ms: Option<u64>,
    only_if_last_succeeded: Option<bool>,
    cluster_policy: Option<ClusterPolicy>,
    maximum_retries: Option<Retries>,
    initial_delay_ms: Option<u64>,
    maximum_delay_ms: Option<u64>,
    backoff_multiplier: Option<f64>,
    /// `onFailure.report`, which is read with the other reports.
    pub(super) failure_report: Option<Field>,
    /// Where `onFailure.retry` stands, which a dag does not have.
    pub(super) retry_at: Option<Place>,
}

impl PolicyLayer {
    /// This layer over `base`, over the defaults of the product.
    pub(super) fn over(&self, base: &PolicyLayer) -> PolicyConfig {
        PolicyConfig {
            on_missed: self.on_missed.or(base.on_missed).unwrap_or(OnMissed::Skip),
            starting_deadline_ms: self.starting_deadline_ms.or(base.starting_deadline_ms),
            only_if_last_succeeded: self
                .only_if_last_succeeded
                .or(base.only_if_last_succeeded)
                .unwrap_or(false),
            cluster_policy: self
                .cluster_policy
                .or(base.cluster_policy)
                .unwrap_or(ClusterPolicy::Leader),
            retry: RetryConfig {
                maximum_retries: self
                    .maximum_retries
                    .or(base.maximum_retries)
                    .map_or(Some(0), |retries| retries.0),
                initial_delay_ms: self.initial_delay_ms.or(base.initial_delay_ms).unwrap_or(1_000),
                maximum_delay_ms: self.maximum_delay_ms.or(base.maximum_delay_ms).unwrap_or(300_000),
                backoff_multiplier: self.backoff_multiplier.or(base.backoff_multiplier).unwrap_or(2.0),
            },
        }
    }
}

/// Reads the policy keys of one layer.
pub(super) fn read(reader: &mut LayerReader<'_, '_>, fields: &Fields) -> PolicyLayer {
    let mut layer = PolicyLayer::default();
    if let Some(field) = fields.get("onMissed") {
        let words = [
            ("skip", OnMissed::Skip),
            ("run-once", OnMissed::RunOnce),
            ("run-all", OnMissed::RunAll),
        ];
        let text = reader.text("onMissed must be skip, run-once or run-all");
        layer.on_missed = reader.reading.choice(&field, &words, &text);
    }
    if let Some(field) = fields.get("startingDeadlineSeconds") {
        let text = reader.text("startingDeadlineSeconds must be > 0");
        layer.starting_deadline_ms = reader.reading.duration(&field, 1_000..=YEAR_MS, &text);
    }
    if let Some(field) = fields.get("onlyIfLastSucceeded") {
        layer.only_if_last_succeeded = reader.reading.boolean(&field);
    }
    if let Some(field) = fields.get("clusterPolicy") {
        let words = [
            ("Leader", ClusterPolicy::Leader),
            ("PreferLeader", ClusterPolicy::PreferLeader),
            ("EveryNode", ClusterPolicy::EveryNode),
        ];
        let text = reader.text("unknown clusterPolicy");
        layer.cluster_policy = reader.reading.choice(&field, &words, &text);
    }
    if let Some(field) = fields.get("onFailure") {
        on_failure(reader, &field, &mut layer);
    }
    layer
}

fn on_failure(reader: &mut LayerReader<'_, '_>, field: &Field, layer: &mut PolicyLayer) {
    let Some(fields) = reader.reading.fields(&field.node, Section::OnFailure) else {
        return;
    };
    let fields = fields.with_subject(reader.subject).with_path("onFailure.");
    layer.failure_report = fields.get("report");
    let Some(field) = fields.get("retry") else { return };
    layer.retry_at = Some(field.key_at.clone());
    let Some(fields) = reader.reading.fields(&field.node, Section::Retry) else {
        return;
    };
    let fields = fields.with_subject(reader.subject).with_path("onFailure.retry.");
    let rule =
        |reader: &LayerReader<'_, '_>, word: &str| reader.text(&format!("retry.{word} is out of range"));
    if let Some(field) = fields.get("maximumRetries") {
        let text = rule(reader, "maximumRetries");
        let number = reader.reading.integer(&field, -1..=RETRIES_MAX, &text);
        layer.maximum_retries = number.map(|number| Retries(u32::try_from(number).ok()));
    }
    if let Some(field) = fields.get("initialDelay") {
        let text = rule(reader, "initialDelay");
        layer.initial_delay_ms = reader.reading.duration(&field, 0..=YEAR_MS, &text);
    }
    if let Some(field) = fields.get("maximumDelay") {
        let text = rule(reader, "maximumDelay");
        layer.maximum_delay_ms = reader.reading.duration(&field, 0..=YEAR_MS, &text);
    }
    if let Some(field) = fields.get("backoffMultiplier") {
        layer.backoff_multiplier = multiplier(reader, &field, &rule(reader, "backoffMultiplier"));
    }
}

fn multiplier(reader: &mut LayerReader<'_, '_>, field: &Field, out_of_range: &str) -> Option<f64> {
    let number = field
        .node
        .scalar()
        .filter(|(_, plain)| *plain)
        .and_then(|(text, _)| quantity::number(text));
    let Some(number) = number else {
        let expectation = format!("{} must be a number", field.label);
        reader.reading.wrong_type(&expectation, &field.node);
        return None;
    };
    if (1.0..=1_000.0).contains(&number) {
        return Some(number);
    }
    reader
        .reading
        .error("config/out-of-range", field.at(), out_of_range);
    None
}

#[cfg(test)]
mod tests {
    use super::super::load_tests::{good, job_faults};
    use super::*;

    #[test]
    fn policy_keys_are_read_inherited_and_overridden() {
        let config = good(
            "defaults:\n  onMissed: run-once\n  onFailure: {retry: {maximumRetries: -1, initialDelay: 5s}}\n\
             jobs:\n  - name: a\n    command: x\n    startingDeadlineSeconds: 90\n    clusterPolicy: EveryNode\n    \
             onlyIfLastSucceeded: true\n    onFailure: {retry: {initialDelay: 0.5, backoffMultiplier: 1.5}}\n",
        );
        let policy = config.jobs[0].policy;
        assert_eq!(policy.on_missed, OnMissed::RunOnce);
        assert_eq!(policy.starting_deadline_ms, Some(90_000));
        assert_eq!(policy.cluster_policy, ClusterPolicy::EveryNode);
        assert!(policy.only_if_last_succeeded);
        assert_eq!(
            policy.retry,
            RetryConfig {
                maximum_retries: None,
                initial_delay_ms: 500,
                maximum_delay_ms: 300_000,
                backoff_multiplier: 1.5,
            }
        );
    }

    #[test]
    fn a_job_without_policy_keys_has_the_products_own() {
        let policy = good("jobs:\n  - name: a\n    command: x\n").jobs[0].policy;
        assert_eq!(policy, PolicyLayer::default().over(&PolicyLayer::default()));
        assert_eq!(policy.retry.maximum_retries, Some(0));
        assert_eq!(policy.on_missed, OnMissed::Skip);
    }

    #[test]
    fn every_faulty_policy_key_is_named_with_its_rule() {
        for (line, message) in [
            (
                "onMissed: later",
                "job 'j': onMissed must be skip, run-once or run-all",
            ),
            (
                "startingDeadlineSeconds: 0",
                "job 'j': startingDeadlineSeconds must be > 0",
            ),
            ("clusterPolicy: All", "job 'j': unknown clusterPolicy"),
            (
                "onFailure: {retry: {maximumRetries: -2}}",
                "job 'j': retry.maximumRetries is out of range",
            ),
            (
                "onFailure: {retry: {initialDelay: -1}}",
                "job 'j': retry.initialDelay is out of range",
            ),
            (
                "onFailure: {retry: {backoffMultiplier: 0.5}}",
                "job 'j': retry.backoffMultiplier is out of range",
            ),
        ] {
            let found = job_faults(line);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(message), "{found:?}");
        }
    }
}
