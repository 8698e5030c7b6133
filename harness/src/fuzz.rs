//! The functions that the fuzzers run, one for each kind of input.
//!
//! A function returns when the input was handled correctly and panics otherwise. The
//! coverage-guided programs in `harness/fuzz` call these functions under a budget of executed code
//! blocks; `cargo test` calls them on every input of `fixtures/fuzz`, so an input that once failed
//! stays a regression test.

mod documents;
mod requests;
mod sockets;
mod state;
mod workers;

pub use documents::documents;
pub use requests::requests;
pub use sockets::sockets;
pub use state::state;
pub use workers::workers;

/// A kind of input.
pub struct Kind {
    /// Name of the fuzz target, and of the folder with its inputs.
    pub name: &'static str,
    /// Runs one input; panics when it is handled incorrectly.
    pub run: fn(&[u8]),
    /// Number of code blocks that an empty input may execute: the fixed cost of a run.
    pub blocks: u64,
    /// Number of code blocks that each further byte of input may execute.
    pub blocks_per_byte: u64,
}

/// All kinds. The budgets are about ten times what the inputs in `fixtures/fuzz` need, so that code
/// whose cost grows with the square of its input exceeds them within a few kilobytes.
pub const KINDS: [Kind; 6] = [
    Kind {
        name: "control",
        run: requests,
        blocks: 2_000_000,
        blocks_per_byte: 4_000,
    },
    Kind {
        name: "documents",
        run: documents,
        blocks: 20_000,
        blocks_per_byte: 1_000,
    },
    Kind {
        name: "requests",
        run: requests,
        blocks: 700_000,
        blocks_per_byte: 2_000,
    },
    Kind {
        name: "sockets",
        run: sockets,
        blocks: 100_000,
        blocks_per_byte: 500,
    },
    Kind {
        name: "state",
        run: state,
        blocks: 2_000_000,
        blocks_per_byte: 4_000,
    },
    Kind {
        name: "workers",
        run: workers,
        blocks: 5_000,
        blocks_per_byte: 200,
    },
];

/// Returns the kind with this name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
