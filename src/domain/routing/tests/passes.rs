//! From the work to a winner.

use super::rig::Rig;

#[test]
fn value_24_smooth_weighted_turns() {
    let mut rig = Rig::new("", &["a", "b", "c"]);
    rig.weights(&[5, 1, 1]);
    assert_eq!(rig.winners(7), "a a b a c a a");
    assert_eq!(rig.winners(7), "a a b a c a a");
}
