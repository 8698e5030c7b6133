//! `/accounts`: settings that belong to Azure's management plane. Account keys are neither shown
//! nor changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value};

use super::{Refusal, failed};
use crate::config::AccountSettings;
use crate::core::Core;

pub(super) const ACCOUNT: &str = "/accounts/";

pub(super) fn all(core: &Core) -> BTreeMap<&str, AccountSettings> {
    let names = core.config.accounts.keys();
    names
        .map(|name| (name.as_str(), AccountSettings::clone(&core.settings(name))))
        .collect()
}

pub(super) fn one(core: &Core, name: &str) -> Result<Arc<AccountSettings>, Refusal> {
    match core.config.account(name) {
        Some(_) => Ok(core.settings(name)),
        None => Err(unknown(name)),
    }
}

/// Changes the given settings. Resets all others to their defaults unless `keeps` is set.
pub(super) fn change(
    core: &Core,
    name: &str,
    given: Map<String, Value>,
    keeps: bool,
) -> Result<Arc<AccountSettings>, Refusal> {
    let before = if keeps {
        one(core, name)?
    } else {
        Arc::default()
    };
    let mut all = serde_json::to_value(before.as_ref()).map_err(|error| failed(&error))?;
    if let Value::Object(fields) = &mut all {
        fields.extend(given);
    }
    let settings: AccountSettings = serde_json::from_value(all)
        .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, format!("invalid body: {error}")))?;
    let valid = settings.validate();
    valid.map_err(|what| Refusal::new(StatusCode::BAD_REQUEST, what))?;
    if core.change_settings(name, settings) {
        one(core, name)
    } else {
        Err(unknown(name))
    }
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("unknown account {name}"))
}
