//! The target that the command line names.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::corpus::CorpusError;
use super::hosts::{Addressing, Hosts, account};
use super::mirror::Mirror;
use super::recording::Recording;
use super::restarted::Restarted;
use crate::servers::{ServerError, azurite};
use crate::target::in_process::InProcess;
use crate::target::server::Server;
use crate::target::{About, Target, TargetError, emptied, start};
use crate::wire::access::Account;

/// Recordings that are played at the same time in process; a server has one clock and one state for
/// all of them.
const TASKS_IN_PROCESS: usize = 2;

/// The target of a replay.
#[derive(Clone)]
pub enum Chosen {
    /// An emulator in this process, a new one for each recording.
    InProcess,
    /// A mirror, which answers as recorded.
    Mirror,
    /// A running server, with a control endpoint or with its own clock.
    Running(Arc<Server>),
    /// Azurite, started for the replay.
    Azurite(Arc<Mutex<Restarted>>),
}

/// The target as the command line names it.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// `inproc`, `mirror`, `azurite` or a URL.
    pub target: &'a str,
    /// Whether the clock of the server at the URL cannot be set.
    pub is_live: bool,
    /// Whether a target whose clock cannot be set also plays recordings that need settings which it
    /// cannot be given.
    pub any_settings: bool,
    /// Path of the Azurite command; `None` for the default.
    pub azurite: Option<&'a Path>,
}

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// The name is unknown.
    #[error(
        "unknown target `{0}`: use `inproc`, `mirror`, `azurite` or the URL of a server, such as \
         `http://127.0.0.1:10000`"
    )]
    Unknown(String),
    /// `--live` was given for a target that is not a URL.
    #[error("--live needs the URL of a running server as --target, not `{0}`")]
    NotLive(String),
    /// The URL may not be used.
    #[error("{0}")]
    Refused(String),
    /// The clock of the server at the URL cannot be set.
    #[error(
        "{url} has no control endpoint on the third port after it ({error}); add --live to play \
         without one"
    )]
    NoControl {
        /// The URL as given.
        url: String,
        /// The error of the request to the control endpoint.
        error: TargetError,
    },
    /// The server does not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The recordings that determine its accounts cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
}

impl Chosen {
    /// Finds or starts the target. `accounts` returns the accounts that the recordings need
    /// (`name:key;name:key`).
    pub async fn of(
        name: Name<'_>,
        accounts: impl FnOnce() -> Result<String, CorpusError>,
    ) -> Result<Chosen, ChoiceError> {
        match name.target {
            "inproc" | "mirror" | "azurite" if name.is_live => {
                Err(ChoiceError::NotLive(name.target.to_owned()))
            }
            "inproc" => Ok(Chosen::InProcess),
            "mirror" => Ok(Chosen::Mirror),
            "azurite" => started(name, accounts()?).await,
            url if name.is_live => live(name, url, &accounts()?).await,
            url => controlled(url).await,
        }
    }

    /// Returns the number of recordings that may be played at the same time.
    pub fn tasks(&self) -> usize {
        match self {
            Chosen::InProcess | Chosen::Mirror => TASKS_IN_PROCESS,
            Chosen::Running(_) | Chosen::Azurite(_) => 1,
        }
    }

    /// Returns the target for a recording.
    pub async fn target(&self, recording: &Recording) -> Result<Arc<dyn Target>, ServerError> {
        Ok(match self {
            Chosen::InProcess => Arc::new(InProcess::default()),
            Chosen::Mirror => Arc::new(Mirror::of(recording)),
            Chosen::Running(server) => {
                if server.control().is_none() {
                    still_answers(server, recording).await?;
                }
                Arc::clone(server) as Arc<dyn Target>
            }
            Chosen::Azurite(azurite) => azurite.lock().await.ready(&recording.name).await?,
        })
    }

    /// Returns the recordings after which the target had to be restarted.
    pub async fn silenced_by(&self) -> Vec<String> {
        match self {
            Chosen::Azurite(azurite) => azurite.lock().await.silenced_by().to_vec(),
            _ => Vec::new(),
        }
    }
}

async fn started(name: Name<'_>, accounts: String) -> Result<Chosen, ChoiceError> {
    let program = azurite::binary(name.azurite)?;
    let azurite = Restarted::start(program, accounts, name.any_settings).await?;
    Ok(Chosen::Azurite(Arc::new(Mutex::new(azurite))))
}

/// Checks that a server which only its owner can restart still answers.
async fn still_answers(server: &Server, recording: &Recording) -> Result<(), ServerError> {
    let accounts = Hosts::of(recording, Addressing::Host).accounts();
    let Some(account) = accounts.first().and_then(|name| account(name)) else {
        return Ok(());
    };
    let answers = emptied::answers(server, &account).await;
    answers.map_err(|error| {
        let name = &recording.name;
        ServerError::Call(format!("the server does not answer before {name}: {error}"))
    })
}

async fn live(name: Name<'_>, url: &str, accounts: &str) -> Result<Chosen, ChoiceError> {
    let [blob, queue, table, _] = start::local_neighbours(url).map_err(ChoiceError::Refused)?;
    let live = Server::at(About::by_path(url, "http", [blob, queue, table]));
    for pair in accounts.split(';') {
        let (name, key) = pair.split_once(':').unwrap_or_default();
        let Some(account) = Account::new(name, key) else {
            continue;
        };
        let fit = emptied::is_fit(&live, &account).await;
        fit.map_err(|why| ChoiceError::Refused(format!("cannot play against {url}: {why}")))?;
    }
    Ok(Chosen::Running(Arc::new(live.replayed(name.any_settings))))
}

async fn controlled(url: &str) -> Result<Chosen, ChoiceError> {
    let unknown = |_| ChoiceError::Unknown(url.to_owned());
    let [blob, queue, table, control] = start::neighbours(url).map_err(unknown)?;
    let url = url.to_owned();
    let server = Server::at(About::by_path("smalt", "http", [blob, queue, table]));
    let answering = async {
        let server = server.controlled(&control)?;
        if let Some(control) = server.control() {
            control.answers().await?;
        }
        Ok(server)
    };
    match answering.await {
        Ok(server) => Ok(Chosen::Running(Arc::new(server))),
        Err(error) => Err(ChoiceError::NoControl { url, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unknown_targets_are_rejected_with_a_reason() {
        let nobody = free_port();
        for (target, is_live, why) in [
            ("inproc", true, "--live needs the URL"),
            ("azurite", true, "--live needs the URL"),
            ("elsewhere", false, "unknown target `elsewhere`"),
            ("elsewhere", true, "use http://127.0.0.1:10000"),
            ("http://10.0.0.1:10000", true, "is not on this machine"),
            (nobody.as_str(), false, "add --live to play without one"),
            (nobody.as_str(), true, ": blob: no answer"),
        ] {
            let name = Name {
                target,
                is_live,
                any_settings: false,
                azurite: None,
            };
            let chosen = Chosen::of(name, || Ok("account:a2V5".to_owned())).await;
            let refused = chosen.err().map(|error| error.to_string());
            assert!(
                refused.as_ref().is_some_and(|text| text.contains(why)),
                "{refused:?}"
            );
        }
    }

    /// Returns an address on which no server listens.
    fn free_port() -> String {
        let address = crate::servers::process::free_address().unwrap();
        format!("http://{address}")
    }
}
