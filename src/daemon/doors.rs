//! Who may come in, at the start: the first key from its file, and no listening beyond this machine without keys.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::open::OpenError;
use super::tenants;
use crate::config::{AuthConfig, Config};
use crate::domain::access::scopes::Scopes;
use crate::domain::access::token;
use crate::engine::access::Ring;
use crate::engine::changes::keys;
use crate::engine::core::Engine;
use crate::store::access::ApiKey;
use crate::store::hash_key::{self, HashKey, HashKeyError};
use crate::words::ids::{KeyId, TenantId, secret_bytes};
use crate::words::limits;

/// Who makes the key of the file.
const BY: &str = "configuration";

impl From<HashKeyError> for OpenError {
    fn from(error: HashKeyError) -> OpenError {
        OpenError::Other(error.to_string())
    }
}

/// Where the key is under which keys are hashed.
pub fn hash_key_path(engine: &Engine, auth: &AuthConfig) -> PathBuf {
    let own = || engine.directory.root().join(hash_key::NAME);
    auth.hash_key_file.clone().unwrap_or_else(own)
}

/// Makes the tenants of the configuration, takes the first key in, and sees that nobody from outside comes in without one. Before the first request is answered.
pub async fn open(engine: &Engine, config: &Config, address: SocketAddr) -> Result<(), OpenError> {
    tenants::make(engine, config).await.map_err(OpenError::Other)?;
    let hash_key = HashKey::at(hash_key_path(engine, &config.auth));
    if let Some(path) = &config.auth.bootstrap_key_file {
        take_in(engine, &hash_key, path).await?;
    }
    if !engine.read(Ring::read).await?.is_open() {
        return Ok(hash_key.load()?);
    }
    if !config.auth.issuers.is_empty() {
        tracing::info!("there are no keys: who calls must bring a token of an issuer of `auth.issuers`");
        return Ok(());
    }
    if !address.ip().is_loopback() {
        return Err(OpenError::Unguarded(format!(
            "{address} can be reached from other machines, and there are no keys yet: anybody could do everything.\n  \
             Start with --listen 127.0.0.1:{port}, run `ductor key create admin --scope admin`, and start again;\n  \
             or name a file in `auth.bootstrapKeyFile`: a start makes it and puts a key into it; or name an issuer in `auth.issuers`",
            port = address.port()
        )));
    }
    tracing::info!(
        "there are no keys: every user of this machine may do everything; `ductor key create` changes that"
    );
    Ok(())
}

/// Makes the key of the file one that opens. A key that was revoked stays so.
async fn take_in(engine: &Engine, hash_key: &HashKey, path: &Path) -> Result<(), OpenError> {
    let shown = path.display();
    let (id, text) = read_or_make(path)?;
    hash_key.load_or_make()?;
    let hash = hash_key.hash(&text).unwrap_or_default();
    let known = engine
        .read(move |tx| Ok(Ring::read(tx)?.key(id).map(|(_, key)| key.clone())))
        .await?;
    match known {
        Some(key) if !hash_key.is_hash(&key.hash, &text) => {
            return Err(OpenError::Other(format!(
                "{shown}: there is a key with this id and another secret, or {} is not the file that it was hashed under",
                hash_key::NAME
            )));
        }
        Some(key) => {
            if key.revoked.is_some() {
                tracing::warn!(
                    "the key of auth.bootstrapKeyFile was revoked and opens nothing; remove the file for a new one"
                );
            }
            return Ok(());
        }
        None => {}
    }
    let key = ApiKey {
        name: format!("bootstrap {}", &id.digits()[..8]),
        scopes: Scopes::admin(),
        hash,
        created_at: engine.now().wall,
        by: BY.to_owned(),
        expires_at: None,
        revoked: None,
    };
    let created = engine
        .store
        .change("first key", move |tx| {
            keys::create(tx, TenantId::DEFAULT, id, &key)
        })
        .await?;
    match created {
        keys::Created::Done | keys::Created::NameTaken => {
            tracing::info!(key = %id, "the key of auth.bootstrapKeyFile opens everything");
            Ok(())
        }
        keys::Created::Full | keys::Created::FirstIsNoAdmin => Err(OpenError::Other(format!(
            "{shown}: there are {} keys already; revoked keys count too",
            limits::KEYS_MAX
        ))),
    }
}

fn read_or_make(path: &Path) -> Result<(KeyId, String), OpenError> {
    let shown = path.display();
    let unusable =
        |error: std::io::Error| OpenError::Other(format!("auth.bootstrapKeyFile {shown}: {error}"));
    let found = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let text = token::text_of(KeyId::fresh(), secret_bytes());
            hash_key::make_once(path, format!("{text}\n").as_bytes()).map_err(unusable)?;
            std::fs::read_to_string(path).map_err(unusable)?
        }
        Err(error) => return Err(unusable(error)),
    };
    let text = found.trim().to_owned();
    let id = token::id_of(&text).ok_or_else(|| {
        OpenError::Other(format!(
            "auth.bootstrapKeyFile {shown}: it must hold one key, dk_<id>_<secret>; remove it, and a start makes a new one"
        ))
    })?;
    Ok((id, text))
}
