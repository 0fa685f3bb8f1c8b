//! The size of the terminal that the two streams go to.

use std::os::fd::BorrowedFd;

use rustix::termios::tcgetwinsize;

/// Columns of the terminal on standard output; `None` when it is a file or a pipe, or does not say.
pub fn columns() -> Option<usize> {
    columns_of(rustix::stdio::stdout())
}

/// Columns of the terminal on standard error.
pub fn columns_of_stderr() -> Option<usize> {
    columns_of(rustix::stdio::stderr())
}

fn columns_of(stream: BorrowedFd<'_>) -> Option<usize> {
    let size = tcgetwinsize(stream).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
