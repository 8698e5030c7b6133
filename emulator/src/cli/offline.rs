//! `smalt check` and `smalt salvage`, which work on a store that no server has open.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;

use crate::check;
use crate::disk::{Disk, SystemDisk};
use crate::salvage;

/// `smalt check`. The exit code is 0 for an intact store and 1 for a damaged one.
#[derive(Debug, Args)]
pub struct Check {
    /// Directory of the data, as given to `--location`.
    #[arg(value_name = "DIR", default_value = "smalt-data")]
    dir: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// `smalt salvage`. The exit code is 0 when all data was saved and 1 when some was lost.
#[derive(Debug, Args)]
pub struct Salvage {
    /// Directory of the data, as given to `--location`.
    #[arg(value_name = "DIR", default_value = "smalt-data")]
    dir: PathBuf,
    /// New or empty directory for the saved files.
    #[arg(long, value_name = "OUT")]
    to: PathBuf,
    /// Print the manifest as JSON.
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Checks the store and prints the report.
    ///
    /// # Errors
    /// When there is no store, it is in use, or its files cannot be read.
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
        let scratch = tempfile::tempdir().context(SCRATCH)?;
        let report = check::check(&self.dir, scratch.path(), &disk)?;
        print(&report, self.json)?;
        Ok(exit(report.whole))
    }
}

impl Salvage {
    /// Salvages the store and prints what was saved and lost.
    ///
    /// # Errors
    /// When there is no store, it is in use, or nothing can be written.
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
        // The disk that has room for the saved files also has room for a copy of the metadata.
        let above = std::path::absolute(&self.to)?;
        let above = above.parent().unwrap_or(Path::new("."));
        disk.create_dir(above)
            .with_context(|| above.display().to_string())?;
        let scratch = tempfile::tempdir_in(above).context(SCRATCH)?;
        let saved = salvage::salvage(&self.dir, &self.to, scratch.path(), &disk)?;
        print(&saved, self.json)?;
        Ok(exit(saved.lost.is_empty()))
    }
}

const SCRATCH: &str = "cannot create a directory for a copy of the metadata; set TMPDIR";

fn print(told: &(impl Serialize + std::fmt::Display), json: bool) -> anyhow::Result<()> {
    let text = match json {
        true => serde_json::to_string_pretty(told)?,
        false => told.to_string(),
    };
    // A closed pipe, as with `head`, is not an error.
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(())
}

fn exit(is_well: bool) -> ExitCode {
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
