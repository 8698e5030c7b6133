//! Starts the servers to measure.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use smalt_protocol::Service;
use tokio::process::Command;
use tokio::time::Instant;

use super::load;
use super::requests::Requests;
use crate::servers::process::{Process, READY_TIMEOUT};
use crate::servers::smalt::Launch;
use crate::servers::{Running, ServerError, azurite};

/// Interval between attempts to get a first answer.
const ATTEMPT: Duration = Duration::from_millis(1);

/// Options that select a server to measure beside smalt.
#[derive(Clone, Debug, clap::Args)]
pub struct PeerOptions {
    /// Server to measure beside smalt.
    #[arg(long, value_enum)]
    peer: Option<Peer>,
    /// The Azurite command; by default the one that `ci/azurite.sh` installs.
    #[arg(long, value_name = "FILE")]
    azurite_bin: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Peer {
    /// Azurite, with its state on disk.
    Azurite,
}

impl PeerOptions {
    /// Returns how to start the selected peer; `None` when none is selected.
    pub fn start(&self) -> Result<Option<Start>, ServerError> {
        match self.peer {
            Some(Peer::Azurite) => {
                let binary = azurite::binary(self.azurite_bin.as_deref())?;
                Ok(Some(Start::Azurite(binary)))
            }
            None => Ok(None),
        }
    }
}

/// How to start a server with a store.
#[derive(Clone, Debug)]
pub enum Start {
    /// The `smalt` binary, in durable mode.
    Smalt(PathBuf),
    /// The Azurite command.
    Azurite(PathBuf),
}

impl Start {
    /// Starts the server on a directory; also returns the time to its first answer.
    pub async fn start(&self, location: &Path) -> Result<(Running, Duration), ServerError> {
        let begun = Instant::now();
        let server = match self {
            Start::Smalt(binary) => {
                let launch = Launch {
                    binary: binary.clone(),
                    location: location.to_owned(),
                    flags: Vec::new(),
                };
                launch.start().await?
            }
            // Azurite with its default options, on disk.
            Start::Azurite(binary) => azurite::start(binary, None, Some(location)).await?,
        };
        let first = Requests::default().first()?;
        let address = server.address(Service::Blob);
        while let Err(error) = load::once(address, &first).await {
            if begun.elapsed() > READY_TIMEOUT {
                return Err(error);
            }
            tokio::time::sleep(ATTEMPT).await;
        }
        Ok((server, begun.elapsed()))
    }
}

/// Starts the bare server, which answers for all services at one address: this executable as
/// `harness echo`.
pub async fn start_bare() -> Result<Running, ServerError> {
    let own = std::env::current_exe().map_err(ServerError::call)?;
    let mut process = Process::start(Command::new(&own), &own, &["echo".to_owned()])?;
    let line = process.line().await?;
    let address: SocketAddr = line.parse().map_err(ServerError::call)?;
    process.ignore_output();
    Ok(Running {
        process,
        addresses: [address; 3],
        control: None,
    })
}
