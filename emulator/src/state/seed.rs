//! Seeds: containers, blobs, queues, messages, tables and entities that exist after the start.
//!
//! A seed is a TOML file ([`file`]) or a folder whose sub-folders are containers ([`folder`]). Both
//! become a list of steps, each with a request that checks whether something exists and the
//! requests that create it. Existing resources stay unchanged. Missing ones are created in a fork
//! of the emulator by the regular operations, and the fork's state then replaces the current one
//! atomically: a failure or a crash leaves the state unchanged.

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

/// The counts of an applied seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seeded {
    /// Number of created containers, blobs, queues (with their messages), tables, entities and
    /// service properties.
    pub made: usize,
    /// Number of resources that already existed and stayed unchanged.
    pub left: usize,
}

/// Creates the resources of a seed that do not exist yet.
///
/// # Errors
/// Fails if the seed is invalid, the service rejects it, or the store cannot write. The state is
/// then unchanged.
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

/// Creates the missing resources in a fork, then takes over the fork's state.
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
