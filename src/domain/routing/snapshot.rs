//! TMP
use super::known::Known;
use super::pass::Request;
use crate::words::ids::DecisionId;
use crate::words::payload::JsonText;
use crate::words::time::Micros;
/// TMP
pub fn take(_r: &Request, _at: Micros, id: DecisionId, _k: &Known) -> (String, JsonText) {
    (id.to_string(), JsonText::parse("{}").unwrap())
}
