//! The Queue service, rule by rule: each test says the sentence of the documents that it shows.

mod client;
mod door;
mod old_versions;
mod queues;
mod signatures;
#[path = "../support/mod.rs"]
mod support;
mod times;
