//! Which account is opened, and with which credential.

use serde::Deserialize;
use smalt_sleeve::Identity;
use smalt_worker::access::{Access, masked};
use smalt_worker::process::Sources;
use smalt_worker::secret::{Secret, SecretError};

use super::ConfigError;

/// The connection as given in one place, by flags or file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionLayer {
    /// Connection string, possibly `env:NAME` or `file:/path`.
    pub connection_string: Option<Secret>,
    /// Account name.
    pub account: Option<String>,
    /// Account key, Base64.
    pub account_key: Option<Secret>,
    /// Shared access signature: `sv=...&sig=...`.
    pub sas: Option<Secret>,
    /// Identity whose Entra ID token opens the account.
    pub auth: Option<Identity>,
    /// Queue endpoint; `None` for Azure's endpoint of the account.
    pub endpoint: Option<String>,
    /// PEM file with additional certificate authorities.
    pub ca_file: Option<String>,
    /// `HOST:PORT` to connect to in place of the endpoint's host.
    pub connect_to: Option<String>,
    /// Whether secrets may be given literally.
    pub allow_inline_secrets: bool,
}

/// A connection, ready to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Endpoint and credential.
    pub access: Access,
    /// The source that named the account.
    pub named_by: NamedBy,
    /// PEM file with additional certificate authorities.
    pub ca_file: Option<String>,
    /// `HOST:PORT` to connect to in place of the endpoint's host.
    pub connect_to: Option<String>,
}

/// The source that named the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// A flag or its environment variable.
    Flag,
    /// `AZURE_STORAGE_CONNECTION_STRING`.
    Environment,
    /// The configuration file.
    File,
}

impl Connection {
    /// Returns the connection string with its secrets masked.
    ///
    /// # Errors
    /// The connection string is stored elsewhere and cannot be read.
    pub fn masked(&self, sources: &dyn Sources) -> Result<String, SecretError> {
        let access = &self.access;
        if let Some(text) = &access.connection_string {
            return Ok(masked(&text.reveal(sources)?));
        }
        let secret = |secret: &Option<Secret>| secret.as_ref().map(|_| "***".to_owned());
        let endpoint = access.endpoint.clone().or_else(|| {
            let name = access.name.as_ref()?;
            Some(format!("https://{name}.queue.core.windows.net"))
        });
        let parts = [
            ("AccountName", access.name.clone()),
            ("AccountKey", secret(&access.key)),
            ("SharedAccessSignature", secret(&access.sas)),
            ("QueueEndpoint", endpoint),
        ];
        let parts = parts.into_iter();
        let parts = parts.filter_map(|(name, value)| Some(format!("{name}={}", value?)));
        Ok(parts.collect::<Vec<_>>().join(";"))
    }
}

impl ConnectionLayer {
    fn names_an_account(&self) -> bool {
        self.connection_string.is_some() || self.account.is_some() || self.sas.is_some()
    }

    /// Checks the connection and returns how to open the account.
    fn access(self) -> Result<Access, ConfigError> {
        let access = Access {
            connection_string: self.connection_string,
            name: self.account,
            key: self.account_key,
            sas: self.sas,
            auth: self.auth,
            endpoint: self.endpoint,
        };
        let setting = access.inline_secrets().next();
        if let Some(setting) = setting.filter(|_| !self.allow_inline_secrets) {
            let problem = "a secret does not belong in the file: write env:NAME or file:/path, or \
                           set allow_inline_secrets = true";
            return Err(ConfigError::value(setting, problem));
        }
        if access.connection_string.is_some() {
            return Ok(access);
        }
        if access.name.is_none() && access.endpoint.is_none() {
            let problem = "give --connection-string, AZURE_STORAGE_CONNECTION_STRING, or --account \
                           with --account-key, --sas or --auth (for a local emulator: \
                           --connection-string \"UseDevelopmentStorage=true\")";
            return Err(ConfigError::value("connection", problem));
        }
        let opener = access.name.is_some() && (access.auth.is_some() || access.key.is_some());
        if !opener && access.sas.is_none() {
            let problem = "no credential for the account: give --account-key, --sas or --auth";
            return Err(ConfigError::value("connection", problem));
        }
        Ok(access)
    }
}

/// Returns the connection from flags, environment (`AZURE_STORAGE_CONNECTION_STRING`) or file. The
/// first of these that names an account is used whole; `ca_file` and `connect_to` are taken from
/// flags or file separately.
pub fn connection(
    flags: ConnectionLayer,
    file: ConnectionLayer,
    sources: &dyn Sources,
) -> Result<Connection, ConfigError> {
    let ca_file = flags.ca_file.clone().or_else(|| file.ca_file.clone());
    let connect_to = flags.connect_to.clone().or_else(|| file.connect_to.clone());
    let (access, named_by) = if flags.names_an_account() {
        let flags = ConnectionLayer {
            allow_inline_secrets: true,
            ..flags
        };
        (flags.access()?, NamedBy::Flag)
    } else if let Some(found) = sources.variable("AZURE_STORAGE_CONNECTION_STRING") {
        let access = Access {
            connection_string: Some(Secret::Inline(found)),
            ..Access::default()
        };
        (access, NamedBy::Environment)
    } else {
        (file.access()?, NamedBy::File)
    };
    Ok(Connection {
        access,
        named_by,
        ca_file,
        connect_to,
    })
}
