//! Each way in which a token may be wrong, with keys that are made here.

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::jwt::{Issuer, Refused, TenantOf, check, is_token};
use super::public_key::{Algorithm, PublicKey};
use crate::words::limits;
use crate::words::time::Millis;

const NOW: Millis = Millis(1_800_000_000_000);
const ISSUER: &str = "https://login.example.com/";

/// A key pair of an issuer.
pub(crate) enum Signer {
    Ed(Ed25519KeyPair),
    Ec(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    pub(crate) fn new(algorithm: Algorithm) -> Signer {
        match algorithm {
            Algorithm::EdDsa => Signer::Ed(Ed25519KeyPair::generate().unwrap()),
            Algorithm::Es256 => Signer::Ec(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap()),
            Algorithm::Rs256 => Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
        }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        match self {
            Signer::Ed(_) => Algorithm::EdDsa,
            Signer::Ec(_) => Algorithm::Es256,
            Signer::Rsa(_) => Algorithm::Rs256,
        }
    }

    /// Its public half, as `openssl pkey -pubout` writes it.
    pub(crate) fn pem(&self) -> String {
        let der = match self {
            Signer::Ed(pair) => pair.public_key().as_der().unwrap().as_ref().to_vec(),
            Signer::Ec(pair) => pair.public_key().as_der().unwrap().as_ref().to_vec(),
            Signer::Rsa(pair) => pair.public_key().as_der().unwrap().as_ref().to_vec(),
        };
        let digits = STANDARD.encode(der);
        let lines: Vec<&str> = digits
            .as_bytes()
            .chunks(64)
            .map(|line| std::str::from_utf8(line).unwrap())
            .collect();
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            lines.join("\n")
        )
    }

    fn signature(&self, message: &[u8]) -> Vec<u8> {
        let chance = SystemRandom::new();
        match self {
            Signer::Ed(pair) => pair.sign(message).as_ref().to_vec(),
            Signer::Ec(pair) => pair.sign(&chance, message).unwrap().as_ref().to_vec(),
            Signer::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &chance, message, &mut signature)
                    .unwrap();
                signature
            }
        }
    }

    /// A token with a head of its own.
    pub(crate) fn token_with(&self, head: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", part(head), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.signature(message.as_bytes()));
        format!("{message}.{signature}")
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({"alg": self.algorithm().name(), "typ": "JWT"}), claims)
    }

    pub(crate) fn issuer(&self, name: &str) -> Issuer {
        Issuer {
            name: name.to_owned(),
            audience: "ductor".to_owned(),
            key_id: None,
            key: PublicKey::read(self.algorithm(), &self.pem()).unwrap(),
            tenant: TenantOf::Claim("tenant".to_owned()),
            scopes_claim: "scope".to_owned(),
        }
    }
}

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

/// Claims that open, with some of them replaced; null takes one out.
fn claims(other: &Value) -> Value {
    let mut all = json!({
        "iss": ISSUER, "aud": "ductor", "sub": "ann", "tenant": "acme", "scope": "openid job:read job:write",
        "exp": NOW.0 / 1_000 + 300, "nbf": NOW.0 / 1_000 - 300,
    });
    for (name, value) in other.as_object().unwrap() {
        if value.is_null() {
            all.as_object_mut().unwrap().remove(name);
        } else {
            all[name] = value.clone();
        }
    }
    all
}

#[test]
fn a_token_of_each_algorithm_speaks_for_its_subject() {
    for (name, algorithm) in Algorithm::ALL {
        let signer = Signer::new(algorithm);
        let bearer = check(&signer.token(&claims(&json!({}))), &[signer.issuer(ISSUER)], NOW).unwrap();
        assert_eq!(bearer.principal, format!("jwt:{ISSUER}#ann"), "{name}");
        assert_eq!(bearer.tenant, "acme");
        // What is no scope of ours gives nothing.
        assert_eq!(
            bearer.scopes.iter().collect::<Vec<_>>(),
            ["job:read", "job:write"]
        );
        assert_eq!(bearer.ends_at, NOW.plus(360_000));
    }
}

#[test]
fn each_wrong_claim_is_refused() {
    let signer = Signer::new(Algorithm::EdDsa);
    let issuers = [signer.issuer(ISSUER)];
    let seconds = NOW.0 / 1_000;
    for (other, expected) in [
        (json!({"iss": "https://login.example.com"}), Refused::Issuer),
        (json!({"iss": null}), Refused::Issuer),
        (json!({"iss": [ISSUER]}), Refused::Malformed),
        (json!({"aud": "others"}), Refused::Audience),
        (json!({"aud": ["others", 1]}), Refused::Audience),
        (json!({"aud": {"ductor": true}}), Refused::Audience),
        (json!({"aud": null}), Refused::Audience),
        (json!({"exp": null}), Refused::Malformed),
        (json!({"exp": "soon"}), Refused::Malformed),
        (json!({"exp": 1e300}), Refused::Malformed),
        (json!({"exp": -1}), Refused::Malformed),
        (json!({"exp": seconds - 60}), Refused::Expired),
        (json!({"nbf": seconds + 61}), Refused::Early),
        (json!({"nbf": true}), Refused::Malformed),
        (json!({"sub": null}), Refused::Malformed),
        (json!({"sub": ""}), Refused::Malformed),
        (json!({"sub": "a\nb"}), Refused::Malformed),
        (json!({"sub": "s".repeat(201)}), Refused::Malformed),
        (json!({"tenant": null}), Refused::Tenant),
        (json!({"tenant": ["acme"]}), Refused::Tenant),
        (json!({"tenant": "Acme; drop"}), Refused::Tenant),
        (json!({"scope": 7}), Refused::Malformed),
        (json!({"scope": ["job:read", 7]}), Refused::Malformed),
    ] {
        let token = signer.token(&claims(&other));
        assert_eq!(check(&token, &issuers, NOW), Err(expected), "{other}");
    }
    for good in [
        json!({"aud": ["others", "ductor"]}),
        json!({"exp": seconds - 59}),
        json!({"exp": 1_800_000_300.5}),
        json!({"nbf": seconds + 60}),
        json!({"nbf": null}),
        json!({"scope": ["job:read"]}),
        json!({"scope": null}),
    ] {
        let token = signer.token(&claims(&good));
        assert!(check(&token, &issuers, NOW).is_ok(), "{good}");
    }
}

#[test]
fn a_token_has_no_say_in_its_algorithm() {
    let signers = Algorithm::ALL.map(|(_, algorithm)| Signer::new(algorithm));
    let good = claims(&json!({}));
    for signer in &signers {
        let issuers = [signer.issuer(ISSUER)];
        for name in [
            "none", "None", "", "HS256", "HS512", "RS512", "PS256", "ES384", "eddsa",
        ] {
            let token = signer.token_with(&json!({"alg": name}), &good);
            assert_eq!(check(&token, &issuers, NOW), Err(Refused::Algorithm), "{name}");
        }
        for other in signers
            .iter()
            .filter(|other| other.algorithm() != signer.algorithm())
        {
            // Signed by another kind of key that says so, and by one that says it is the right kind.
            assert_eq!(check(&other.token(&good), &issuers, NOW), Err(Refused::Algorithm));
            let head = json!({"alg": signer.algorithm().name()});
            assert_eq!(
                check(&other.token_with(&head, &good), &issuers, NOW),
                Err(Refused::Signature)
            );
        }
        for head in [
            json!({}),
            json!({"alg": ["EdDSA"]}),
            json!({"alg": signer.algorithm().name(), "crit": ["b64"]}),
        ] {
            assert_eq!(
                check(&signer.token_with(&head, &good), &issuers, NOW),
                Err(Refused::Malformed)
            );
        }
    }
}

#[test]
fn a_secret_made_of_the_public_key_signs_nothing() {
    use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
    let signer = Signer::new(Algorithm::Rs256);
    let good = claims(&json!({}));
    for name in ["HS256", "RS256"] {
        let message = format!("{}.{}", part(&json!({"alg": name})), part(&good));
        let secret = Key::new(HMAC_SHA256, signer.pem().as_bytes());
        let mac = sign(&secret, message.as_bytes());
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(mac.as_ref()));
        let expected = if name == "HS256" {
            Refused::Algorithm
        } else {
            Refused::Signature
        };
        assert_eq!(check(&token, &[signer.issuer(ISSUER)], NOW), Err(expected));
    }
}

#[test]
fn the_key_of_one_issuer_signs_nothing_for_another() {
    let [ours, theirs] = [Signer::new(Algorithm::EdDsa), Signer::new(Algorithm::EdDsa)];
    let named = |signer: &Signer, name: &str, key_id: &str| Issuer {
        key_id: Some(key_id.to_owned()),
        ..signer.issuer(name)
    };
    let issuers = [
        named(&ours, ISSUER, "one"),
        named(&theirs, "https://other", "two"),
    ];
    let head = |key_id: &str| json!({"alg": "EdDSA", "kid": key_id});
    let good = claims(&json!({}));
    assert!(check(&ours.token_with(&head("one"), &good), &issuers, NOW).is_ok());
    // Their key, by its own name and by ours, for a token that says it is of our issuer.
    assert_eq!(
        check(&theirs.token_with(&head("two"), &good), &issuers, NOW),
        Err(Refused::KeyId)
    );
    assert_eq!(
        check(&theirs.token_with(&head("one"), &good), &issuers, NOW),
        Err(Refused::Signature)
    );
    assert_eq!(
        check(&ours.token_with(&head("two"), &good), &issuers, NOW),
        Err(Refused::KeyId)
    );
    assert_eq!(check(&ours.token(&good), &issuers, NOW), Err(Refused::KeyId));
    // Two keys of one issuer: the old one goes on until it is taken out.
    let turning = [named(&ours, ISSUER, "one"), named(&theirs, ISSUER, "two")];
    assert!(check(&ours.token_with(&head("one"), &good), &turning, NOW).is_ok());
    assert!(check(&theirs.token_with(&head("two"), &good), &turning, NOW).is_ok());
    assert_eq!(
        check(&theirs.token_with(&head("two"), &good), &turning[..1], NOW),
        Err(Refused::KeyId)
    );
    assert_eq!(check(&ours.token(&good), &[], NOW), Err(Refused::Issuer));
}

#[test]
fn a_fixed_tenant_and_other_claims_are_those_of_the_configuration() {
    let signer = Signer::new(Algorithm::EdDsa);
    let issuer = Issuer {
        tenant: TenantOf::Always("house".to_owned()),
        scopes_claim: "permissions".to_owned(),
        ..signer.issuer(ISSUER)
    };
    let token = signer.token(&claims(&json!({"permissions": ["run:read"], "scope": "admin"})));
    let bearer = check(&token, &[issuer], NOW).unwrap();
    assert_eq!(bearer.tenant, "house");
    assert_eq!(bearer.scopes.iter().collect::<Vec<_>>(), ["run:read"]);
}

#[test]
fn a_changed_byte_opens_nothing() {
    let signer = Signer::new(Algorithm::EdDsa);
    let issuers = [signer.issuer(ISSUER)];
    let token = signer.token(&claims(&json!({})));
    for place in 0..token.len() {
        let mut changed = token.clone().into_bytes();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).unwrap();
        assert!(check(&changed, &issuers, NOW).is_err(), "byte {place}");
    }
    let (message, _) = token.rsplit_once('.').unwrap();
    for bad in [
        "",
        ".",
        "..",
        "a.b.c",
        message,
        &format!("{message}."),
        &format!("{token}."),
        &format!("{token}="),
    ] {
        assert!(check(bad, &issuers, NOW).is_err(), "{bad}");
    }
    assert!(!is_token(&format!("{}..", "a".repeat(limits::TOKEN_BYTES_MAX))));
}

#[test]
fn keys_are_read_or_it_is_said_why_not() {
    let signers = Algorithm::ALL.map(|(_, algorithm)| Signer::new(algorithm));
    for signer in &signers {
        for (_, other) in Algorithm::ALL {
            let read = PublicKey::read(other, &signer.pem());
            assert_eq!(read.is_ok(), other == signer.algorithm(), "{read:?}");
        }
    }
    let short = Signer::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()).pem();
    let cut: String = short.replacen("MII", "", 1);
    for (pem, expected) in [
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----",
            "private key",
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            "no public key in PEM",
        ),
        (
            "-----BEGIN PUBLIC KEY-----\n%%\n-----END PUBLIC KEY-----",
            "not base64",
        ),
        (
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
            "2048",
        ),
        ("", "no public key in PEM"),
        (&cut, "i"),
    ] {
        let why = PublicKey::read(Algorithm::Rs256, pem).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}
