//! The composition root: opens the state directory, wires the engines, starts, drains and stops them.
//!
//! The only place that knows all engines. It does not know the faces: whoever serves HTTP is given the parts.

mod book;
mod bundle_files;
mod dag;
mod difference;
pub mod doors;
mod identity;
mod issuer_keys;
mod loader;
mod next_fires;
mod open;
mod reconciler;
mod reload;
mod run;
mod schedule_check;
mod schedule_lints;
mod secret_check;
mod supervise;
mod tenants;

pub use book::{book_of, definitions_of, schedule_of};
pub use difference::{ChangedName, Difference, NameChanges, SettingChange};
pub use loader::{Checked, Loaded, Loader, Unusable, load_as, load_text};
pub use next_fires::{NextFire, next_fires};
pub use open::{Daemon, OpenError};
pub use reconciler::{BundleStanding, BundleState, Bundles, Reconciler};
pub use reload::{Read, Rejected, ReloadError, Reloaded, Reloader, Standing};
pub use run::{Drained, Loops};
pub use supervise::{Pulse, attend};
