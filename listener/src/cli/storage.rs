//! Opens the account: the one place that knows the storage client behind the port.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use smalt_listener::config::ConfigError;
use smalt_listener::config::connection::{Connection, connection};
use smalt_listener::config::file::ConfigFile;
use smalt_listener::config::secret::{Process, Sources};
use smalt_protocol::connection_string::ConnectionString;
use smalt_protocol::service::Service;
use smalt_sleeve::port::Storage;
use smalt_sleeve::{
    Account, AzureStorage, Credential, HyperTransport, HyperTransportSettings, Identity,
    RetrySettings, Settings, Transport,
};

use super::Common;

/// Who tries again when a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retries {
    /// The listener itself: it knows how long a lock still holds.
    OfTheListener,
    /// The storage client: for commands that make a few calls.
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

/// The same, for what is not in the port.
pub(crate) async fn open_azure(
    common: &Common,
    file: &ConfigFile,
    retries: Retries,
) -> anyhow::Result<Arc<AzureStorage>> {
    let given = connection(common.connection_layer(), file.storage.clone(), &Process)?;
    let account = account(&given)?;
    let transport = HyperTransport::new(transport_settings(&given).await?)
        .map_err(|error| anyhow::anyhow!("--ca-file: {error}"))?;
    let transport: Arc<dyn Transport> = Arc::new(transport);
    let account = match given.auth {
        Some(identity) => account.with_credential(token(identity, Arc::clone(&transport))?),
        None => account,
    };
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

/// The credential of an identity.
fn token(identity: Identity, transport: Arc<dyn Transport>) -> anyhow::Result<Credential> {
    let variable = |name: &str| Process.variable(name);
    Credential::of_identity(identity, &variable, transport).context("--auth")
}

/// The account of a connection.
pub(crate) fn account(given: &Connection) -> anyhow::Result<Account> {
    Account::from_connection_string(&given.connection_string)
        .context("the connection string cannot be used")
}

async fn transport_settings(given: &Connection) -> anyhow::Result<HyperTransportSettings> {
    let mut settings = HyperTransportSettings::default();
    if let Some(path) = &given.ca_file {
        let pem = Process.file(path).map_err(|source| ConfigError::Read {
            path: path.clone(),
            source,
        })?;
        settings.extra_ca_pem = pem.into_bytes();
    }
    if let Some(to) = &given.connect_to {
        settings.resolve = stand_in(to, &given.connection_string).await?;
    }
    Ok(settings)
}

/// `--connect-to`: the address that stands in for the endpoint's own.
async fn stand_in(to: &str, connection: &str) -> anyhow::Result<HashMap<String, SocketAddr>> {
    let address = tokio::net::lookup_host(to)
        .await
        .with_context(|| format!("--connect-to {to}"))?
        .next()
        .with_context(|| format!("--connect-to {to}: no address"))?;
    let parsed = ConnectionString::parse(connection)?;
    let host = parsed
        .endpoint(Service::Queue)
        .and_then(|endpoint| endpoint.parse::<http::Uri>().ok())
        .and_then(|uri| uri.host().map(str::to_owned))
        .context("the account has no queue endpoint")?;
    Ok(HashMap::from([(host, address)]))
}
