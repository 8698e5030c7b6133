//! Seeds: containers, blobs, queues, messages, tables and entities that are there after the start.
//!
//! A seed is a file in TOML ([`file`]) or a folder whose sub-folders are containers ([`folder`]).
//! Either becomes a list of steps: a request that asks whether something is there, and those that
//! make it. What is there is left as it is. What is missing is made in a fork of the emulator, by
//! the operations themselves, and the state that comes of it takes the place of the current one at
//! once: a refusal or a crash leaves the state as it was.

mod call;
mod entity;
mod error;
mod file;
mod folder;
mod plan;

use std::path::Path;

use self::folder::FILE_NAME;
use self::plan::{Plan, Step};
use crate::disk::Disk;
use crate::emulator::Emulator;

pub use error::{Place, SeedError};

/// What a seed did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seeded {
    /// What was made: containers, blobs, queues with their messages, tables, entities, properties
    /// of services.
    pub made: usize,
    /// What was there already, and was left as it is.
    pub left: usize,
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
