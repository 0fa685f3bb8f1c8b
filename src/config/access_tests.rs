//! Who may call and who shares the daemon, as the file says it.

use super::load_tests::{faults, good};
use super::model::SecretSource;
use crate::domain::access::jwt::TenantOf;
use crate::domain::access::public_key::Algorithm;
use crate::domain::routing::objects::PipelineMode;

const PEM: &str = "\"-----BEGIN PUBLIC KEY-----\\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\\n-----END PUBLIC KEY-----\"";

fn issuer(more: &str) -> String {
    format!("auth: {{issuers: [{{issuer: https://a/, audience: d, algorithm: EdDSA{more}}}]}}")
}

#[test]
fn an_issuer_is_read_with_its_key() {
    let config = good(&issuer(&format!(", key: {PEM}")));
    let found = &config.auth.issuers[0];
    assert_eq!(
        (found.issuer.as_str(), found.algorithm),
        ("https://a/", Algorithm::EdDsa)
    );
    let trusted = found.trusted().unwrap();
    assert_eq!(trusted.tenant, TenantOf::Claim("tenant".to_owned()));
    assert_eq!((trusted.scopes_claim.as_str(), trusted.key_id), ("scope", None));
    // Its key is public, and tells what a reload has changed; a path of the machine is not shown.
    let shown = serde_json::to_value(&config.auth).unwrap();
    assert_eq!(shown["issuers"][0]["algorithm"], "EdDSA");
    assert!(
        shown["issuers"][0]["key"]
            .as_str()
            .unwrap()
            .starts_with("MCowBQYDK2Vw")
    );
    let file = good(&issuer(
        ", keyFile: key.pem, tenant: acme, keyId: k, scopesClaim: permissions",
    ));
    let found = &file.auth.issuers[0];
    assert!(found.trusted().is_none(), "its file was not read yet");
    assert!(!serde_json::to_string(&file.auth).unwrap().contains("key.pem"));
}

#[test]
fn what_is_wrong_with_an_issuer_is_told() {
    let both = format!(", key: {PEM}, keyFile: a");
    let other = issuer(&format!(", key: {PEM}")).replace("EdDSA", "ES256");
    for (text, expected) in [
        (
            issuer(""),
            "1:18 an item of `auth.issuers` needs `key` or `keyFile`, and not both",
        ),
        (
            issuer(&both),
            "1:18 an item of `auth.issuers` needs `key` or `keyFile`, and not both",
        ),
        (
            issuer(", keyFile: a").replace("EdDSA", "HS256"),
            "auth.issuers.algorithm must be EdDSA, ES256 or RS256",
        ),
        (
            issuer(", keyFile: a").replace("EdDSA", "none"),
            "auth.issuers.algorithm must be EdDSA, ES256 or RS256",
        ),
        (
            other,
            "`auth.issuers.key`: it is no key over P-256, which ES256 needs",
        ),
        (
            issuer(", keyFile: a").replace("https://a/", "'https://a/#b'"),
            "without `#`",
        ),
        (
            issuer(", keyFile: a").replace("audience: d, ", ""),
            "1:18 an item of `auth.issuers` needs `audience`",
        ),
        (issuer(", keyFile: a, tenant: Acme"), "a tenant's name must match"),
    ] {
        let found = faults(&text);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn tenants_and_what_they_say_of_routing() {
    let config = good(
        "tenants: [{name: acme}, {name: default, routing: {defaultPool: support, pipelineMode: dag}}]\n\
         routing: {pipelineMode: shadow, alertSecret: {fromEnvVar: S}}",
    );
    assert_eq!(config.tenants[0].routing, None);
    let said = config.tenants[1].routing.as_ref().unwrap();
    assert_eq!(
        (said.default_pool.as_deref(), said.pipeline_mode),
        (Some("support"), PipelineMode::Dag)
    );
    assert_eq!(config.routing.pipeline_mode, PipelineMode::Shadow);
    assert_eq!(
        config.routing.alert_secret,
        Some(SecretSource::Variable("S".to_owned()))
    );
    let plain = good("tenants: [{name: acme, routing: {}}]");
    let said = plain.tenants[0].routing.as_ref().unwrap();
    assert_eq!(
        (said.default_pool.as_deref(), said.pipeline_mode),
        (None, PipelineMode::Inherit)
    );
    for (text, expected) in [
        ("tenants: {acme: {}}", "`tenants` must be a list, not a map"),
        ("tenants: [{name: a}, {name: a}]", "tenant 'a' is given twice"),
        ("tenants: [{routing: {}}]", "a tenant needs a `name`"),
        ("tenants: [{name: A}]", "a tenant's name must match"),
        (
            "tenants: [{name: a, routing: {pipelineMode: fast}}]",
            "must be inherit, linear, dag or shadow",
        ),
        (
            "routing: {alertSecret: {}}",
            "routing.alertSecret: secret: give fromFile or fromEnvVar",
        ),
        (
            "routing: {alertSecret: word}",
            "routing.alertSecret: secret: give fromFile or fromEnvVar",
        ),
    ] {
        let found = faults(text);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{text}: {found:?}"
        );
    }
}
