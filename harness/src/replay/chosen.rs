//! The target that the command line names.

use std::path::Path;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::corpus::CorpusError;
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
            "azurite" => started(name.azurite, accounts()?).await,
            url if name.is_live => live(url),
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
            Chosen::Live(server) => Arc::clone(server) as Arc<dyn Target>,
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

async fn started(named: Option<&Path>, accounts: String) -> Result<Chosen, ChoiceError> {
    let program = azurite::binary(named)?;
    let azurite = Restarted::start(program, accounts).await?;
    Ok(Chosen::Azurite(Arc::new(Mutex::new(azurite))))
}

fn live(url: &str) -> Result<Chosen, ChoiceError> {
    let live = Live::parse(url).map_err(ChoiceError::Refused)?;
    Ok(Chosen::Live(Arc::new(live.with_default_properties())))
}

async fn controlled(url: &str) -> Result<Chosen, ChoiceError> {
    let server = OverHttp::at(url).ok_or_else(|| ChoiceError::Unknown(url.to_owned()))?;
    if let Err(error) = server.is_controlled().await {
        let url = url.to_owned();
        return Err(ChoiceError::NoControl { url, error });
    }
    Ok(Chosen::Controlled(Arc::new(server)))
}
