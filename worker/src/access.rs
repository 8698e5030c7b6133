//! A storage account as described in settings, and how to open it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::ValueEnum;
use serde::Deserialize;
use smalt_protocol::service::Service;
use smalt_sleeve::{
    Account, AccountError, Credential, HyperTransport, HyperTransportSettings, Identity, Transport,
};

use crate::process::Sources;
use crate::secret::{Secret, SecretError};

/// How to open an account: with a connection string, a secret, or an Entra ID token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// Connection string; replaces all other fields.
    pub connection_string: Option<Secret>,
    /// Account name.
    pub name: Option<String>,
    /// Shared key, Base64.
    pub key: Option<Secret>,
    /// Shared access signature, with or without `?`.
    pub sas: Option<Secret>,
    /// Identity whose Entra ID token opens the account instead of a secret.
    pub auth: Option<Identity>,
    /// Endpoint of the worker's service; if `None`, the one in the public cloud.
    pub endpoint: Option<String>,
}

/// Identity whose token opens the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// Service principal (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`), pod
    /// workload identity (`AZURE_FEDERATED_TOKEN_FILE`), or else the user logged in with the Azure
    /// CLI.
    Entra,
    /// Managed identity of the machine or app; set `AZURE_CLIENT_ID` to choose among several.
    ManagedIdentity,
}

impl From<Auth> for Identity {
    fn from(auth: Auth) -> Self {
        match auth {
            Auth::Entra => Identity::Entra,
            Auth::ManagedIdentity => Identity::ManagedIdentity,
        }
    }
}

/// Why an account cannot be opened. No variant holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Both a token and a secret are configured.
    #[error("the account uses a token; remove its key, SAS or connection string")]
    TokenAndSecret,
    /// Two secrets are configured.
    #[error("give a key or a SAS, not both")]
    TwoSecrets,
    /// No field identifies the account.
    #[error("the account needs a name, an endpoint or a connection string")]
    Unnamed,
    /// A secret cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The values do not describe a valid account.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// The file with certificates cannot be read.
    #[error("cannot read {path}: {source}")]
    Certificates {
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The certificates are not valid PEM.
    #[error("--ca-file: {0}")]
    Transport(#[from] smalt_sleeve::TransportError),
}

impl Access {
    /// Returns the account with its secret; [`authorised`] adds a token.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn account(&self, service: Service, sources: &dyn Sources) -> Result<Account, AccessError> {
        let is_keyed = self.connection_string.is_some() || self.key.is_some() || self.sas.is_some();
        if self.auth.is_some() && is_keyed {
            return Err(AccessError::TokenAndSecret);
        }
        if let Some(text) = &self.connection_string {
            let text = text.reveal(sources)?;
            return Ok(Account::from_connection_string(text.trim())?);
        }
        let credential = match (&self.key, &self.sas) {
            (Some(key), None) => Credential::key(&key.reveal(sources)?)?,
            (None, Some(sas)) => Credential::sas(&sas.reveal(sources)?)?,
            (None, None) => Credential::Anonymous,
            (Some(_), Some(_)) => return Err(AccessError::TwoSecrets),
        };
        let name = self.name.as_deref().unwrap_or_default();
        let endpoint = self.endpoint.as_deref();
        match (endpoint, service) {
            (Some(_), Service::Blob) => Ok(Account::new(name, endpoint, None, credential)?),
            (Some(_), _) => Ok(Account::new(name, None, endpoint, credential)?),
            (None, _) if name.is_empty() => Err(AccessError::Unnamed),
            (None, _) => Ok(Account::of_azure(name, credential)?),
        }
    }

    /// Returns the names of the fields that contain a secret instead of a reference to one.
    pub fn inline_secrets(&self) -> impl Iterator<Item = &'static str> {
        let fields = [
            ("connection_string", &self.connection_string),
            ("key", &self.key),
            ("sas", &self.sas),
        ];
        let secret =
            |secret: &Option<Secret>| secret.as_ref().is_some_and(Secret::is_inline_secret);
        fields
            .into_iter()
            .filter_map(move |(name, value)| secret(value).then_some(name))
    }
}

/// Returns the account, with the token of its identity if it has one. Tokens are fetched through
/// `transport`.
///
/// # Errors
/// If the environment lacks variables that the identity needs.
pub fn authorised(
    account: Account,
    auth: Option<Identity>,
    transport: &Arc<dyn Transport>,
    sources: &dyn Sources,
) -> Result<Account, AccountError> {
    let Some(identity) = auth else {
        return Ok(account);
    };
    let variable = |name: &str| sources.variable(name);
    let credential = Credential::of_identity(identity, &variable, Arc::clone(transport))?;
    Ok(account.with_credential(credential))
}

/// Creates a transport over sockets. `ca_file` adds trusted authorities (PEM); `resolve` replaces
/// the addresses of hosts.
///
/// # Errors
/// If the certificates cannot be used.
pub fn transport(
    ca_file: Option<&str>,
    resolve: HashMap<String, SocketAddr>,
    sources: &dyn Sources,
) -> Result<Arc<dyn Transport>, AccessError> {
    let extra_ca_pem = match ca_file {
        Some(path) => sources
            .file(path)
            .map_err(|source| AccessError::Certificates {
                path: path.to_owned(),
                source,
            })?,
        None => String::new(),
    };
    Ok(Arc::new(HyperTransport::new(HyperTransportSettings {
        extra_ca_pem: extra_ca_pem.into_bytes(),
        resolve,
        ..HyperTransportSettings::default()
    })?))
}

/// Returns a connection string with its secrets masked.
pub fn masked(connection_string: &str) -> String {
    let shown = |part: &str| match part.split_once('=') {
        Some((name, _)) if !is_public(name) => format!("{name}=***"),
        Some((name, value)) => {
            // The query of an endpoint may contain a signature.
            let bare = value.split('?').next().unwrap_or_default();
            format!("{name}={bare}")
        }
        None => "***".to_owned(),
    };
    let parts = connection_string.split(';');
    let parts = parts.filter(|part| !part.is_empty()).map(shown);
    parts.collect::<Vec<_>>().join(";")
}

/// Returns whether the value of this part of a connection string may be shown.
fn is_public(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let public = [
        "accountname",
        "defaultendpointsprotocol",
        "endpointsuffix",
        "usedevelopmentstorage",
        "developmentstorageproxyuri",
    ];
    public.contains(&name.as_str()) || name.ends_with("endpoint")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Process;

    fn access(toml: &str) -> Access {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn account_has_exactly_one_credential() {
        for (toml, wanted) in [
            ("name = \"a\"\nkey = \"a2V5\"", Ok("a")),
            ("name = \"a\"\nauth = \"entra\"", Ok("a")),
            ("endpoint = \"http://127.0.0.1:1/dev\"", Ok("dev")),
            (
                "connection_string = \"UseDevelopmentStorage=true\"",
                Ok("devstoreaccount1"),
            ),
            (
                "name = \"a\"\nkey = \"a2V5\"\nsas = \"sig=x\"",
                Err("not both"),
            ),
            (
                "name = \"a\"\nauth = \"entra\"\nsas = \"sig=x\"",
                Err("the account uses a token"),
            ),
            (
                "name = \"a\"\nkey = \"env:SMALT_UNSET\"",
                Err("SMALT_UNSET is not set"),
            ),
            ("name = \"a\"\nkey = \"c2VjcmV0!\"", Err("not valid Base64")),
            ("key = \"a2V5\"", Err("the account needs a name")),
        ] {
            for service in [Service::Blob, Service::Queue] {
                let found = access(toml).account(service, &Process);
                match (found, wanted) {
                    (Ok(account), Ok(name)) => {
                        assert_eq!(account.name(), name, "{toml}");
                        assert!(account.host(service).is_some(), "{toml}");
                    }
                    (Err(error), Err(says)) => {
                        let error = error.to_string();
                        assert!(error.contains(says), "{toml}: {error}");
                        assert!(!error.contains("c2VjcmV0"), "{error}");
                    }
                    (found, _) => panic!("{toml}: {found:?}"),
                }
            }
        }
        assert!(toml::from_str::<Access>("auth = \"password\"").is_err());
    }

    #[test]
    fn inline_secrets_are_named() {
        let given =
            access("connection_string = \"AccountName=a\"\nkey = \"env:K\"\nsas = \"sig=x\"");
        assert!(given.inline_secrets().eq(["connection_string", "sas"]));
        let public = access("connection_string = \"UseDevelopmentStorage=true\"");
        assert_eq!(public.inline_secrets().count(), 0);
    }

    #[test]
    fn secrets_of_a_connection_string_are_masked() {
        let text = "AccountName=a;AccountKey=c2VjcmV0;Sig;QueueEndpoint=https://h?sig=x;";
        let shown = "AccountName=a;AccountKey=***;***;QueueEndpoint=https://h";
        assert_eq!(masked(text), shown);
    }
}
