//! A storage account as settings describe it, and how it is opened.

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

/// How an account is opened: by a connection string, by a secret, or by a token of Entra ID.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Access {
    /// A connection string. It takes the place of all other fields.
    pub connection_string: Option<Secret>,
    /// Account name.
    pub name: Option<String>,
    /// Shared key, Base64.
    pub key: Option<Secret>,
    /// Shared access signature, with or without `?`.
    pub sas: Option<Secret>,
    /// Whose token of Entra ID opens the account, in place of a secret.
    pub auth: Option<Identity>,
    /// Endpoint of the worker's service; that of the public cloud when absent.
    pub endpoint: Option<String>,
}

/// Whose token opens the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Auth {
    /// A service principal (`AZURE_TENANT_ID`, `AZURE_CLIENT_ID`, `AZURE_CLIENT_SECRET`), a pod's
    /// workload (`AZURE_FEDERATED_TOKEN_FILE`), else the user who is logged in with the Azure CLI.
    Entra,
    /// The identity of the machine or app; that of `AZURE_CLIENT_ID` where there are several.
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
    /// A token and a secret.
    #[error("a token opens the account: give neither a key, a SAS nor a connection string")]
    TokenAndSecret,
    /// Two secrets.
    #[error("give a key or a SAS, not both")]
    TwoSecrets,
    /// Nothing that says which account.
    #[error("the account has neither a name, an endpoint nor a connection string")]
    Unnamed,
    /// A secret that cannot be read.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Values that make no account.
    #[error(transparent)]
    Account(#[from] AccountError),
    /// A file with certificates that cannot be read.
    #[error("cannot read {path}: {source}")]
    Certificates {
        /// Path of the file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// Certificates that are not PEM.
    #[error("--ca-file: {0}")]
    Transport(#[from] smalt_sleeve::TransportError),
}

impl Access {
    /// The account, opened by its own secret; a token is added by [`authorised`].
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

    /// The names of the fields that hold a secret themselves, instead of naming its place.
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

/// The account, opened by the token of an identity if there is one. Tokens are fetched through
/// `transport`.
///
/// # Errors
/// The environment lacks what the identity needs.
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

/// A transport over sockets. `ca_file` names further trusted authorities (PEM); `resolve` gives
/// hosts another address than their own.
///
/// # Errors
/// The certificates cannot be used.
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

/// A connection string with its secrets masked.
pub fn masked(connection_string: &str) -> String {
    let shown = |part: &str| match part.split_once('=') {
        Some((name, _)) if !is_public(name) => format!("{name}=***"),
        Some((name, value)) => {
            // The query of an endpoint may carry a signature.
            let bare = value.split('?').next().unwrap_or_default();
            format!("{name}={bare}")
        }
        None => "***".to_owned(),
    };
    let parts = connection_string.split(';');
    let parts = parts.filter(|part| !part.is_empty()).map(shown);
    parts.collect::<Vec<_>>().join(";")
}

/// Whether the value of this part of a connection string may be shown.
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
    fn an_account_is_opened_by_one_credential() {
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
                Err("a token opens"),
            ),
            (
                "name = \"a\"\nkey = \"env:SMALT_UNSET\"",
                Err("SMALT_UNSET is not set"),
            ),
            ("name = \"a\"\nkey = \"c2VjcmV0!\"", Err("not valid Base64")),
            ("key = \"a2V5\"", Err("neither a name")),
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
