//! `sys.split`: computes where a blob can be cut between records.
//!
//! Source: "Query acceleration SQL language reference", `sys.split`.

/// Groups records into batches.
#[derive(Debug)]
pub struct Split {
    bytes: u64,
    batch: u64,
}

impl Split {
    /// Creates batches of at least `bytes` bytes, each extended to the end of its last record.
    pub fn new(bytes: u64) -> Self {
        Split { bytes, batch: 0 }
    }

    /// Adds a record of this length. Returns the length of the batch if it is complete.
    pub fn add(&mut self, length: u64) -> Option<u64> {
        self.batch += length;
        let is_full = self.batch >= self.bytes;
        is_full.then(|| std::mem::take(&mut self.batch))
    }

    /// Returns the length of the last, incomplete batch, if any.
    pub fn rest(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.batch)).filter(|batch| *batch > 0)
    }
}
