//! The Queue service, rule by rule: each test says the sentence of the documents that it shows.

mod acl;
mod client;
mod door;
mod limits;
mod old_versions;
mod queues;
mod receipts;
mod service;
mod signatures;
#[path = "../support/mod.rs"]
mod support;
mod times;
