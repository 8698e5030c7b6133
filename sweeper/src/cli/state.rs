//! `state`: the document that the workers share.

use anyhow::Result;
use clap::Subcommand;
use smalt_sweeper::SweepError;
use smalt_sweeper::error::exit;

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
        StateCommand::Show { xml, common } => {
            let (sweeper, _) = sweeper(&common)?;
            let document = sweeper.state().await?;
            if xml {
                let text = smalt_sweeper::state::write(&document).map_err(SweepError::from)?;
                println!("{}", smalt_sweeper::uri::redact(&text));
            } else {
                print!("{}", show::state(&document));
            }
        }
    }
    Ok(exit::OK)
}
