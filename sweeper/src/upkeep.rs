//! Maintenance of the state document: conversion to version 2, and breaking a stuck lease.

use smalt_sleeve::port::ErrorKind;

use crate::accounts::Accounts;
use crate::destination;
use crate::error::SweepError;
use crate::shared::{Core, Stop};
use crate::state::{Container, Document, VERSION_NEWEST, ledger};
use crate::store::{self, Patience};
use crate::sweeper::Sweeper;
use crate::uri;

/// Maximum number of attempts to migrate while workers write the document.
const TRIES_MAX: u32 = 20;

/// The result of a migration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Migrated {
    /// The document already has version 2.
    Already,
    /// The document was written, with this many URIs replaced by names of credentials.
    Written(usize),
}

/// The result of breaking the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlocked {
    /// There was no lease.
    Free,
    /// The lease was broken.
    Broken,
    /// Refused because this many pages are in progress, so the holder may be alive.
    Refused(usize),
}

impl Sweeper {
    /// Writes the state document back as version 2, unless another client wrote it in the meantime.
    ///
    /// # Errors
    /// [`SweepError::Config`] if an element carries a SAS of an account that is not configured.
    pub async fn migrate_state(&self) -> Result<Migrated, SweepError> {
        let core = self.core(Stop::default());
        // A migration does not create a missing document.
        store::read(&core, self.state_account()?.as_ref()).await?;
        for _ in 0..TRIES_MAX {
            let mut session = store::open(&core, Patience::Limited).await?;
            let mut document = session.document.clone();
            if document.version >= VERSION_NEWEST {
                session.close().await;
                return Ok(Migrated::Already);
            }
            let replaced = match to_newest(&mut document, &core.accounts) {
                Ok(replaced) => replaced,
                Err(why) => {
                    session.close().await;
                    return Err(SweepError::Config(why));
                }
            };
            ledger::stamp(&mut document, &core.worker);
            let written = session.commit(document).await;
            session.close().await;
            if written? {
                return Ok(Migrated::Written(replaced));
            }
        }
        let why = "other workers kept writing the state document; try again";
        Err(SweepError::Config(why.to_owned()))
    }

    /// Breaks the lease on the state document. This is always safe, because the lease only saves
    /// work. It is refused while pages are in progress, because their worker may hold the lease;
    /// `force` overrides that.
    ///
    /// # Errors
    /// Errors of the storage calls.
    pub async fn unlock_state(&self, force: bool) -> Result<Unlocked, SweepError> {
        let core = self.core(Stop::default());
        let storage = self.state_account()?;
        let (document, _) = store::read(&core, storage.as_ref()).await?;
        let alive = pages_alive(&core, &document);
        if alive > 0 && !force {
            return Ok(Unlocked::Refused(alive));
        }
        let account = core.paced(storage.as_ref(), "");
        match account.break_lease(&core.config.state_blob).await {
            Ok(true) => Ok(Unlocked::Broken),
            Ok(false) => Ok(Unlocked::Free),
            Err(error) if error.kind == ErrorKind::LeaseLost => Ok(Unlocked::Free),
            Err(error) => Err(error.into()),
        }
    }
}

fn pages_alive(core: &Core, document: &Document) -> usize {
    let now = core.now();
    let pages = document.containers.iter().flat_map(|c| &c.pages);
    pages
        .filter(|page| page.deadline.is_some_and(|deadline| deadline > now))
        .count()
}

/// Converts to version 2, which names credentials and never holds a secret: replaces every URI with
/// a SAS by the name of the configured account it belongs to. Changes nothing else.
fn to_newest(document: &mut Document, accounts: &Accounts) -> Result<usize, String> {
    let mut replaced = 0;
    for element in &mut document.containers {
        replaced += usize::from(name_credential(element, accounts)?);
    }
    document.version = VERSION_NEWEST;
    Ok(replaced)
}

fn name_credential(element: &mut Container, accounts: &Accounts) -> Result<bool, String> {
    let Some(parsed) = element.uri.as_deref().and_then(uri::parse) else {
        return Ok(false);
    };
    if parsed.sas.is_empty() {
        return Ok(false);
    }
    let same = |account: &str| destination::same_account(account, &parsed.account);
    let name = accounts.name_of(same).ok_or_else(|| {
        format!(
            "container `{}` carries a SAS of account `{}`; configure that account first, as \
             [account.NAME]; the document then refers to it by name",
            element.name, parsed.account
        )
    })?;
    element.credential.get_or_insert(name);
    if element.name != parsed.container {
        element.container.get_or_insert(parsed.container);
    }
    element.uri = None;
    Ok(true)
}
