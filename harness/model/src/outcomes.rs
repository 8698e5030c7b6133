//! The answers that each operation can have: a closed list of status, error code and condition
//! header.
//!
//! The coverage of histories is counted in these cells. An answer of the model that is not in the
//! list is a mistake of the list; a cell that is never reached is a mistake of the generator or of
//! the list. `harness check histories` looks for both.

mod describe;
mod groups;
mod lake;
mod rows;
mod situations;
mod tables;

use smalt_protocol::ErrorCode;

pub use describe::{describe, describe_container, describe_queue};
pub use lake::ROWS as LAKE_ROWS;
pub use rows::ROWS;
pub use situations::{SITUATIONS, Situation, describe_in};

/// Status and error code of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Outcome {
    /// The HTTP status.
    pub status: u16,
    /// The error code; `None` if the operation succeeded.
    pub code: Option<ErrorCode>,
}

/// The condition header of an operation, as an index into [`HEADERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Header(pub u8);

/// The names of the headers, by index.
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
    /// No condition header.
    pub const NONE: Header = Header(0);

    /// Returns the header's name; empty for [`Header::NONE`].
    pub fn name(self) -> &'static str {
        HEADERS.get(usize::from(self.0)).copied().unwrap_or("")
    }
}

/// A set of headers, one bit each.
pub type Set = u32;

/// An operation and all its possible answers.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The operation's name.
    pub operation: &'static str,
    /// Outcomes, in groups that rows share, each with the headers under which it can occur.
    pub outcomes: &'static [&'static [(Outcome, Set)]],
}

/// One cell of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// The operation's name.
    pub operation: &'static str,
    /// The answer.
    pub outcome: Outcome,
    /// The operation's condition header.
    pub header: Header,
}

impl Cell {
    /// Returns whether the operation is on a hierarchical account.
    pub fn is_of_lake(&self) -> bool {
        let mut rows = LAKE_ROWS.iter();
        rows.any(|row| row.operation == self.operation)
    }

    /// Returns whether the operation belongs to the Table service.
    pub fn is_of_tables(&self) -> bool {
        let mut rows = tables::ROWS.iter();
        rows.any(|row| row.operation == self.operation)
    }
}

/// Returns every row of the matrix.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().chain(tables::ROWS).chain(LAKE_ROWS)
}

/// Returns every cell of the matrix.
pub fn cells() -> impl Iterator<Item = Cell> {
    let headers = || (0..HEADERS.len() as u8).map(Header);
    rows().flat_map(move |row| {
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
