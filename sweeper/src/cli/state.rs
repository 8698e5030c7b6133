//! `state`: the document that the workers share.

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
    /// Create it from --container or the configuration; an existing one stays.
    Init {
        /// Replace an existing one: open pages and progress are forgotten.
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Write it back as version 2: URIs with a SAS become names of configured accounts.
    Migrate(Common),
    /// Break the lease on it that a dead worker left.
    Unlock {
        /// Although pages are in work.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Print it, secrets masked.
    Show {
        /// As the XML document it is.
        #[arg(long)]
        xml: bool,
        #[command(flatten)]
        common: Common,
    },
}

/// Does what was asked of the state document.
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
                println!("{place} is there already; --replace writes it anew");
            }
        }
        StateCommand::Migrate(common) => {
            let (sweeper, _) = sweeper(&common)?;
            match sweeper.migrate_state().await? {
                Migrated::Already => println!("it is version 2 already"),
                Migrated::Written(named) => {
                    println!("written as version 2; {named} URIs became names of accounts");
                }
            }
        }
        StateCommand::Unlock { force, common } => {
            let (sweeper, _) = sweeper(&common)?;
            match sweeper.unlock_state(force).await? {
                Unlocked::Free => println!("there was no lease on it"),
                Unlocked::Broken => println!("its lease is broken"),
                Unlocked::Refused(pages) => {
                    eprintln!(
                        "error: {pages} pages are in work, so its holder may be alive; \
                         wait for their deadlines (state show), or --force"
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
