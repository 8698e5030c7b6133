//! Connects the library to files, environment and clock of this machine, and to the storage client.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use smalt_protocol::service::Service;
use smalt_sleeve::port::Storage;
use smalt_sleeve::{Account, AzureStorage, Credential, Transport};
use smalt_sweeper::settings::{self, Settings};
use smalt_sweeper::{Accounts, OpenUri, Sweeper, uri};
use smalt_worker::access::{self, Access, authorised};
use smalt_worker::process::{self, Process, Sources, wall_clock};
use smalt_worker::settings::Setting;

/// Values from the command line, by configuration path.
type Flags = Vec<(&'static str, toml::Value)>;

pub(crate) fn settings(config: Option<&str>, flags: Flags) -> Result<Settings> {
    let file = config.map(read).transpose()?;
    settings::gather(file.as_deref(), std::env::vars(), flags).context(origin(config))
}

/// Reads the settings of this run, with the source of each value.
pub(crate) fn effective(config: Option<&str>, flags: Flags) -> Result<(Settings, Vec<Setting>)> {
    let file = config.map(read).transpose()?;
    settings::effective(file.as_deref(), std::env::vars(), flags).context(origin(config))
}

/// Returns the name of the configuration for error messages.
pub(crate) fn origin(config: Option<&str>) -> String {
    config.map_or_else(|| "settings".to_owned(), str::to_owned)
}

fn read(path: &str) -> Result<String> {
    Process
        .file(path)
        .with_context(|| format!("cannot read {path}"))
}

/// Creates the worker of this run and opens its accounts.
pub(crate) fn sweeper(settings: &Settings) -> Result<Sweeper> {
    let accounts = accounts(settings)?;
    let seed = settings.seed.map_or_else(process::seed, Ok)?;
    let sweeper = Sweeper::new(settings.sweeper.clone(), accounts, seed)?;
    Ok(sweeper.with_wall_clock(Arc::new(wall_clock)))
}

/// Returns every reason why no worker can be created from these settings. Reads secrets and
/// certificates, but sends nothing.
pub(crate) fn faults(settings: &Settings) -> Vec<String> {
    if settings.accounts.is_empty() {
        return vec![no_account()];
    }
    let transport = transport(settings, Vec::new());
    let opened = settings.accounts.iter().map(|(name, given)| {
        let opened = given.account(Service::Blob, &Process).map_err(Into::into);
        let opened = opened.and_then(|account| match &transport {
            Ok(transport) => open(account, given, transport).map(|_| ()),
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
    for (name, given) in &settings.accounts {
        let account = given.account(Service::Blob, &Process);
        opened.push((
            name,
            given,
            account.with_context(|| format!("account {name}"))?,
        ));
    }
    let hosts = opened
        .iter()
        .filter_map(|(.., account)| account.host(Service::Blob));
    let transport = transport(settings, hosts.map(str::to_owned).collect())?;
    let mut accounts = Accounts::new();
    for (name, given, account) in opened {
        let storage = open(account, given, &transport);
        accounts = accounts.with(name, storage.with_context(|| format!("account {name}"))?);
    }
    let open_uri: OpenUri =
        Arc::new(move |text| open_uri(text, &transport).map_err(|e| e.to_string()));
    Ok(accounts.with_open_uri(open_uri))
}

/// Opens the account with its secret or an identity.
fn open(
    account: Account,
    given: &Access,
    transport: &Arc<dyn Transport>,
) -> Result<Arc<dyn Storage>> {
    storage(
        authorised(account, given.auth, transport, &Process)?,
        transport,
    )
}

fn storage(account: Account, transport: &Arc<dyn Transport>) -> Result<Arc<dyn Storage>> {
    let client = smalt_sleeve::Settings::default();
    Ok(Arc::new(AzureStorage::open(
        account,
        Arc::clone(transport),
        client,
    )?))
}

/// Opens a container URI with a SAS, as found in documents of version 1.
fn open_uri(text: &str, transport: &Arc<dyn Transport>) -> Result<Arc<dyn Storage>> {
    let parsed = uri::parse(text).context("not the URI of a container")?;
    let credential = Credential::sas(&parsed.sas)?;
    let account = Account::new(&parsed.account, Some(&parsed.endpoint), None, credential)?;
    storage(account, transport)
}

fn transport(settings: &Settings, hosts: Vec<String>) -> Result<Arc<dyn Transport>> {
    let resolve: HashMap<_, _> = match settings.connect_to {
        Some(address) => hosts.into_iter().map(|host| (host, address)).collect(),
        None => HashMap::new(),
    };
    let ca_file = settings.ca_file.as_deref();
    Ok(access::transport(ca_file, resolve, &Process)?)
}
