//! `/accounts`: settings that belong to Azure's management plane. Account keys are neither shown
//! nor changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Map, Value};

use super::{Refusal, failed};
use crate::config::AccountSettings;
use crate::core::Core;
use crate::keys;
use crate::ops::blob::replace::has_any;
use crate::store::StoreResult;

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
    let current = one(core, name)?;
    if settings.hierarchical_namespace != current.hierarchical_namespace
        && has_containers(core, name).map_err(|error| failed(&error))?
    {
        return Err(Refusal::new(StatusCode::CONFLICT, HAS_CONTAINERS));
    }
    if core.change_settings(name, settings) {
        one(core, name)
    } else {
        Err(unknown(name))
    }
}

const HAS_CONTAINERS: &str = "hierarchical_namespace cannot change while the account has \
    containers, deleted ones included: delete them first";

fn has_containers(core: &Core, name: &str) -> StoreResult<bool> {
    let of_account = [
        keys::container(name, ""),
        keys::deleted_containers_from(name, ""),
    ];
    core.store.read(|view| {
        for prefix in of_account {
            if has_any(view, prefix)? {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

fn unknown(name: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("unknown account {name}"))
}
