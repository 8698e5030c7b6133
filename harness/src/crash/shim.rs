//! Where the shim is, and what a child under it is told. `harness/shim` says what it does.

use std::path::{Path, PathBuf};

/// The file that cargo makes of the package `smalt-shim`.
const FILE: &str = "libsmalt_shim.so";

/// Which calls fail: see `harness/shim/src/plan.rs`.
#[derive(Clone, Debug)]
pub struct Failure {
    /// `write`, `sync`, `read`, `open` or `rename`.
    pub call: &'static str,
    /// What the path ends with.
    pub ending: &'static str,
    /// The first call that fails, from 1.
    pub nth: u64,
    /// `enospc`, `enospc-late`, `eio`, `eio-once` or `short`.
    pub how: &'static str,
}

/// The shim's file, beside this executable or above the folder of tests.
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

/// Variables for a child that is to be watched below this directory.
///
/// # Errors
/// As [`find`].
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
