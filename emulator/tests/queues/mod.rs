//! The Queue service, rule by rule: each test quotes the sentence of the documents that it checks.

mod client;
mod crowds;
mod door;
mod old_versions;
mod times;
