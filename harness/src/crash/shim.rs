//! Finds the shim, and configures it for a child. `harness/shim` says what it does.

use std::path::{Path, PathBuf};

/// The file that cargo makes of the package `smalt-shim`.
const FILE: &str = "libsmalt_shim.so";

/// The calls that fail; see `harness/shim/src/plan.rs`.
#[derive(Clone, Debug)]
pub struct Failure {
    /// `write`, `sync`, `read`, `open` or `rename`.
    pub call: &'static str,
    /// Suffix of the path.
    pub ending: &'static str,
    /// Number of the first call that fails, from 1.
    pub nth: u64,
    /// `enospc`, `enospc-late`, `eio`, `eio-once` or `short`.
    pub how: &'static str,
}

/// Returns the shim's file, which is next to this executable or above the directory of the tests.
///
/// # Errors
/// When it was not built, or this is not Linux.
pub fn find() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let found = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|dir| dir.join(FILE))
        .find(|path| path.is_file());
    found.ok_or_else(|| {
        anyhow::anyhow!(
            "{FILE} is not beside {}: run `cargo build -p smalt-shim` (with `--release` for a \
             release binary); it is for Linux only",
            own.display()
        )
    })
}

/// Returns the environment variables for a child that is watched below this directory.
pub fn environment(
    watched: &Path,
    journal: Option<&Path>,
    failure: Option<&Failure>,
) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut variables = vec![
        ("LD_PRELOAD", find()?.display().to_string()),
        ("SMALT_SHIM_DIR", watched.display().to_string()),
    ];
    if let Some(journal) = journal {
        let journal = std::path::absolute(journal)?;
        variables.push(("SMALT_SHIM_JOURNAL", journal.display().to_string()));
    }
    if let Some(Failure {
        call,
        ending,
        nth,
        how,
    }) = failure
    {
        variables.push(("SMALT_SHIM_FAIL", format!("{call}:{ending}:{nth}:{how}")));
    }
    Ok(variables)
}
