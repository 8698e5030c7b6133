//! The Queue service, rule by rule: each test quotes the sentence of the documents that it checks.

mod client;
mod door;
mod old_versions;
mod queues;
mod signatures;
mod times;
