//! Posted JSON to a definition that may be published, or all that is wrong with it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::canonical::canonical;
use super::check::{World, check};
use super::document::Document;
use super::finding::Finding;
use super::read::read;
use crate::words::limits;

/// What a posted document is.
#[derive(Debug)]
pub struct Judged {
    /// The definition, if nothing is wrong.
    pub document: Option<Document>,
    /// What is wrong, in the order of the document as far as it goes.
    pub findings: Vec<Finding>,
}

/// Reads and checks.
pub fn judge(posted: &Value, world: &World) -> Judged {
    let bytes = canonical(posted).len();
    if bytes > limits::DEFINITION_BYTES_MAX {
        let message = format!(
            "the definition has {bytes} bytes, and {} are allowed",
            limits::DEFINITION_BYTES_MAX
        );
        return Judged {
            document: None,
            findings: vec![Finding::new("", "workflow.limit", message)],
        };
    }
    let reading = read(posted);
    let mut findings = reading.findings.clone();
    if let Some(document) = &reading.document {
        let seen: BTreeSet<&str> = reading
            .findings
            .iter()
            .map(|finding| finding.pointer.as_str())
            .collect();
        let mut said = BTreeSet::new();
        for mut finding in check(document, world, &reading.doubtful) {
            finding.pointer = reading.posted_pointer(&finding.pointer, posted);
            // What could not be read is wrong by that alone; what defaults say is wrong once, not for each step.
            let is_new = said.insert((finding.pointer.clone(), finding.message.clone()));
            if is_new && !seen.contains(finding.pointer.as_str()) {
                findings.push(finding);
            }
        }
    }
    if findings.len() > limits::FINDINGS_MAX {
        let message = format!(
            "{} more findings are not shown; mend these first",
            findings.len() - limits::FINDINGS_MAX
        );
        findings.truncate(limits::FINDINGS_MAX);
        findings.push(Finding::new("", "workflow.too_many_findings", message));
    }
    Judged {
        document: reading.document.filter(|_| findings.is_empty()),
        findings,
    }
}
