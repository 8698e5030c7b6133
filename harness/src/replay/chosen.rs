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
/// all.
const TASKS_IN_PROCESS: usize = 2;

/// What is asked.
#[derive(Clone)]
pub enum Chosen {
    /// An emulator in this process, a fresh one for each recording.
    InProcess,
    /// What answers as recorded.
    Mirror,
    /// A server that runs already, with its control endpoint or by its own clock.
    Running(Arc<Server>),
    /// Azurite, started for this.
    Azurite(Arc<Mutex<Restarted>>),
}

/// How a target is named.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    /// `inproc`, `mirror`, `azurite` or a URL.
    pub target: &'a str,
    /// The server at the URL goes by its own clock.
    pub is_live: bool,
    /// What goes by its own clock is asked as well what needs settings that it cannot be given.
    pub any_settings: bool,
    /// The command of Azurite, where it was named.
    pub azurite: Option<&'a Path>,
}

/// Why there is no such target.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// It is none.
    #[error(
        "not a target: {0}; there are inproc, mirror, azurite, and a server's \
         http://127.0.0.1:10000"
    )]
    Unknown(String),
    /// It has its own idea of time.
    #[error("--live is for a server that runs already, named by its URL: {0} is none")]
    NotLive(String),
    /// It may not be asked.
    #[error("{0}")]
    Refused(String),
    /// Nobody sets its clock.
    #[error(
        "{url} has no control endpoint on the third port after it ({error}); with --live it is \
         played without one"
    )]
    NoControl {
        /// As it was named.
        url: String,
        /// What came instead of an answer.
        error: TargetError,
    },
    /// It does not start.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// Which accounts it must have cannot be told.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
}

impl Chosen {
    /// Finds or starts what is named. `accounts` tells those that the recordings need
    /// (`name:key;name:key`).
    ///
    /// # Errors
    /// When it is none, may not be asked, or does not start.
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

    /// How many recordings may be played at the same time.
    pub fn tasks(&self) -> usize {
        match self {
            Chosen::InProcess | Chosen::Mirror => TASKS_IN_PROCESS,
            Chosen::Running(_) | Chosen::Azurite(_) => 1,
        }
    }

    /// What a recording is played against.
    ///
    /// # Errors
    /// When it must be started again, and does not start.
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

    /// The recordings after which it had to be started again.
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

/// A server of somebody else's, who alone can start it again.
async fn still_answers(server: &Server, recording: &Recording) -> Result<(), ServerError> {
    let accounts = Hosts::of(recording, Addressing::Host).accounts();
    let Some(account) = accounts.first().and_then(|name| account(name)) else {
        return Ok(());
    };
    let answers = emptied::answers(server, &account).await;
    answers.map_err(|error| {
        let name = &recording.name;
        ServerError::Call(format!("before {name} the server was asked: {error}"))
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
        fit.map_err(|why| ChoiceError::Refused(format!("{url} cannot be asked: {why}")))?;
    }
    let live = live.with_default_properties();
    Ok(Chosen::Running(Arc::new(match name.any_settings {
        true => live.claiming_settings(),
        false => live,
    })))
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
    async fn refuses_what_is_no_target_and_says_why() {
        let nobody = free_port();
        for (target, is_live, why) in [
            ("inproc", true, "--live is for a server"),
            ("azurite", true, "--live is for a server"),
            ("elsewhere", false, "not a target: elsewhere"),
            ("elsewhere", true, "name a server as"),
            ("http://10.0.0.1:10000", true, "is not on this machine"),
            (nobody.as_str(), false, "with --live it is played without"),
            (nobody.as_str(), true, "cannot be asked: blob: no answer"),
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

    /// A server's address where there is none.
    fn free_port() -> String {
        let address = crate::servers::process::free_address().unwrap();
        format!("http://{address}")
    }
}
