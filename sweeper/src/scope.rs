//! Checks that the configured containers are those of the state document. A worker that is told to
//! sweep one container must never sweep another, so a difference is an error.

use std::collections::BTreeSet;

use crate::accounts::Accounts;
use crate::config::SweeperConfig;
use crate::error::SweepError;
use crate::state::{Container, Document, Status};

/// Account (if known), container and prefix.
type Swept = (Option<String>, String, String);

/// Rejects a document that lists other containers than the configuration. If none are configured,
/// only the document counts.
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
        "asked for {}, but the state document {}/{} sweeps {}: omit --container \
         (sweeper.containers) to sweep what it lists, name all of that, or replace the document \
         with `state init --replace`",
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

/// Formats the places; names the account only where the container alone is ambiguous.
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
