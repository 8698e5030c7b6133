//! What the fuzzers run: one function per kind of input, from bytes to a verdict.
//!
//! A function returns when the input was handled as it must be and panics when it was not. The
//! coverage-guided programs in `harness/fuzz` call these functions under a budget on the blocks of
//! code that an input may execute; `cargo test` calls them on every input of `fixtures/fuzz`, so an
//! input that once failed is a regression test from then on.

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

/// One kind of input.
pub struct Kind {
    /// Name of the fuzz target and of the folder of its inputs.
    pub name: &'static str,
    /// Judges one input.
    pub run: fn(&[u8]),
    /// Blocks of code that an empty input may execute: what surrounds the input costs.
    pub blocks: u64,
    /// Blocks of code that each further byte of input may execute.
    pub blocks_per_byte: u64,
}

/// Every kind. The budgets are about ten times what the kept inputs need, so that code which costs
/// the square of its input exceeds them within a few kilobytes.
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

/// The kind of this name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
