//! Shapes that older binaries wrote: how each is read as what it is today.

use super::codec::{self, Record};

/// Reads version 2 as it is, and version 1 as the same without an optional part at its end.
pub(super) fn without_last_option<R: Record>(version: u8, body: &[u8]) -> Result<R, String> {
    match version {
        1 => codec::decode_body(&[body, &[0]].concat()),
        2 => codec::decode_body(body),
        unknown => Err(format!(
            "{} has version {unknown}, known are up to {}",
            R::NAME,
            R::VERSION
        )),
    }
}
