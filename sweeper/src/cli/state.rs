//! `state`: manages the document that the workers share.

use anyhow::Result;
use clap::Subcommand;
use smalt_protocol::terminal::lines;
use smalt_sweeper::SweepError;
use smalt_sweeper::upkeep::{Migrated, Unlocked};
use smalt_worker::exit;

use super::common::{Common, sweeper};
use crate::show;

#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Create the state document from --container or the configuration. Leaves an existing one
    /// unchanged.
    Init {
        /// Replace an existing document; discards its progress and open pages.
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Convert the document to version 2: replaces URIs that carry a SAS with names of configured
    /// accounts.
    Migrate(Common),
    /// Break a lease that a dead worker left on the document.
    Unlock {
        /// Break the lease even if pages are in progress.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Print the document with secrets masked.
    Show {
        /// Print the XML document itself.
        #[arg(long)]
        xml: bool,
        #[command(flatten)]
        common: Common,
    },
}

pub(crate) async fn state(command: StateCommand) -> Result<u8> {
    match command {
        StateCommand::Init { replace, common } => {
            let (sweeper, settings) = sweeper(&common)?;
            let place = &settings.sweeper.state_blob;
            let place = format!("{}/{}", place.container, place.name);
            if sweeper.init_state(replace).await? {
                println!(
                    "created {place} with {} containers",
                    settings.sweeper.containers.len()
                );
            } else {
                println!("{place} already exists; use --replace to overwrite it");
            }
        }
        StateCommand::Migrate(common) => {
            let (sweeper, _) = sweeper(&common)?;
            match sweeper.migrate_state().await? {
                Migrated::Already => println!("the document already has version 2"),
                Migrated::Written(named) => {
                    println!("converted to version 2; replaced {named} URIs with account names");
                }
            }
        }
        StateCommand::Unlock { force, common } => {
            let (sweeper, _) = sweeper(&common)?;
            match sweeper.unlock_state(force).await? {
                Unlocked::Free => println!("the document is not leased"),
                Unlocked::Broken => println!("broke the lease"),
                Unlocked::Refused(pages) => {
                    eprintln!(
                        "error: {pages} pages are in progress, so the lease holder may be alive; \
                         wait for their deadlines (see `state show`), or use --force"
                    );
                    return Ok(exit::FAILED_ITEMS);
                }
            }
        }
        StateCommand::Show { xml, common } => {
            let (sweeper, _) = sweeper(&common)?;
            let document = sweeper.state().await?;
            if xml {
                let text = smalt_sweeper::state::write(&document).map_err(SweepError::from)?;
                println!("{}", lines(&smalt_sleeve::redact(&text)));
            } else {
                print!("{}", show::state(&document));
            }
        }
    }
    Ok(exit::OK)
}
