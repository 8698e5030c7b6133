//! Servers as child processes.
//!
//! # Layout
//! - [`Running`]: a server; [`smalt`]: the `smalt` binary; [`azurite`]: Azurite.
//! - [`process`]: a child process that is killed on drop; [`files`]: reading and writing files.

pub mod azurite;
pub mod files;
pub mod process;
pub mod smalt;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use smalt_protocol::Service;
use tokio::process::Command;

use self::process::Process;
use crate::wire::WireError;

/// A running server, killed on drop.
pub struct Running {
    /// The process.
    pub process: Process,
    /// Addresses of the blob, queue and table service.
    pub addresses: [SocketAddr; 3],
    /// Address of smalt's control endpoint, which other servers lack.
    pub control: Option<SocketAddr>,
}

impl Running {
    /// Starts a server with free ports for these services, at most four, of which the last may be
    /// `control`. `announced` finds the address of a service in a line of the output.
    async fn start(
        command: Command,
        binary: &Path,
        services: &[&str],
        flags: impl IntoIterator<Item = String>,
        announced: fn(&str, &str) -> Option<SocketAddr>,
    ) -> Result<Running, ServerError> {
        let ports = services.iter();
        let ports = ports.flat_map(|service| [format!("--{service}Port"), "0".to_owned()]);
        let arguments: Vec<String> = ports.chain(flags).collect();
        let mut process = Process::start(command, binary, &arguments)?;
        let mut found = [None; 4];
        loop {
            let line = process.line().await?;
            for (place, service) in found.iter_mut().zip(services) {
                *place = place.or_else(|| announced(&line, service));
            }
            if let [Some(blob), Some(queue), Some(table), control] = found
                && found.iter().flatten().count() == services.len()
            {
                process.ignore_output();
                return Ok(Running {
                    process,
                    addresses: [blob, queue, table],
                    control,
                });
            }
        }
    }

    /// Returns the address of a service.
    pub fn address(&self, service: Service) -> SocketAddr {
        let [blob, queue, table] = self.addresses;
        match service {
            Service::Blob => blob,
            Service::Queue => queue,
            Service::Table => table,
        }
    }

    /// Returns the address of the control endpoint.
    pub fn control(&self) -> Result<SocketAddr, ServerError> {
        let missing = || ServerError::Call("the server has no control endpoint".to_owned());
        self.control.ok_or_else(missing)
    }
}

/// Why a server could not be started or called.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The `smalt` binary does not exist.
    #[error("{0} does not exist; run `bash ci/build.sh`, or pass the path of the binary")]
    NoBinary(String),
    /// Azurite is not installed.
    #[error(
        "{0} does not exist; run `npm install --prefix build/azurite azurite`, or pass the command"
    )]
    NoAzurite(String),
    /// The process could not be started.
    #[error("{0} cannot be started: {1}")]
    Start(String, std::io::Error),
    /// The process ended or stayed silent instead of becoming ready.
    #[error("{0} did not become ready: {1}")]
    NotReady(String, String),
    /// A request got no answer, or an unexpected one.
    #[error("{0}")]
    Call(String),
    /// A request was not answered in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
}

impl ServerError {
    /// Wraps the error of a failed call.
    pub fn call(error: impl std::fmt::Display) -> Self {
        ServerError::Call(error.to_string())
    }
}

impl From<smalt_sleeve::PortError> for ServerError {
    fn from(error: smalt_sleeve::PortError) -> Self {
        ServerError::call(error)
    }
}

impl From<WireError> for ServerError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Silent(limit) => ServerError::Silent(limit),
            error => ServerError::call(error),
        }
    }
}
