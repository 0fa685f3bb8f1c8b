//! The keys of issuers of tokens: files are read with the configuration, so that a key that is not there, or does not fit, keeps
//! it from being used as any other fault does, and a reload takes a new key in.

use crate::config::{Config, Fault};
use crate::domain::access::public_key::PublicKey;

/// A public key in PEM is some hundred bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Reads what stands in files; says what is wrong.
pub(super) fn read(config: &mut Config) -> Vec<Fault> {
    let mut faults = Vec::new();
    for issuer in &mut config.auth.issuers {
        let Some(path) = &issuer.key_file else { continue };
        let text = match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => Err("it is no file".to_owned()),
            Ok(found) if found.len() > FILE_BYTES_MAX => Err("it is too long for a key".to_owned()),
            Ok(_) => std::fs::read_to_string(path).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match text.and_then(|text| PublicKey::read(issuer.algorithm, &text)) {
            Ok(key) => issuer.key = Some(key),
            Err(why) => {
                let message = format!("`auth.issuers.keyFile` {}: {why}", path.display());
                faults.push(Fault::error("config/bad-value", &issuer.at, message));
            }
        }
    }
    let trusted = config.auth.issuers.iter();
    config.auth.trusted = trusted.filter_map(crate::config::IssuerConfig::trusted).collect();
    faults
}
