//! Signatures of Standard Webhooks: `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// What a secret of the standard's own form begins with; the rest is base64.
const PREFIX: &str = "whsec_";

/// The value of `webhook-signature`. A secret without the prefix counts as its letters.
pub(super) fn sign(secret: &str, id: &str, timestamp_s: i64, body: &[u8]) -> Result<String, String> {
    let key = match secret.trim().strip_prefix(PREFIX) {
        Some(text) => STANDARD
            .decode(text)
            .map_err(|_| format!("the secret begins with {PREFIX} and is not base64 behind it"))?,
        None => secret.trim().as_bytes().to_vec(),
    };
    if key.is_empty() {
        return Err("the secret is empty".to_owned());
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| error.to_string())?;
    mac.update(format!("{id}.{timestamp_s}.").as_bytes());
    mac.update(body);
    Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard's own libraries.
    #[test]
    fn the_published_vector_is_met() {
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let body = br#"{"test": 2432232314}"#;
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        assert_eq!(sign(secret, id, 1_614_265_330, body).unwrap(), expected);
        assert_eq!(
            sign(&format!("{secret}\n"), id, 1_614_265_330, body).unwrap(),
            expected
        );
        assert_ne!(sign(&secret[6..], id, 1_614_265_330, body).unwrap(), expected);
    }

    #[test]
    fn a_secret_that_is_none_is_refused_without_showing_it() {
        for (secret, part) in [
            ("whsec_???", "not base64"),
            ("", "empty"),
            ("whsec_", "empty"),
            (" \n", "empty"),
        ] {
            let error = sign(secret, "i", 0, b"").unwrap_err();
            assert!(error.contains(part) && !error.contains("???"), "{error}");
        }
        assert!(sign("any words", "i", 0, b"").unwrap().starts_with("v1,"));
    }
}
