//! What was saved of a store, and what was lost.

use serde::Serialize;
use serde_json::Value;

/// What was saved, and what was lost.
#[derive(Debug, Default, Serialize)]
pub struct Salvaged {
    /// Form of the directory.
    pub format: u32,
    /// The store.
    pub from: String,
    /// What is wrong with its files.
    pub findings: Vec<String>,
    /// Containers with their metadata.
    pub containers: Vec<Value>,
    /// Queues with their metadata.
    pub queues: Vec<Value>,
    /// Tables.
    pub tables: Vec<Value>,
    /// Blobs, snapshots and versions saved.
    pub blobs: u64,
    /// Messages saved.
    pub messages: u64,
    /// Entities saved.
    pub entities: u64,
    /// Payloads without a name.
    pub unnamed: Vec<Value>,
    /// What could not be read.
    pub lost: Vec<Lost>,
}

/// Something that could not be read.
#[derive(Debug, Serialize)]
pub struct Lost {
    /// What it was.
    pub what: String,
    /// Why it is lost.
    pub why: String,
}

impl Salvaged {
    pub(super) fn lose(&mut self, what: String, why: &dyn std::fmt::Display) {
        let why = why.to_string();
        self.lost.push(Lost { what, why });
    }
}
