//! Azurite, started for a replay and restarted when it stops answering.

use std::path::PathBuf;
use std::sync::Arc;

use super::hosts::account;
use crate::servers::ServerError;
use crate::target::server::Server;
use crate::target::{emptied, start};

/// An Azurite process.
pub struct Restarted {
    program: PathBuf,
    /// Accounts with their keys: `name:key;name:key`.
    accounts: String,
    any_settings: bool,
    running: Arc<Server>,
    /// The current or last recording.
    playing: Option<String>,
    /// The recordings after which it did not answer.
    silenced_by: Vec<String>,
}

impl Restarted {
    /// Starts Azurite with these accounts (`name:key;name:key`). `any_settings` also plays
    /// recordings that need settings which it cannot be given.
    pub async fn start(
        program: PathBuf,
        accounts: String,
        any_settings: bool,
    ) -> Result<Restarted, ServerError> {
        Ok(Restarted {
            running: started(&program, &accounts, any_settings).await?,
            program,
            accounts,
            any_settings,
            playing: None,
            silenced_by: Vec::new(),
        })
    }

    /// Returns the target for the next recording: the same server, or a new one when that does not
    /// answer.
    pub async fn ready(&mut self, recording: &str) -> Result<Arc<Server>, ServerError> {
        let (name, _) = self.accounts.split_once(':').unwrap_or_default();
        let answers = match account(name) {
            Some(account) => emptied::answers(&*self.running, &account).await.is_ok(),
            None => false,
        };
        if !answers {
            self.silenced_by.extend(self.playing.take());
            // Dropping the target ends the old server.
            self.running = started(&self.program, &self.accounts, self.any_settings).await?;
        }
        self.playing = Some(recording.to_owned());
        Ok(Arc::clone(&self.running))
    }

    /// Returns the recordings after which it did not answer.
    pub fn silenced_by(&self) -> &[String] {
        &self.silenced_by
    }
}

async fn started(
    program: &std::path::Path,
    accounts: &str,
    any_settings: bool,
) -> Result<Arc<Server>, ServerError> {
    let azurite = start::azurite(program, Some(accounts), None).await?;
    Ok(Arc::new(azurite.replayed(any_settings)))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// Says that it listens, but does not.
    const SILENT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/replay/silent_azurite.sh"
    );

    #[tokio::test]
    async fn a_silent_server_is_restarted_and_named() {
        let accounts = "account:a2V5".to_owned();
        let azurite = Restarted::start(PathBuf::from(SILENT), accounts, false).await;
        let mut azurite = azurite.unwrap();
        for recording in ["one", "two", "three"] {
            azurite.ready(recording).await.unwrap();
        }
        assert_eq!(azurite.silenced_by(), ["one", "two"]);
    }
}
