//! All checks of a document.

use std::collections::BTreeSet;

use super::levels::Map;
use super::partners::Look;
use super::world::World;
use super::{expressions, order, schemas};
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::finding::Finding;

/// What is wrong with a document besides its form. Nothing is said of what stands around the steps in `doubtful`: so much
/// is wrong with them that nobody knows what they are.
pub fn check(document: &Document, world: &World, doubtful: &BTreeSet<String>) -> Vec<Finding> {
    let map = Map::of(document);
    let mut findings = Vec::new();
    order::check(&map, &mut findings);
    let look = Look {
        document,
        map: &map,
        world,
        doubtful,
    };
    look.check(&mut findings);
    expressions::check(document, &map, doubtful, &mut findings);
    schemas::check(document, &map, &mut findings);
    findings
}
