//! Azurite, started for a replay, and started again where it answers no more.

use std::path::PathBuf;
use std::sync::Arc;

use super::live::Live;
use crate::servers::ServerError;
use crate::servers::azurite::Azurite;

/// An Azurite of our own.
pub struct Restarted {
    program: PathBuf,
    /// `name:key;name:key`.
    accounts: String,
    running: Azurite,
    live: Arc<Live>,
    /// The recording that is played, or was last.
    playing: Option<String>,
    /// The recordings after which it did not answer.
    silenced_by: Vec<String>,
}

impl Restarted {
    /// Starts it with these accounts (`name:key;name:key`).
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(program: PathBuf, accounts: String) -> Result<Restarted, ServerError> {
        let running = Azurite::start(&program, &accounts).await?;
        Ok(Restarted {
            live: Arc::new(at(&running)),
            program,
            accounts,
            running,
            playing: None,
            silenced_by: Vec::new(),
        })
    }

    /// What the next recording is played against: the same server, or a new one where that does not
    /// answer.
    ///
    /// # Errors
    /// When it does not start again.
    pub async fn ready(&mut self, recording: &str) -> Result<Arc<Live>, ServerError> {
        let (account, _) = self.accounts.split_once(':').unwrap_or_default();
        if self.live.answers(account).await.is_err() {
            self.silenced_by.extend(self.playing.take());
            // What is replaced is killed.
            self.running = Azurite::start(&self.program, &self.accounts).await?;
            self.live = Arc::new(at(&self.running));
        }
        self.playing = Some(recording.to_owned());
        Ok(Arc::clone(&self.live))
    }

    /// The recordings after which it did not answer any more.
    pub fn silenced_by(&self) -> &[String] {
        &self.silenced_by
    }
}

fn at(azurite: &Azurite) -> Live {
    let addresses = [azurite.blob, azurite.queue, azurite.table];
    Live::at(addresses.map(|address| address.to_string())).with_default_properties()
}
