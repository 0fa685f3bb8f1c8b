//! Who may do what: scopes, the text of an API key, the names of tenants and keys.
//!
//! `scopes`: what a caller may do; `token`: a key as text, with its checksum; `naming`: the rules of names.

pub mod naming;
pub mod scopes;
pub mod token;
