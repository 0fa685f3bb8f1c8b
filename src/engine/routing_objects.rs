//! The desk for declared objects of routing: changes are handed to the store, once for each key.

use super::changes::declared::Outcome;
use super::changes::remember::{Asked, Told};
use super::core::Engine;
use crate::store::{Abort, ChangeError, Tx};

/// Hands a change to the store.
pub async fn declare<F>(
    engine: &Engine,
    name: &'static str,
    mut asked: Asked<Outcome>,
    mut change: F,
) -> Result<Told<Outcome>, ChangeError>
where
    F: FnMut(&mut Tx<'_>) -> Result<Outcome, Abort> + Send + 'static,
{
    engine
        .store
        .change(name, move |tx| asked.once(tx, &mut change))
        .await
}
