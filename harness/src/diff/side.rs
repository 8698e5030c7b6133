//! What stands on a side of the comparison.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use crate::replay::hosts::account_key_base64;
use crate::replay::target::Target;
use crate::replay::target::http::OverHttp;
use crate::replay::target::inproc::InProcess;
use crate::replay::target::live::Live;
use crate::replay::uri::Url;
use crate::servers::ServerError;
use crate::servers::azurite::{self, Azurite};
use crate::servers::connection::Connection;
use crate::servers::smalt::{Launch, Smalt, binary};
use crate::traces::scrub::ACCOUNT;

/// What smalt is called in the ledger.
pub const SMALT: &str = "smalt";
/// What Azurite is called in the ledger.
pub const AZURITE: &str = "azurite";
/// Accounts that scripts may use.
const ACCOUNTS: [&str; 2] = [ACCOUNT, "account2"];

/// A side as the command line names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The emulator in this process.
    InProcess,
    /// The binary `smalt`, started.
    Smalt,
    /// Azurite, started.
    Azurite,
    /// A running server: host and port of its blob service, queue and table on the next ones.
    Running(String, u16),
    /// A directory of traces: what a service answered once.
    Recorded(PathBuf),
}

impl Side {
    /// Reads `inproc`, `smalt`, `azurite`, `http://127.0.0.1:10000` or a directory.
    ///
    /// # Errors
    /// In words. What is asked is emptied first, so that only this machine's servers are.
    pub fn parse(text: &str) -> Result<Side, String> {
        match text {
            "inproc" => return Ok(Side::InProcess),
            "smalt" => return Ok(Side::Smalt),
            "azurite" => return Ok(Side::Azurite),
            _ => {}
        }
        let Some(url) = Url::parse(text) else {
            return Ok(Side::Recorded(PathBuf::from(text)));
        };
        let port = url.authority.rsplit_once(':');
        let (host, port) = port.ok_or_else(|| format!("{text} names no port"))?;
        let port: u16 = port.parse().map_err(|_| format!("{text}: no port"))?;
        let is_loopback = host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse()
                .is_ok_and(|ip: IpAddr| ip.is_loopback());
        if !is_loopback || url.scheme != "http" {
            return Err(format!(
                "{text}: both sides are emptied before every script, so only http on this \
                 machine's loopback is asked"
            ));
        }
        Ok(Side::Running(host.to_owned(), port))
    }
}

/// Binaries that may be started.
#[derive(Clone, Debug, Default)]
pub struct Binaries {
    /// The binary `smalt`.
    pub smalt: Option<PathBuf>,
    /// The command of Azurite.
    pub azurite: Option<PathBuf>,
}

/// A side that can be asked.
pub struct Standing {
    /// [`SMALT`], [`AZURITE`] or `other`.
    pub name: String,
    /// Whether its clock can be set: otherwise scripts are moved to now.
    pub keeps_time: bool,
    server: Server,
}

enum Server {
    InProcess,
    Asked(
        Arc<dyn Target>,
        #[expect(dead_code, reason = "ends with it")] Guard,
    ),
}

enum Guard {
    None,
    Smalt(#[expect(dead_code, reason = "ends with it")] Box<(Smalt, TempDir)>),
    Azurite(#[expect(dead_code, reason = "ends with it")] Box<Azurite>),
}

impl Standing {
    /// Starts or finds what is named.
    ///
    /// # Errors
    /// When it does not start or answer, or is a recording.
    pub async fn up(side: &Side, binaries: &Binaries) -> Result<Standing, ServerError> {
        match side {
            Side::InProcess => Ok(Standing {
                name: SMALT.to_owned(),
                keeps_time: true,
                server: Server::InProcess,
            }),
            Side::Smalt => smalt(binaries.smalt.as_deref()).await,
            Side::Azurite => {
                let binary = azurite::binary(binaries.azurite.as_deref())?;
                let azurite = Azurite::start(&binary, &accounts()).await?;
                let addresses = [azurite.blob, azurite.queue, azurite.table];
                let live = Live::at(addresses.map(|address| address.to_string()));
                Ok(Standing {
                    name: AZURITE.to_owned(),
                    keeps_time: false,
                    server: Server::Asked(Arc::new(live), Guard::Azurite(Box::new(azurite))),
                })
            }
            Side::Running(host, port) => running(host, *port).await,
            Side::Recorded(dir) => Err(ServerError::Call(format!(
                "{} holds recordings, which answer nothing: it can only be --left",
                dir.display()
            ))),
        }
    }

    /// What is asked: one target for one script.
    pub fn target(&self) -> Arc<dyn Target> {
        match &self.server {
            Server::InProcess => Arc::new(InProcess::default()),
            Server::Asked(target, _) => Arc::clone(target),
        }
    }
}

/// The accounts of scripts with the keys of replays, as both servers take them.
pub fn accounts() -> String {
    let pair = |name: &str| format!("{name}:{}", account_key_base64(name));
    ACCOUNTS.map(pair).join(";")
}

async fn smalt(named: Option<&Path>) -> Result<Standing, ServerError> {
    let home = tempfile::tempdir().map_err(ServerError::call)?;
    let flags = ["--inMemoryPersistence", "--strictSkew", "--accounts"];
    let mut flags: Vec<String> = flags.map(str::to_owned).into();
    flags.push(accounts());
    let launch = Launch {
        binary: binary(named)?,
        location: home.path().to_owned(),
        flags,
    };
    let smalt = launch.start().await?;
    let [blob, queue, table, control] = [smalt.blob, smalt.queue, smalt.table, smalt.control];
    let target = OverHttp::of([blob, queue, table, control].map(|address| address.to_string()));
    Ok(Standing {
        name: SMALT.to_owned(),
        keeps_time: true,
        server: Server::Asked(Arc::new(target), Guard::Smalt(Box::new((smalt, home)))),
    })
}

/// A server that runs already, by what it says of itself.
async fn running(host: &str, port: u16) -> Result<Standing, ServerError> {
    let address = format!("{host}:{port}");
    let socket = tokio::net::lookup_host(&address).await;
    let socket = socket.map_err(ServerError::call)?.next();
    let socket = socket.ok_or_else(|| ServerError::Call(format!("{address}: no address")))?;
    let mut connection = Connection::open(socket).await?;
    let answer = connection
        .send(http::Method::GET, "/account?comp=list", &[], "")
        .await?;
    let server = answer.header("server").to_owned();
    let (name, live) = if server.contains("Azurite") {
        (AZURITE, true)
    } else {
        (
            if clock_answers(socket).await {
                SMALT
            } else {
                "other"
            },
            false,
        )
    };
    let next = |n: u16| format!("{host}:{}", port.saturating_add(n));
    let (queue, table) = (next(1), next(2));
    let target: Arc<dyn Target> = if live || name == "other" {
        Arc::new(Live::at([address, queue, table]))
    } else {
        Arc::new(OverHttp::of([address, queue, table, next(3)]))
    };
    Ok(Standing {
        name: name.to_owned(),
        keeps_time: name == SMALT,
        server: Server::Asked(target, Guard::None),
    })
}

/// Whether smalt's control endpoint is where it should be.
async fn clock_answers(mut blob: std::net::SocketAddr) -> bool {
    blob.set_port(blob.port().saturating_add(3));
    let Ok(mut connection) = Connection::open(blob).await else {
        return false;
    };
    let answer = connection.send(http::Method::GET, "/clock", &[], "").await;
    answer.is_ok_and(|answer| answer.status.as_u16() == 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sides_and_refuses_what_is_not_here() {
        assert_eq!(Side::parse("inproc"), Ok(Side::InProcess));
        let running = Side::Running("127.0.0.1".to_owned(), 10_000);
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
