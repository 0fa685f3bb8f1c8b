//! What a daemon that keeps a bundle in force does next. Several may share one state: the file that was put in force last counts,
//! and only daemons that have this very file put back what somebody changes by hand.

/// What is known of a bundle.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// It is to be applied: the daemon began, read its configuration anew, or has found another file.
    pub is_due: bool,
    /// What is declared is not what the file says.
    pub differs: bool,
    /// The newest file of this name that a daemon has put in force is the own one.
    pub is_own: bool,
    /// Changes by hand are put back.
    pub enforce: bool,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It is applied.
    Apply,
    /// Nothing: it is so.
    Synced,
    /// Nothing but to say what differs.
    Drifted,
}

/// The next step.
pub fn step(facts: Facts) -> Step {
    match facts {
        Facts { is_due: true, .. } => Step::Apply,
        Facts { differs: false, .. } => Step::Synced,
        Facts {
            is_own: true,
            enforce: true,
            ..
        } => Step::Apply,
        _ => Step::Drifted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_daemons_with_two_files_never_fight() {
        // Each bit of the number is one fact.
        for number in 0..16_u8 {
            let bit = |place: u8| number & (1 << place) != 0;
            let facts = Facts {
                is_due: bit(0),
                differs: bit(1),
                is_own: bit(2),
                enforce: bit(3),
            };
            let expected = if facts.is_due || (facts.differs && facts.is_own && facts.enforce) {
                Step::Apply
            } else if facts.differs {
                Step::Drifted
            } else {
                Step::Synced
            };
            assert_eq!(step(facts), expected, "{facts:?}");
        }
    }
}
