//! Whether the containers that are asked for are those of the state document. A worker that is told
//! to sweep one container never sweeps another instead: where the two differ it refuses.

use std::collections::BTreeSet;

use crate::accounts::Accounts;
use crate::config::SweeperConfig;
use crate::error::SweepError;
use crate::state::{Container, Document, Status};

/// Account, container and prefix, as far as the account is known.
type Swept = (Option<String>, String, String);

/// Refuses a document that sweeps anything but the configured containers. Without any the document
/// alone says what is swept.
///
/// # Errors
/// [`SweepError::Config`], which names both.
pub(crate) fn agree(
    config: &SweeperConfig,
    accounts: &Accounts,
    document: &Document,
) -> Result<(), SweepError> {
    if config.containers.is_empty() {
        return Ok(());
    }
    let asked = config.containers.iter().map(|swept| {
        let account = accounts.get(&swept.account);
        let account = account.map(|storage| storage.account().to_owned());
        (account, swept.container.clone(), swept.prefix.clone())
    });
    let asked: BTreeSet<Swept> = asked.collect();
    let all = document.containers.iter().map(|e| (e, of(accounts, e)));
    let all: Vec<(&Container, Swept)> = all.collect();
    let missing = (asked.iter()).any(|asked| !all.iter().any(|(_, there)| there == asked));
    let further = (all.iter())
        .filter(|(element, _)| element.status != Status::Off)
        .any(|(_, there)| !asked.contains(there));
    if !missing && !further {
        return Ok(());
    }
    let blob = &config.state_blob;
    Err(SweepError::Config(format!(
        "asked for {}, but the state document {}/{} sweeps {}: leave out --container \
         (sweeper.containers) to sweep what it says, name all of it, or replace it with \
         `state init --replace`",
        shown(asked.iter()),
        blob.container,
        blob.name,
        shown(
            all.iter()
                .filter(|(e, _)| e.status != Status::Off)
                .map(|(_, s)| s)
        ),
    )))
}

fn of(accounts: &Accounts, element: &Container) -> Swept {
    let place = accounts.place(element).ok();
    let account = place.map(|place| place.storage.account().to_owned());
    (account, element.container_name(), element.prefix.clone())
}

/// The account is told where a name alone would not tell two places apart.
fn shown<'a>(places: impl Iterator<Item = &'a Swept>) -> String {
    let shown = places.map(|(account, container, prefix)| {
        let account = account.as_deref().unwrap_or("an unknown account");
        format!("{container}/{prefix} of {account}")
    });
    let shown: Vec<String> = shown.collect();
    match shown.is_empty() {
        true => "nothing".to_owned(),
        false => shown.join(", "),
    }
}
