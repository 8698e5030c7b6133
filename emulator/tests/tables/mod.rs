//! The Table service, rule by rule: each test quotes the sentence of the documents that it checks.

mod client;
mod durability;
mod lifecycle;
mod tokens;
