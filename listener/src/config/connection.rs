//! Which account is talked to, with which credential.

use std::fmt;

use serde::Deserialize;
use smalt_sleeve::Identity;

use super::ConfigError;
use super::secret::{Sources, resolve};

/// The connection string of the local emulator's well-known account: no secret.
pub const DEVELOPMENT_STORAGE: &str = "UseDevelopmentStorage=true";

/// The connection as written in one place: flags or file.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConnectionLayer {
    /// A connection string.
    pub connection_string: Option<String>,
    /// Account name.
    pub account: Option<String>,
    /// Account key, base64.
    pub account_key: Option<String>,
    /// Shared access signature: `sv=...&sig=...`.
    pub sas: Option<String>,
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

/// A connection, ready to be opened. `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Connection {
    /// The connection string: secret.
    pub connection_string: String,
    /// Whose token opens the account: then the string has no secret.
    pub auth: Option<Identity>,
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
    pub fn masked(&self) -> String {
        let shown = |part: &str| match part.split_once('=') {
            Some((name, _)) if !shows(name) => format!("{name}=***"),
            Some((name, value)) => {
                // The query of an endpoint may carry a signature.
                let bare = value.split('?').next().unwrap_or_default();
                format!("{name}={bare}")
            }
            None => "***".to_owned(),
        };
        let parts = self.connection_string.split(';');
        let parts = parts.filter(|part| !part.is_empty()).map(shown);
        parts.collect::<Vec<_>>().join(";")
    }
}

/// Whether the value of this part of a connection string may be shown.
fn shows(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let plain = [
        "accountname",
        "defaultendpointsprotocol",
        "endpointsuffix",
        "usedevelopmentstorage",
        "developmentstorageproxyuri",
    ];
    plain.contains(&name.as_str()) || name.ends_with("endpoint")
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("connection_string", &"***")
            .field("auth", &self.auth)
            .field("ca_file", &self.ca_file)
            .field("connect_to", &self.connect_to)
            .finish()
    }
}

impl ConnectionLayer {
    fn names_an_account(&self) -> bool {
        self.connection_string.is_some() || self.account.is_some() || self.sas.is_some()
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
    let ((connection_string, auth), named_by) = if flags.names_an_account() {
        let inline = ConnectionLayer {
            allow_inline_secrets: true,
            ..flags
        };
        ((written(&inline, sources)?, inline.auth), NamedBy::Flag)
    } else if let Some(found) = sources.variable("AZURE_STORAGE_CONNECTION_STRING") {
        ((found, None), NamedBy::Environment)
    } else {
        ((written(&file, sources)?, file.auth), NamedBy::File)
    };
    Ok(Connection {
        connection_string,
        auth,
        named_by,
        ca_file,
        connect_to,
    })
}

fn written(layer: &ConnectionLayer, sources: &dyn Sources) -> Result<String, ConfigError> {
    let secret = |setting, text: &str| resolve(setting, text, layer.allow_inline_secrets, sources);
    let is_keyed = layer.account_key.is_some() || layer.sas.is_some();
    if layer.auth.is_some() && (is_keyed || layer.connection_string.is_some()) {
        let problem =
            "a token opens the account: give neither a key, a SAS nor a connection string";
        return Err(ConfigError::value("auth", problem));
    }
    if let Some(text) = &layer.connection_string {
        if text
            .trim_end_matches(';')
            .eq_ignore_ascii_case(DEVELOPMENT_STORAGE)
        {
            return Ok(text.clone());
        }
        return secret("connection_string", text);
    }
    let at = match (&layer.endpoint, &layer.account) {
        (Some(endpoint), _) => format!("QueueEndpoint={endpoint}"),
        (None, Some(account)) => {
            format!("QueueEndpoint=https://{account}.queue.core.windows.net")
        }
        (None, None) => {
            let problem = "give --connection-string, AZURE_STORAGE_CONNECTION_STRING, or --account \
                           with --account-key, --sas or --auth (for a local emulator: \
                           --connection-string \"UseDevelopmentStorage=true\")";
            return Err(ConfigError::value("connection", problem));
        }
    };
    match (&layer.account, &layer.account_key, &layer.sas) {
        (Some(account), None, None) if layer.auth.is_some() => {
            Ok(format!("AccountName={account};{at}"))
        }
        (Some(account), Some(key), None) => {
            let key = secret("account_key", key)?;
            Ok(format!("AccountName={account};AccountKey={key};{at}"))
        }
        (account, None, Some(sas)) => {
            let sas = secret("sas", sas)?;
            let name = account
                .as_ref()
                .map_or(String::new(), |a| format!("AccountName={a};"));
            let sas = sas.trim_start_matches('?');
            Ok(format!("{name}SharedAccessSignature={sas};{at}"))
        }
        _ => Err(ConfigError::value(
            "connection",
            "an account needs its key, a shared access signature, or --auth",
        )),
    }
}
