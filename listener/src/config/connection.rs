//! Which account is talked to, with which credential.

use serde::Deserialize;
use smalt_sleeve::Identity;
use smalt_worker::access::{Access, masked};
use smalt_worker::process::Sources;
use smalt_worker::secret::{Secret, SecretError};

use super::ConfigError;

/// The connection as written in one place: flags or file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionLayer {
    /// A connection string.
    pub connection_string: Option<Secret>,
    /// Account name.
    pub account: Option<String>,
    /// Account key, base64.
    pub account_key: Option<Secret>,
    /// Shared access signature: `sv=...&sig=...`.
    pub sas: Option<Secret>,
    /// Whose token of Entra ID opens the account.
    pub auth: Option<Identity>,
    /// Queue endpoint, when it is not Azure's for the account.
    pub endpoint: Option<String>,
    /// Further certificate authorities, a PEM file.
    pub ca_file: Option<String>,
    /// `HOST:PORT` that is connected to whatever the endpoint says.
    pub connect_to: Option<String>,
    /// Whether secrets may stand here as they are.
    pub allow_inline_secrets: bool,
}

/// A connection, ready to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// How the account is opened.
    pub access: Access,
    /// Who named the account.
    pub named_by: NamedBy,
    /// Further certificate authorities, a PEM file.
    pub ca_file: Option<String>,
    /// `HOST:PORT` that is connected to whatever the endpoint says.
    pub connect_to: Option<String>,
}

/// Who named the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// A flag, or its environment variable.
    Flag,
    /// `AZURE_STORAGE_CONNECTION_STRING`.
    Environment,
    /// The file.
    File,
}

impl Connection {
    /// The connection string without its secrets, to be shown.
    ///
    /// # Errors
    /// The string is kept elsewhere and cannot be read.
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

    /// How the account is opened, checked.
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
            let problem = "an account needs its key, a shared access signature, or --auth";
            return Err(ConfigError::value("connection", problem));
        }
        Ok(access)
    }
}

/// The connection that flags, environment (`AZURE_STORAGE_CONNECTION_STRING`) and file name, in
/// this order: the first that names an account is used whole. `ca_file` and `connect_to` are looked
/// up on their own.
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
