//! Authorisation, in process: keys, tokens, signatures, anonymous requests.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod delegation;
mod lists;
mod operations;
mod proofs;
mod roles;
mod rows;
mod secrets;
mod service_sas;
mod shared_key;
mod sign_in;
mod tokens;
mod world;
