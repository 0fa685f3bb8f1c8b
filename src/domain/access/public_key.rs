//! The public key of an issuer, with the one algorithm that it is for. No token has a say in that.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PKCS1_2048_8192_SHA256, VerificationAlgorithm,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const END: &str = "-----END PUBLIC KEY-----";

/// How an issuer signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Ed25519.
    EdDsa,
    /// ECDSA over P-256 with SHA-256.
    Es256,
    /// RSA of at least 2048 bits with PKCS #1 1.5 and SHA-256.
    Rs256,
}

impl Algorithm {
    /// All of them, by their names in tokens.
    pub const ALL: [(&'static str, Algorithm); 3] = [
        ("EdDSA", Algorithm::EdDsa),
        ("ES256", Algorithm::Es256),
        ("RS256", Algorithm::Rs256),
    ];

    /// Its name in a token.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::EdDsa => "EdDSA",
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
        }
    }

    fn verifier(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Algorithm::EdDsa => &ED25519,
            Algorithm::Es256 => &ECDSA_P256_SHA256_FIXED,
            Algorithm::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
        }
    }
}

/// A public key that was read and fits its algorithm.
#[derive(Debug, Clone)]
pub struct PublicKey {
    algorithm: Algorithm,
    der: Vec<u8>,
    parsed: ParsedPublicKey,
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &PublicKey) -> bool {
        self.algorithm == other.algorithm && self.der == other.der
    }
}

impl Eq for PublicKey {}

impl PublicKey {
    /// Reads one as `openssl pkey -pubout` writes it; says what is wrong with it.
    pub fn read(algorithm: Algorithm, pem: &str) -> Result<PublicKey, String> {
        if pem.contains("PRIVATE KEY-----") {
            return Err("it is a private key; `openssl pkey -pubout` makes the public one".to_owned());
        }
        let body = pem
            .trim()
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(END));
        let body = body.ok_or_else(|| format!("it is no public key in PEM: it begins with {BEGIN}"))?;
        let digits: String = body.split_whitespace().collect();
        let der = STANDARD
            .decode(digits)
            .map_err(|_| "its lines are not base64".to_owned())?;
        let parsed = ParsedPublicKey::new(algorithm.verifier(), &der).map_err(|_| match algorithm {
            Algorithm::EdDsa => "it is no key of Ed25519, which EdDSA needs".to_owned(),
            Algorithm::Es256 => "it is no key over P-256, which ES256 needs".to_owned(),
            Algorithm::Rs256 => "it is no RSA key of 2048 to 8192 bits, which RS256 needs".to_owned(),
        })?;
        Ok(PublicKey {
            algorithm,
            der,
            parsed,
        })
    }

    /// What it is for.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The base64 of it, which tells it from others.
    pub fn digits(&self) -> String {
        STANDARD.encode(&self.der)
    }

    /// True if `signature` is its own of `message`.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        self.parsed.verify_sig(message, signature).is_ok()
    }
}
