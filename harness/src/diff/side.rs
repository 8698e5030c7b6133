//! The sides of a comparison.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::replay::hosts::account_key_base64;
use crate::servers::{ServerError, azurite};
use crate::target::in_process::InProcess;
use crate::target::server::Server;
use crate::target::{Ability, About, Target, start};
use crate::traces::scrub::ACCOUNT;
use crate::wire::endpoint::Endpoint;
use crate::wire::url::Url;
use crate::wire::{Headers, Request};

/// Name of smalt in the ledger.
pub const SMALT: &str = "smalt";
/// Name of Azurite in the ledger.
pub const AZURITE: &str = "azurite";
/// Accounts that scripts may use.
const ACCOUNTS: [&str; 2] = [ACCOUNT, "account2"];

/// A side as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The emulator in this process.
    InProcess,
    /// The `smalt` binary, started.
    Smalt,
    /// Azurite, started.
    Azurite,
    /// A running server: host and port of blob, queue, table and, for smalt, the control endpoint.
    Running([String; 4]),
    /// A directory of traces with recorded answers.
    Recorded(PathBuf),
}

impl Side {
    /// Parses `inproc`, `smalt`, `azurite`, `http://127.0.0.1:10000` or a directory.
    ///
    /// # Errors
    /// A message, for a server on another machine: a comparison empties its servers.
    pub fn parse(text: &str) -> Result<Side, String> {
        match text {
            "inproc" => return Ok(Side::InProcess),
            "smalt" => return Ok(Side::Smalt),
            "azurite" => return Ok(Side::Azurite),
            _ => {}
        }
        if Url::parse(text).is_none() {
            return Ok(Side::Recorded(PathBuf::from(text)));
        }
        start::local_neighbours(text).map(Side::Running)
    }
}

/// Binaries to start.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Binaries {
    /// The binary for `smalt`; by default the one next to this executable.
    #[arg(long, value_name = "FILE")]
    pub smalt: Option<PathBuf>,
    /// The command for `azurite`, as installed by npm.
    #[arg(long, env = "AZURITE", value_name = "FILE")]
    pub azurite: Option<PathBuf>,
}

/// A running side.
pub struct Standing {
    /// [`SMALT`], [`AZURITE`] or `other`.
    pub name: String,
    /// `None` for an emulator in this process: each script has its own.
    server: Option<Arc<Server>>,
    _home: Option<TempDir>,
}

impl Standing {
    /// Starts or finds a side.
    ///
    /// # Errors
    /// When the server does not start or answer, or the side is a recording.
    pub async fn up(side: &Side, binaries: &Binaries) -> Result<Standing, ServerError> {
        let mut home = None;
        let (name, server) = match side {
            Side::InProcess => (SMALT, None),
            Side::Smalt => {
                let dir = tempfile::tempdir().map_err(ServerError::call)?;
                let server = smalt(binaries.smalt.as_deref(), dir.path()).await?;
                home = Some(dir);
                (SMALT, Some(server))
            }
            Side::Azurite => {
                let binary = azurite::binary(binaries.azurite.as_deref())?;
                let server = start::azurite(&binary, Some(&accounts()), None).await?;
                (AZURITE, Some(server))
            }
            Side::Running(authorities) => {
                let (name, server) = running(authorities.clone()).await?;
                (name, Some(server))
            }
            Side::Recorded(dir) => {
                return Err(ServerError::Call(format!(
                    "{} has recorded answers, so it can only be the left side: pass it with --left",
                    dir.display()
                )));
            }
        };
        Ok(Standing {
            name: name.to_owned(),
            server: server.map(Arc::new),
            _home: home,
        })
    }

    /// Whether its clock can be set; otherwise scripts are moved to the present.
    pub fn keeps_time(&self) -> bool {
        let mut about = self.server.iter().map(|server| server.about());
        about.all(|about| about.can(Ability::Clock))
    }

    /// Returns the target for one script.
    pub fn target(&self) -> Arc<dyn Target> {
        match &self.server {
            None => Arc::new(InProcess::default()),
            Some(server) => Arc::clone(server) as Arc<dyn Target>,
        }
    }
}

/// Returns the accounts of scripts with the keys of replays, in the format of both servers.
pub fn accounts() -> String {
    let pair = |name: &str| format!("{name}:{}", account_key_base64(name));
    ACCOUNTS.map(pair).join(";")
}

/// Starts `smalt` with the accounts of scripts.
pub async fn smalt(named: Option<&Path>, location: &Path) -> Result<Server, ServerError> {
    let flags = ["--strictSkew", "--accounts", &accounts()];
    let started = start::smalt(named, location, &flags).await;
    started.map_err(ServerError::call)
}

/// Connects to a running server, and identifies it by its answers.
async fn running(
    [blob, queue, table, control]: [String; 4],
) -> Result<(&'static str, Server), ServerError> {
    let request = Request {
        method: "GET".to_owned(),
        url: format!("http://{blob}/account?comp=list"),
        headers: Headers::default(),
        body: bytes::Bytes::new(),
    };
    let endpoint = Endpoint::at(&format!("http://{blob}"))?;
    let answer = endpoint.ask(&request).await?;
    let about = About::by_path("server", "http", [blob, queue, table]);
    if answer
        .header("server")
        .is_some_and(|server| server.contains("Azurite"))
    {
        return Ok((AZURITE, Server::at(about)));
    }
    let server = Server::at(about.clone()).controlled(&control);
    let server = server.map_err(ServerError::call)?;
    // Detects smalt by its control endpoint.
    Ok(match server.control() {
        Some(control) if control.answers().await.is_ok() => (SMALT, server),
        _ => ("other", Server::at(about)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_parsed_and_remote_servers_rejected() {
        assert_eq!(Side::parse("inproc"), Ok(Side::InProcess));
        let ports = [10_000, 10_001, 10_002, 10_003];
        let running = Side::Running(ports.map(|port| format!("127.0.0.1:{port}")));
        assert_eq!(Side::parse("http://127.0.0.1:10000"), Ok(running));
        let recorded = Side::Recorded(PathBuf::from("fixtures/azurite"));
        assert_eq!(Side::parse("fixtures/azurite"), Ok(recorded));
        for refused in [
            "https://account.blob.core.windows.net",
            "http://account.blob.core.windows.net:80",
            "http://10.0.0.1:10000",
            "http://127.0.0.1",
        ] {
            assert!(Side::parse(refused).is_err(), "{refused}");
        }
    }
}
