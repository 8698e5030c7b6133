//! Wires the binary: files, environment and clock of this machine, and the storage client. The one
//! module of the crate that touches any of them.
#![expect(
    clippy::disallowed_methods,
    reason = "configuration, secrets and certificates stand in files; log stamps and the check for \
              skew need this machine's clock"
)]

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, anyhow, bail};
use smalt_protocol::Timestamp;
use smalt_sleeve::port::Storage;
use smalt_sleeve::{
    Account, AzureStorage, Credential, HyperTransport, HyperTransportSettings, Identity, Transport,
};
use smalt_sweeper::settings::{self, AccountSettings, Secret, Setting, Settings};
use smalt_sweeper::{Accounts, OpenUri, Sweeper, uri};

/// What was said on the command line, by paths of the file.
type Flags = Vec<(&'static str, toml::Value)>;

/// Reads the configuration of this run.
pub(crate) fn settings(config: Option<&str>, flags: Flags) -> Result<Settings> {
    let file = config.map(read).transpose()?;
    settings::gather(file.as_deref(), std::env::vars(), flags).context(origin(config))
}

/// Reads the configuration of this run, and where each of its values comes from.
pub(crate) fn effective(config: Option<&str>, flags: Flags) -> Result<(Settings, Vec<Setting>)> {
    let file = config.map(read).transpose()?;
    settings::effective(file.as_deref(), std::env::vars(), flags).context(origin(config))
}

/// What a configuration is called where something is wrong with it.
pub(crate) fn origin(config: Option<&str>) -> String {
    config.map_or_else(|| "settings".to_owned(), str::to_owned)
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))
}

/// Opens a file for reading.
pub(crate) fn open(path: &str) -> Result<std::fs::File> {
    std::fs::File::open(path).with_context(|| format!("cannot read {path}"))
}

/// The worker of this run, with its accounts opened.
pub(crate) fn sweeper(settings: &Settings) -> Result<Sweeper> {
    let accounts = accounts(settings)?;
    let seed = match settings.seed {
        Some(seed) => seed,
        None => getrandom::u64().map_err(|e| anyhow!("this machine gives no randomness: {e}"))?,
    };
    let sweeper = Sweeper::new(settings.sweeper.clone(), accounts, seed)?;
    Ok(sweeper.with_wall_clock(Arc::new(wall_clock)))
}

/// This machine's clock.
pub(crate) fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Timestamp::from_unix(since.unwrap_or_default())
}

/// Everything that keeps a worker from being made of these settings. Opening accounts reads secrets
/// and certificates, and sends nothing.
pub(crate) fn faults(settings: &Settings) -> Vec<String> {
    if settings.accounts.is_empty() {
        return vec![no_account()];
    }
    let transport = transport(settings, Vec::new());
    let opened = settings.accounts.iter().map(|(name, given)| {
        let opened = open_account(given).and_then(|(account, _)| match &transport {
            Ok(transport) => authorised(account, given.auth, transport).map(|_| ()),
            Err(_) => Ok(()),
        });
        opened.with_context(|| format!("account {name}"))
    });
    let mut faults: Vec<String> = opened
        .filter_map(|opened| opened.err().map(|error| format!("{error:#}")))
        .collect();
    faults.extend(transport.as_ref().err().map(|error| format!("{error:#}")));
    let config = &settings.sweeper;
    let swept = config.containers.iter().map(|swept| &swept.account);
    let named = [&config.state_account]
        .into_iter()
        .chain(&config.dead.account);
    let named: BTreeSet<_> = named.chain(swept).collect();
    let missing = named
        .into_iter()
        .filter(|name| !settings.accounts.contains_key(*name));
    faults.extend(missing.map(|name| format!("no account `{name}` is configured")));
    faults
}

fn no_account() -> String {
    format!(
        "no storage account: give --connection-string, --account, or set {}",
        settings::ENV_CONNECTION_STRING
    )
}

fn accounts(settings: &Settings) -> Result<Accounts> {
    if settings.accounts.is_empty() {
        bail!("{}", no_account());
    }
    let mut opened = Vec::new();
    let mut hosts = Vec::new();
    for (name, given) in &settings.accounts {
        let (account, host) = open_account(given).with_context(|| format!("account {name}"))?;
        hosts.extend(host);
        opened.push((name, account, given.auth));
    }
    let transport = transport(settings, hosts)?;
    let mut accounts = Accounts::new();
    for (name, account, auth) in opened {
        let storage = authorised(account, auth, &transport);
        accounts = accounts.with(name, storage.with_context(|| format!("account {name}"))?);
    }
    let open_uri: OpenUri =
        Arc::new(move |text| open_uri(text, &transport).map_err(|e| e.to_string()));
    Ok(accounts.with_open_uri(open_uri))
}

/// The account, opened by its own secret or in the name of an identity.
fn authorised(
    account: Account,
    auth: Option<Identity>,
    transport: &Arc<dyn Transport>,
) -> Result<Arc<dyn Storage>> {
    let account = match auth {
        Some(identity) => account.with_credential(token(identity, transport)?),
        None => account,
    };
    storage(account, transport)
}

fn storage(account: Account, transport: &Arc<dyn Transport>) -> Result<Arc<dyn Storage>> {
    let client = smalt_sleeve::Settings::default();
    Ok(Arc::new(AzureStorage::open(
        account,
        Arc::clone(transport),
        client,
    )?))
}

/// The credential of an identity. Tokens are fetched through the same transport.
fn token(identity: Identity, transport: &Arc<dyn Transport>) -> Result<Credential> {
    let variable = |name: &str| std::env::var(name).ok();
    let credential = Credential::of_identity(identity, &variable, Arc::clone(transport));
    credential.with_context(|| format!("auth = \"{}\"", identity.name()))
}

/// Opens a container URI with a SAS, as documents of version 1 hold it.
fn open_uri(text: &str, transport: &Arc<dyn Transport>) -> Result<Arc<dyn Storage>> {
    let parsed = uri::parse(text).context("it is no URI of a container")?;
    let credential = Credential::sas(&parsed.sas)?;
    let account = Account::new(&parsed.account, Some(&parsed.endpoint), None, credential)?;
    storage(account, transport)
}

/// The account, and the host that it is reached under.
fn open_account(given: &AccountSettings) -> Result<(Account, Option<String>)> {
    let is_keyed = given.connection_string.is_some() || given.key.is_some() || given.sas.is_some();
    if given.auth.is_some() && is_keyed {
        bail!("auth is in place of connection_string, key and sas: give one of them");
    }
    if let Some(text) = &given.connection_string {
        let text = reveal(text)?;
        let host = connection_string_host(&text);
        return Ok((Account::from_connection_string(text.trim())?, host));
    }
    let credential = match (&given.key, &given.sas) {
        (Some(key), None) => Credential::key(&reveal(key)?)?,
        (None, Some(sas)) => Credential::sas(&reveal(sas)?)?,
        (None, None) => Credential::Anonymous,
        (Some(_), Some(_)) => bail!("give a key or a SAS, not both"),
    };
    let name = given.name.as_deref().unwrap_or_default();
    match &given.endpoint {
        Some(endpoint) => {
            let account = Account::new(name, Some(endpoint), None, credential)?;
            Ok((account, host_of(endpoint)))
        }
        None if name.is_empty() => bail!("it has neither name nor endpoint nor connection string"),
        None => {
            let host = format!("{name}.blob.core.windows.net");
            Ok((Account::of_azure(name, credential)?, Some(host)))
        }
    }
}

fn host_of(endpoint: &str) -> Option<String> {
    let parsed: http::Uri = endpoint.parse().ok()?;
    parsed.host().map(str::to_owned)
}

fn connection_string_host(text: &str) -> Option<String> {
    let field = |name: &str| {
        text.split(';').find_map(|part| {
            let (key, value) = part.trim().split_once('=')?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    if let Some(endpoint) = field("BlobEndpoint") {
        return host_of(&endpoint);
    }
    let suffix = field("EndpointSuffix").unwrap_or_else(|| "core.windows.net".to_owned());
    Some(format!("{}.blob.{suffix}", field("AccountName")?))
}

fn reveal(secret: &Secret) -> Result<String> {
    match secret {
        Secret::Inline(text) => Ok(text.clone()),
        Secret::Env(name) => {
            std::env::var(name).with_context(|| format!("environment variable {name}"))
        }
        Secret::File(path) => {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
            Ok(text.trim().to_owned())
        }
    }
}

fn transport(settings: &Settings, hosts: Vec<String>) -> Result<Arc<dyn Transport>> {
    let extra_ca_pem = match &settings.ca_file {
        Some(path) => std::fs::read(path).with_context(|| format!("cannot read {path}"))?,
        None => Vec::new(),
    };
    let resolve: HashMap<_, _> = match settings.connect_to {
        Some(address) => hosts.into_iter().map(|host| (host, address)).collect(),
        None => HashMap::new(),
    };
    let transport = HyperTransport::new(HyperTransportSettings {
        extra_ca_pem,
        resolve,
        ..HyperTransportSettings::default()
    })?;
    Ok(Arc::new(transport))
}
