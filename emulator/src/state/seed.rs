//! Seeds: containers, blobs, queues, messages, tables and entities that are there after the start.
//!
//! A seed is a file in TOML ([`file`]) or a folder whose sub-folders are containers ([`folder`]).
//! Either becomes a list of steps: a request that asks whether something is there, and those that
//! make it. What is there is left as it is. What is missing is made in a fork of the emulator, by
//! the operations themselves, and the state that comes of it takes the place of the current one at
//! once: a refusal or a crash leaves the state as it was.

mod call;
mod entity;
mod file;
mod folder;
mod plan;

use std::path::{Path, PathBuf};

use http::StatusCode;

use self::plan::{Plan, Step};
use crate::disk::Disk;
use crate::emulator::Emulator;
use crate::store::StoreError;

/// What a seed is called in a folder.
pub const FILE_NAME: &str = "seed.toml";

/// What a seed did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seeded {
    /// What was made: containers, blobs, queues with their messages, tables, entities, properties
    /// of services.
    pub made: usize,
    /// What was there already, and was left as it is.
    pub left: usize,
}

/// Why a seed was refused. The state is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Io {
        /// The file or folder.
        file: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The seed is not what it should be.
    #[error("{place}: {what}")]
    Invalid {
        /// File and line.
        place: Place,
        /// The field, and what is wrong with it.
        what: String,
    },
    /// The service refuses what the seed asks for.
    #[error("{place}: {what} is refused with {status} {code}")]
    Refused {
        /// File and line.
        place: Place,
        /// What it asks for.
        what: String,
        /// The answer's status.
        status: StatusCode,
        /// The answer's code and message.
        code: String,
    },
    /// The store cannot read or write.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where something stands in a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file or folder.
    pub file: PathBuf,
    /// The line, counted from 1; absent in a folder.
    pub line: Option<usize>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.display())?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// Makes what a seed names and the emulator does not have.
///
/// # Errors
/// What is wrong with the seed, or that the store cannot write: then the state is as it was.
pub async fn plant(emulator: &Emulator, disk: &dyn Disk, seed: &Path) -> Result<Seeded, SeedError> {
    let Plan { steps } = plan(emulator, disk, seed)?;
    let mut missing = Vec::new();
    for step in &steps {
        if !step.is_there(emulator).await? {
            missing.push(step);
        }
    }
    if !missing.is_empty() {
        grow(emulator, disk, &missing).await?;
    }
    Ok(Seeded {
        made: missing.len(),
        left: steps.len() - missing.len(),
    })
}

fn plan(emulator: &Emulator, disk: &dyn Disk, seed: &Path) -> Result<Plan, SeedError> {
    let accounts = &emulator.core().config.accounts;
    let mut plan = Plan::default();
    if !seed.is_dir() {
        file::read(&mut plan, accounts, disk, seed)?;
        return Ok(plan);
    }
    let inside = seed.join(FILE_NAME);
    match inside.is_file() {
        true => file::read(&mut plan, accounts, disk, &inside)?,
        false => folder::read(&mut plan, accounts, disk, seed)?,
    }
    Ok(plan)
}

/// Makes what is missing in a fork, and goes on with the fork's state.
async fn grow(emulator: &Emulator, disk: &dyn Disk, missing: &[&Step]) -> Result<(), SeedError> {
    let fork = emulator.fork()?;
    for step in missing {
        step.make(&fork, disk).await?;
    }
    let (core, grown) = (emulator.core(), fork.core());
    let image = grown.store.image()?;
    core.store.replace(|successor| successor.take(&image))?;
    core.ids.catch_up(&grown.ids);
    Ok(())
}
