//! The size of the terminal that standard output goes to.

use rustix::termios::tcgetwinsize;

/// Columns of the terminal on standard output; `None` when it is a file or a pipe, or does not say.
pub fn columns() -> Option<usize> {
    let size = tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
