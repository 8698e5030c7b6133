//! What each operation can be answered: a closed list of status, error code and condition header.
//!
//! Whoever counts what histories reach counts these cells: an answer of the model that is not
//! among them is a mistake of this list, a cell that nothing reaches one of the generator or of
//! this list. Both are looked for by `harness check histories`.

mod describe;
mod groups;
mod rows;
mod situations;
mod tables;

use smalt_protocol::ErrorCode;

pub use describe::{describe, describe_container, describe_queue};
pub use rows::ROWS;
pub use situations::{SITUATIONS, Situation, describe_in};

/// Status and error code of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// Status.
    pub status: u16,
    /// Error code; none where the operation was done.
    pub code: Option<ErrorCode>,
}

/// The condition that an operation carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Header(pub u8);

/// Names of the headers, by number.
pub const HEADERS: [&str; 18] = [
    "",
    "If-Match",
    "If-Match: *",
    "If-None-Match",
    "If-None-Match: *",
    "If-Modified-Since",
    "If-Unmodified-Since",
    "x-ms-if-tags",
    "x-ms-source-if-match",
    "x-ms-source-if-match: *",
    "x-ms-source-if-none-match",
    "x-ms-source-if-modified-since",
    "x-ms-source-if-unmodified-since",
    "x-ms-blob-condition-appendpos",
    "x-ms-blob-condition-maxsize",
    "x-ms-if-sequence-number-le",
    "x-ms-if-sequence-number-lt",
    "x-ms-if-sequence-number-eq",
];

impl Header {
    /// None.
    pub const NONE: Header = Header(0);

    /// Its name; empty: none.
    pub fn name(self) -> &'static str {
        HEADERS.get(usize::from(self.0)).copied().unwrap_or("")
    }
}

/// Headers, a bit each.
pub type Set = u32;

/// An operation and everything that it can be answered.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the operation.
    pub operation: &'static str,
    /// Outcomes, in groups that rows share, each with the headers under which it can come.
    pub outcomes: &'static [&'static [(Outcome, Set)]],
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// Name of the operation.
    pub operation: &'static str,
    /// What it is answered.
    pub outcome: Outcome,
    /// The condition that it carries.
    pub header: Header,
}

impl Cell {
    /// Whether it is one of the Table service.
    pub fn is_of_tables(&self) -> bool {
        let mut rows = tables::ROWS.iter();
        rows.any(|row| row.operation == self.operation)
    }
}

/// Every cell.
pub fn cells() -> impl Iterator<Item = Cell> {
    let headers = || (0..HEADERS.len() as u8).map(Header);
    ROWS.iter().chain(tables::ROWS).flat_map(move |row| {
        let outcomes = row.outcomes.iter().copied().flatten();
        outcomes.flat_map(move |(outcome, set)| {
            let headers = headers().filter(move |header| set >> header.0 & 1 == 1);
            headers.map(move |header| Cell {
                operation: row.operation,
                outcome: *outcome,
                header,
            })
        })
    })
}
