//! `/accounts/{account}/containers/{name}`: immutability policy and legal holds of a container,
//! which Azure's management plane keeps.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde::Deserialize;
use smalt_protocol::ErrorCode;

use super::content::parse;
use super::refusal::no_such_method;
use super::refusal::{Refusal, failed};
use crate::body::Body;
use crate::core::Core;
use crate::keys;
use crate::records::{ContainerRecord, Record};
use crate::rules::worm::{Change, Refused, Retention, Worm};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    days: u32,
    #[serde(default)]
    allow_protected_append_writes: bool,
    #[serde(default)]
    allow_protected_append_writes_all: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Extension {
    days: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tags {
    tags: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hold {
    tags: BTreeSet<String>,
    #[serde(default)]
    allow_protected_append_writes_all: bool,
}

/// Serves the path after `/accounts/{account}/containers/`.
pub(super) async fn serve(
    core: &Core,
    account: &str,
    path: &str,
    method: &Method,
    body: Body,
) -> Result<Worm, Refusal> {
    let (name, what) = path.split_once('/').unwrap_or((path, ""));
    let change = match (what, method) {
        ("", &Method::GET) => None,
        ("immutability-policy", &Method::PUT) => {
            let policy: Policy = parse(body).await?;
            Some(Change::Set(Retention {
                days: policy.days,
                allow_protected_append_writes: policy.allow_protected_append_writes,
                locked: false,
                extensions: 0,
                allow_protected_append_writes_all: policy.allow_protected_append_writes_all,
            }))
        }
        ("immutability-policy", &Method::DELETE) => Some(Change::Delete),
        ("immutability-policy/lock", &Method::POST) => Some(Change::Lock),
        ("immutability-policy/extend", &Method::POST) => {
            let Extension { days } = parse(body).await?;
            Some(Change::Extend(days))
        }
        ("legal-hold", &Method::PUT) => {
            let hold: Hold = parse(body).await?;
            let allows_appends = hold.allow_protected_append_writes_all;
            Some(Change::Hold(hold.tags, allows_appends))
        }
        ("legal-hold", &Method::DELETE) => {
            let Tags { tags } = parse(body).await?;
            Some(Change::Release(tags))
        }
        _ => return Err(no_such_method()),
    };
    let key = keys::container(account, name);
    let changed = core.store.commit(move |tx, _| {
        let container = ContainerRecord::load(tx, &key)?;
        let container = container.filter(|container| container.deleted_at.is_none());
        let mut container = container.ok_or(ErrorCode::ContainerNotFound)?;
        let Some(change) = change else {
            return Ok(Ok(container.worm));
        };
        if let Err(refused) = container.worm.change(change) {
            return Ok(Err(refused));
        }
        let worm = container.worm.clone();
        container.save(tx, key)?;
        Ok(Ok(worm))
    });
    match changed.await {
        Ok(Ok(worm)) => Ok(worm),
        Ok(Err(Refused::Invalid(what))) => Err(Refusal::new(StatusCode::BAD_REQUEST, what)),
        Ok(Err(Refused::Conflict(what))) => Err(Refusal::new(StatusCode::CONFLICT, what)),
        Err(error) if error.code() == ErrorCode::ContainerNotFound => {
            let message = format!("unknown container {name} of account {account}");
            Err(Refusal::new(StatusCode::NOT_FOUND, message))
        }
        Err(error) => Err(failed(&error)),
    }
}
