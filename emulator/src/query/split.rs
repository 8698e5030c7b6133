//! `sys.split`: where a blob can be cut so that no record is.
//!
//! Source: "Query acceleration SQL language reference", `sys.split`.

/// Adds records up to batches.
#[derive(Debug)]
pub struct Split {
    bytes: u64,
    batch: u64,
}

impl Split {
    /// Batches of this many bytes, and of what the last record in each has beyond.
    pub fn new(bytes: u64) -> Self {
        Split { bytes, batch: 0 }
    }

    /// Adds a record of this length; the length of the batch that it completes.
    pub fn add(&mut self, length: u64) -> Option<u64> {
        self.batch += length;
        let is_full = self.batch >= self.bytes;
        is_full.then(|| std::mem::take(&mut self.batch))
    }

    /// The length of the last batch, where there is one.
    pub fn rest(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.batch)).filter(|batch| *batch > 0)
    }
}
