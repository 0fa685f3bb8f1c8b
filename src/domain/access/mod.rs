//! Who may do what: scopes, the text of an API key, tokens of issuers, the names of tenants and keys.
//!
//! `scopes`: what a caller may do; `token`: a key as text, with its checksum; `jwt`, `public_key`: tokens that others sign;
//! `naming`: the rules of names.

pub mod jwt;
#[cfg(test)]
pub(crate) mod jwt_tests;
pub mod naming;
pub mod public_key;
pub mod scopes;
pub mod token;
