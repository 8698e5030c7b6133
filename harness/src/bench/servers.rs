//! Starts the servers to measure.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use smalt_protocol::Service;
use tokio::time::Instant;

use super::load;
use super::requests::Requests;
use crate::servers::ServerError;
use crate::servers::azurite::{self, Azurite};
use crate::servers::process::{Process, READY_TIMEOUT};
use crate::servers::smalt::{Launch, Smalt};

/// Interval between attempts to get a first answer.
const ATTEMPT: Duration = Duration::from_millis(1);

/// A server under test.
pub enum Server {
    /// The binary `smalt`.
    Smalt(Smalt),
    /// Azurite.
    Azurite(Azurite),
    /// The bare server, which answers for all services at one address.
    Bare(Process, SocketAddr),
}

impl Server {
    /// Returns the address of a service.
    pub fn address(&self, service: Service) -> SocketAddr {
        match (self, service) {
            (Server::Smalt(smalt), Service::Blob) => smalt.blob,
            (Server::Smalt(smalt), Service::Queue) => smalt.queue,
            (Server::Smalt(smalt), Service::Table) => smalt.table,
            (Server::Azurite(azurite), Service::Blob) => azurite.blob,
            (Server::Azurite(azurite), Service::Queue) => azurite.queue,
            (Server::Azurite(azurite), Service::Table) => azurite.table,
            (Server::Bare(_, address), _) => *address,
        }
    }

    fn process(&self) -> &Process {
        match self {
            Server::Smalt(smalt) => &smalt.process,
            Server::Azurite(azurite) => &azurite.process,
            Server::Bare(process, _) => process,
        }
    }

    /// Returns the resident memory in MiB; `None` on systems without `/proc`.
    #[expect(clippy::cast_precision_loss, reason = "memory is far below 2^52 bytes")]
    pub fn resident_mib(&self) -> Option<f64> {
        let bytes = self.process().resident_bytes();
        bytes.map(|bytes| bytes as f64 / (1024.0 * 1024.0))
    }

    /// Returns the processor time; `None` on systems without `/proc`.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.process().cpu_time()
    }

    /// Kills the server.
    pub async fn kill(self) -> Result<(), ServerError> {
        match self {
            Server::Smalt(smalt) => smalt.kill().await,
            Server::Azurite(azurite) => azurite.kill().await,
            Server::Bare(process, _) => process.kill().await,
        }
    }
}

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
    ///
    /// # Errors
    /// When its command does not exist.
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
    pub async fn start(&self, location: &Path) -> Result<(Server, Duration), ServerError> {
        let begun = Instant::now();
        let server = match self {
            Start::Smalt(binary) => {
                let launch = Launch {
                    binary: binary.clone(),
                    location: location.to_owned(),
                    flags: Vec::new(),
                };
                Server::Smalt(launch.start().await?)
            }
            // Azurite with its default options, on disk.
            Start::Azurite(binary) => {
                Server::Azurite(Azurite::start(binary, None, Some(location)).await?)
            }
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

/// Starts the bare server: this executable as `harness echo`.
pub async fn start_bare() -> Result<Server, ServerError> {
    let own = std::env::current_exe().map_err(ServerError::call)?;
    let mut process = Process::start(&own, &["echo".to_owned()])?;
    let line = process.line().await?;
    let address: SocketAddr = line.parse().map_err(ServerError::call)?;
    process.ignore_output();
    Ok(Server::Bare(process, address))
}
