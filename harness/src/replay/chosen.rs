//! The target that the command line names.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::corpus::CorpusError;
use super::hosts::Hosts;
use super::recording::Recording;
use super::target::http::OverHttp;
use super::target::inproc::InProcess;
use super::target::live::Live;
use super::target::mirror::Mirror;
use super::target::restarted::Restarted;
use super::target::{Target, TargetError};
use crate::servers::{ServerError, azurite};

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
    /// A smalt whose control endpoint sets clock and state.
    Controlled(Arc<OverHttp>),
    /// A server that goes by its own clock.
    Live(Arc<Live>),
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
            Chosen::Controlled(_) | Chosen::Live(_) | Chosen::Azurite(_) => 1,
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
            Chosen::Controlled(server) => Arc::clone(server) as Arc<dyn Target>,
            Chosen::Live(server) => {
                // It belongs to somebody else, who alone can start it again.
                let gone = |error| {
                    let name = &recording.name;
                    ServerError::Call(format!("before {name} the server was asked: {error}"))
                };
                let account = Hosts::of(recording, server.addressing()).accounts();
                let account = account.first().map_or("account", String::as_str);
                server.answers(account).await.map_err(gone)?;
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

async fn live(name: Name<'_>, url: &str, accounts: &str) -> Result<Chosen, ChoiceError> {
    let live = Live::parse(url).map_err(ChoiceError::Refused)?;
    for pair in accounts.split(';') {
        let (account, _) = pair.split_once(':').unwrap_or_default();
        let fit = live.is_fit(account).await;
        fit.map_err(|why| ChoiceError::Refused(format!("{url} cannot be asked: {why}")))?;
    }
    let live = live.with_default_properties();
    let live = live.whatever_it_lacks(name.any_settings);
    Ok(Chosen::Live(Arc::new(live)))
}

async fn controlled(url: &str) -> Result<Chosen, ChoiceError> {
    let server = OverHttp::at(url).ok_or_else(|| ChoiceError::Unknown(url.to_owned()))?;
    if let Err(error) = server.is_controlled().await {
        let url = url.to_owned();
        return Err(ChoiceError::NoControl { url, error });
    }
    Ok(Chosen::Controlled(Arc::new(server)))
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
