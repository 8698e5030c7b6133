//! The report of a salvage: what was saved and what was lost.

use serde::Serialize;
use serde_json::Value;

/// What was saved, and what was lost.
#[derive(Debug, Default, Serialize)]
pub struct Salvaged {
    /// Version of the directory's format.
    pub format: u32,
    /// The directory of the store.
    pub from: String,
    /// What is wrong with the store's files.
    pub findings: Vec<String>,
    /// Containers with their metadata.
    pub containers: Vec<Value>,
    /// Queues with their metadata.
    pub queues: Vec<Value>,
    /// The tables.
    pub tables: Vec<Value>,
    /// Number of blobs, snapshots and versions saved.
    pub blobs: u64,
    /// Number of messages saved.
    pub messages: u64,
    /// Number of entities saved.
    pub entities: u64,
    /// Payloads without a name: segment, offset, length and file of each.
    pub unnamed: Vec<Value>,
    /// Everything that could not be read.
    pub lost: Vec<Lost>,
}

/// Something that could not be read.
#[derive(Debug, Serialize)]
pub struct Lost {
    /// The name of the resource or record.
    pub what: String,
    /// The error that it was read with.
    pub why: String,
}

impl Salvaged {
    pub(super) fn lose(&mut self, what: String, why: &dyn std::fmt::Display) {
        let why = why.to_string();
        self.lost.push(Lost { what, why });
    }
}
