//! Runs one input of `smalt_harness::fuzz` and checks its cost against a budget.
//!
//! The cost is the number of code blocks that the input executed, as counted by the compiler's
//! sanitizer instrumentation: the same on every machine and in every run. A budget per byte finds
//! code whose cost grows with the square of its input.

use std::sync::atomic::{AtomicU64, Ordering};

use smalt_harness::fuzz;

/// Blocks executed since the program started, on all threads.
static BLOCKS: AtomicU64 = AtomicU64::new(0);

/// Called at the start of every block (`-sanitizer-coverage-trace-pc` of LLVM's SanitizerCoverage).
/// LLVM does not instrument functions with this prefix.
#[unsafe(no_mangle)]
pub extern "C" fn __sanitizer_cov_trace_pc() {
    BLOCKS.fetch_add(1, Ordering::Relaxed);
}

/// Runs one input of a kind.
///
/// # Panics
/// When the function of the kind panics, or when the input costs more than its budget.
pub fn judge(name: &str, input: &[u8]) {
    let kind = fuzz::kind(name).expect("a fuzz target is named like a kind");
    let before = BLOCKS.load(Ordering::Relaxed);
    (kind.run)(input);
    let spent = BLOCKS.load(Ordering::Relaxed) - before;
    let budget = kind.blocks + kind.blocks_per_byte * input.len() as u64;
    if std::env::var_os("SMALT_FUZZ_COST").is_some() {
        eprintln!("{name}: {} bytes, {spent} blocks of {budget}", input.len());
    }
    assert!(
        spent <= budget,
        "{} bytes executed {spent} blocks of code; the budget is {budget}",
        input.len()
    );
}
