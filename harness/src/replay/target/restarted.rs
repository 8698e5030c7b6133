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
    any_settings: bool,
    running: Azurite,
    live: Arc<Live>,
    /// The recording that is played, or was last.
    playing: Option<String>,
    /// The recordings after which it did not answer.
    silenced_by: Vec<String>,
}

impl Restarted {
    /// Starts it with these accounts (`name:key;name:key`). With `any_settings` it is asked as well
    /// what needs settings that it cannot be given.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(
        program: PathBuf,
        accounts: String,
        any_settings: bool,
    ) -> Result<Restarted, ServerError> {
        let running = Azurite::start(&program, &accounts).await?;
        Ok(Restarted {
            live: Arc::new(at(&running).whatever_it_lacks(any_settings)),
            program,
            accounts,
            any_settings,
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
            self.live = Arc::new(at(&self.running).whatever_it_lacks(self.any_settings));
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Says that it listens, where nobody does.
    const SILENT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/replay/silent_azurite.sh"
    );

    #[tokio::test]
    async fn a_silent_server_is_started_again_and_named() {
        let accounts = "account:a2V5".to_owned();
        let azurite = Restarted::start(PathBuf::from(SILENT), accounts, false).await;
        let mut azurite = azurite.unwrap();
        for recording in ["one", "two", "three"] {
            azurite.ready(recording).await.unwrap();
        }
        assert_eq!(azurite.silenced_by(), ["one", "two"]);
    }
}
