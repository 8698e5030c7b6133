//! Opens the account. The only module that names the storage client behind the port.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use smalt_listener::config::connection::connection;
use smalt_listener::config::file::ConfigFile;
use smalt_protocol::service::Service;
use smalt_sleeve::port::Storage;
use smalt_sleeve::{Account, AzureStorage, RetrySettings, Settings};
use smalt_worker::access::{self, authorised};
use smalt_worker::process::Process;

use super::Common;

/// Which component retries a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retries {
    /// The listener, which knows how long a lock is still valid.
    OfTheListener,
    /// The storage client, for commands that make few calls.
    OfTheClient,
}

/// Opens the account that flags, environment and file name.
pub(crate) async fn open(
    common: &Common,
    file: &ConfigFile,
    retries: Retries,
) -> anyhow::Result<Arc<dyn Storage>> {
    Ok(open_azure(common, file, retries).await?)
}

/// Like [`open`], but returns the client itself, for operations outside the port.
pub(crate) async fn open_azure(
    common: &Common,
    file: &ConfigFile,
    retries: Retries,
) -> anyhow::Result<Arc<AzureStorage>> {
    let given = connection(common.connection_layer(), file.storage.clone(), &Process)?;
    let account = given.access.account(Service::Queue, &Process)?;
    let resolve = match &given.connect_to {
        Some(to) => stand_in(to, &account).await?,
        None => HashMap::new(),
    };
    let transport = access::transport(given.ca_file.as_deref(), resolve, &Process)?;
    let account = authorised(account, given.access.auth, &transport, &Process);
    let account = account.context("--auth")?;
    let mut settings = Settings::default();
    if retries == Retries::OfTheListener {
        settings.retry = RetrySettings {
            tries_max: 1,
            ..RetrySettings::default()
        };
    }
    let storage = AzureStorage::open(account, transport, settings)?;
    Ok(Arc::new(storage))
}

/// Resolves the address of `--connect-to`, which replaces the endpoint's own.
async fn stand_in(to: &str, account: &Account) -> anyhow::Result<HashMap<String, SocketAddr>> {
    let address = tokio::net::lookup_host(to)
        .await
        .with_context(|| format!("--connect-to {to}"))?
        .next()
        .with_context(|| format!("--connect-to {to}: no address"))?;
    let host = account.host(Service::Queue);
    let host = host.context("the account has no queue endpoint")?;
    Ok(HashMap::from([(host.to_owned(), address)]))
}
