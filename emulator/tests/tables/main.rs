//! The Table service, rule by rule: each test says the sentence of the documents that it shows.

mod client;
mod durability;
mod entities;
mod queries;
mod signatures;
#[path = "../support/mod.rs"]
mod support;
mod tables;
mod tokens;
mod transactions;
