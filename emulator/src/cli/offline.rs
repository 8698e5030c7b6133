//! `smalt check` and `smalt salvage`: what is done to a store that no server has open.

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

/// `smalt check`. The exit code is 0 for a store that is whole and 1 for one that is not.
#[derive(Debug, Args)]
pub struct Check {
    /// Directory of the data, as given to `--location`.
    #[arg(value_name = "DIR", default_value = "smalt-data")]
    dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// `smalt salvage`. The exit code is 0 when everything was saved and 1 when something was lost.
#[derive(Debug, Args)]
pub struct Salvage {
    /// Directory of the data, as given to `--location`.
    #[arg(value_name = "DIR", default_value = "smalt-data")]
    dir: PathBuf,
    /// New or empty directory for what is saved.
    #[arg(long, value_name = "OUT")]
    to: PathBuf,
    /// Print the manifest as JSON.
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Checks and prints what was found.
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
    /// Saves and prints what was saved and lost.
    ///
    /// # Errors
    /// When there is no store, it is in use, or nothing can be written.
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
        // Where there is room for what is saved there is room for the metadata.
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

const SCRATCH: &str = "cannot make a directory for a copy of the metadata; set TMPDIR";

fn print(told: &(impl Serialize + std::fmt::Display), json: bool) -> anyhow::Result<()> {
    let text = match json {
        true => serde_json::to_string_pretty(told)?,
        false => told.to_string(),
    };
    // A reader that has gone, as `head` goes, is no reason to fail.
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
