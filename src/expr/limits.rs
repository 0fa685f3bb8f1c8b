//! The one table of what an expression may cost, in both profiles.

use super::fault::Profile;

/// Bytes of a text, looked at before anything reads it.
pub(super) const SOURCE_BYTES_MAX: usize = 4_096;
/// Nodes of the syntax tree, the macros' own included. Names and literals are counted before the parser runs.
pub(super) const NODES_MAX: usize = 1_000;
/// Depth of the syntax tree: chains of `+`, `.x`, `[]` and calls are depth too.
pub(super) const DEPTH_MAX: usize = 64;
/// Loops (`map`, `filter`, `all`, `exists`, `exists_one`, `sortBy`) in one expression.
pub(super) const LOOPS_MAX: usize = 4;
/// Loops inside each other; a loop over another's result counts as inside it.
pub(super) const LOOP_NESTING_MAX: usize = 2;
/// Bytes of a pattern.
pub(super) const PATTERN_BYTES_MAX: usize = 256;
/// Bytes of a compiled pattern.
pub(super) const PATTERN_COMPILED_MAX: usize = 64 << 10;
/// Bytes of a text that a pattern is held against: time is the product of both.
pub(super) const MATCHED_BYTES_MAX: usize = 64 << 10;
/// Levels of the JSON that an expression sees.
pub(super) const SEEN_DEPTH_MAX: usize = 256;
/// Levels of the JSON that an expression gives: below what a JSON reader takes, so that it can stand inside a document.
pub(super) const RESULT_DEPTH_MAX: usize = 96;
/// Stack of the thread that parses: the parser goes deeper than the tree that is admitted.
pub(super) const COMPILE_STACK_BYTES: usize = 16 << 20;
/// Compiled expressions that are remembered.
pub(super) const CACHE_ENTRIES_MAX: usize = 10_000;
/// Nodes of all remembered expressions: some 100 MB at the very most.
pub(super) const CACHE_NODES_MAX: usize = 500_000;

/// What costs one node evaluated or copied, in units of work; a byte of text is one unit.
pub(super) const NODE_WORK: u64 = 32;

/// What differs between the profiles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Elements of a list that is looped over.
    pub(super) list_max: u64,
    /// What a list of unknown size counts at admission.
    pub(super) list_estimate: u64,
    /// What a list of tags counts at admission.
    pub(super) tags_estimate: u64,
    /// Turns of all loops together: estimated at admission, counted with the real sizes before each loop.
    pub(super) steps_max: u64,
    /// Units of work of one evaluation, and so of the memory that it takes.
    pub(super) work_max: u64,
}

impl Profile {
    pub(super) fn limits(self) -> Limits {
        match self {
            // On the way to a decision nothing may depend on what a caller sent: the worst case is refused beforehand.
            Profile::Rule => Limits {
                list_max: 256,
                list_estimate: 256,
                tags_estimate: 64,
                steps_max: 10_000,
                work_max: 4 << 20,
            },
            // The worst case of a loop in a loop is 10,000 x 10,000 and would refuse them all: at admission only sizes
            // that stand in the text count, and the real ones when it runs. A step may give 32 MiB: one copy fits.
            Profile::Workflow => Limits {
                list_max: 10_000,
                list_estimate: 1,
                tags_estimate: 1,
                steps_max: 200_000,
                work_max: 64 << 20,
            },
        }
    }
}
