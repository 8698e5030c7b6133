//! A storage account: its name, endpoints and credential.

use std::fmt;

use azure_core::http::Url;
use smalt_protocol::connection_string::{self, ConnectionString, ConnectionStringError};
use smalt_protocol::service::Service;
use smalt_protocol::signing::AccountKey;
use smalt_protocol::uri::{lookup, parse_query};

/// Why an account cannot be opened. No variant holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The connection string is invalid.
    #[error(transparent)]
    ConnectionString(#[from] ConnectionStringError),
    /// The key is not Base64.
    #[error("the account key is not valid Base64")]
    Key,
    /// The string has no `sig`, so it is not a SAS.
    #[error("not a shared access signature: `sig` is missing")]
    Sas,
    /// The endpoint is not an HTTP URL.
    #[error("the {0} endpoint is not an http or https URL")]
    Endpoint(Service),
    /// The name is neither given nor part of an endpoint.
    #[error("the account has no name")]
    Name,
    /// No endpoint is given.
    #[error("the account has no endpoint")]
    NoEndpoint,
    /// The SDK rejects the combination, for example an Entra ID token over plain HTTP.
    #[error("cannot create the client: {0}")]
    Client(String),
}

/// How requests are authorized. `Debug` shows the kind, never the secret.
#[derive(Clone)]
pub enum Credential {
    /// Shared Key: the account's key signs every request.
    Key(AccountKey),
    /// A SAS: a percent-encoded query without a question mark.
    Sas(String),
    /// An Entra ID token; requires HTTPS.
    #[cfg(feature = "entra")]
    Token(std::sync::Arc<dyn azure_core::credentials::TokenCredential>),
    /// No credential; works only for public containers.
    Anonymous,
}

impl Credential {
    /// Creates a credential from the account's key, in Base64 as the portal shows it.
    ///
    /// # Errors
    /// [`AccountError::Key`].
    pub fn key(base64: &str) -> Result<Self, AccountError> {
        AccountKey::parse(base64)
            .map(Credential::Key)
            .ok_or(AccountError::Key)
    }

    /// Creates a credential from a SAS, with or without its question mark.
    ///
    /// # Errors
    /// [`AccountError::Sas`] for a string without a `sig`.
    pub fn sas(text: &str) -> Result<Self, AccountError> {
        let text = text.trim().trim_start_matches('?');
        let query = parse_query(text).map_err(|_| AccountError::Sas)?;
        match lookup(&query, "sig") {
            Some(signature) if !signature.is_empty() => Ok(Credential::Sas(text.to_owned())),
            _ => Err(AccountError::Sas),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Key(_) => "Key(redacted)",
            Credential::Sas(_) => "Sas(redacted)",
            #[cfg(feature = "entra")]
            Credential::Token(_) => "Token(redacted)",
            Credential::Anonymous => "Anonymous",
        })
    }
}

/// A storage account: name, endpoints, credential.
///
/// Endpoints are host style (`https://acct.blob.core.windows.net`) or path style
/// (`http://127.0.0.1:10000/acct`); IPv6 hosts are in brackets.
#[derive(Clone, Debug)]
pub struct Account {
    pub(crate) name: String,
    pub(crate) blob: Option<Url>,
    pub(crate) queue: Option<Url>,
    pub(crate) credential: Credential,
}

impl Account {
    /// Creates an account from a connection string, including `UseDevelopmentStorage=true`.
    ///
    /// # Errors
    /// [`AccountError`] names the problem without quoting the string.
    pub fn from_connection_string(text: &str) -> Result<Self, AccountError> {
        let read = ConnectionString::parse(text)?;
        let credential = match &read.credential {
            connection_string::Credential::Key(key) => Credential::Key(key.clone()),
            connection_string::Credential::Sas(sas) => Credential::sas(sas)?,
            connection_string::Credential::Anonymous => Credential::Anonymous,
        };
        let endpoint = |service| read.endpoint(service);
        let (blob, queue) = (endpoint(Service::Blob), endpoint(Service::Queue));
        Account::new(&read.account, blob, queue, credential)
    }

    /// Creates an account of the public cloud from its name.
    ///
    /// # Errors
    /// [`AccountError::Endpoint`] for a name that does not form a URL.
    pub fn of_azure(name: &str, credential: Credential) -> Result<Self, AccountError> {
        let endpoint = |service| format!("https://{name}.{service}.core.windows.net");
        let (blob, queue) = (endpoint(Service::Blob), endpoint(Service::Queue));
        Account::new(name, Some(&blob), Some(&queue), credential)
    }

    /// Creates an account at the given endpoints. An empty `name` is read from an endpoint: the
    /// first part of the path, or else of the host. An endpoint may carry a SAS, which is the
    /// credential if there is no other.
    ///
    /// # Errors
    /// [`AccountError`] if an endpoint is not a URL, or none is given.
    pub fn new(
        name: &str,
        blob: Option<&str>,
        queue: Option<&str>,
        credential: Credential,
    ) -> Result<Self, AccountError> {
        let mut account = Account {
            name: name.to_owned(),
            blob: None,
            queue: None,
            credential,
        };
        account.blob = account.endpoint(Service::Blob, blob)?;
        account.queue = account.endpoint(Service::Queue, queue)?;
        let endpoint = account.blob.as_ref().or(account.queue.as_ref());
        let endpoint = endpoint.ok_or(AccountError::NoEndpoint)?;
        if account.name.is_empty() {
            account.name = name_of(endpoint).ok_or(AccountError::Name)?;
        }
        Ok(account)
    }

    /// Returns the same account with another credential.
    #[must_use]
    pub fn with_credential(self, credential: Credential) -> Self {
        Account { credential, ..self }
    }

    /// Returns the account's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the host of a service; `None` if the account has no such endpoint.
    pub fn host(&self, service: Service) -> Option<&str> {
        let endpoint = match service {
            Service::Blob => &self.blob,
            Service::Queue => &self.queue,
            _ => return None,
        };
        endpoint.as_ref()?.host_str()
    }

    /// Parses an endpoint. Removes its query, because URLs without credentials are built from it.
    fn endpoint(
        &mut self,
        service: Service,
        text: Option<&str>,
    ) -> Result<Option<Url>, AccountError> {
        let Some(text) = text else { return Ok(None) };
        let refused = || AccountError::Endpoint(service);
        let mut url: Url = text.trim().parse().map_err(|_| refused())?;
        let http = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
        if !http || !url.username().is_empty() || url.password().is_some() {
            return Err(refused());
        }
        if let (Some(query), Credential::Anonymous) = (url.query(), &self.credential) {
            self.credential = Credential::sas(query)?;
        }
        url.set_query(None);
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/').to_owned();
        url.set_path(&path);
        Ok(Some(url))
    }
}

fn name_of(endpoint: &Url) -> Option<String> {
    let path = endpoint.path().trim_matches('/');
    let name = if path.is_empty() {
        // Only the first label of a domain is an account name; an IP address has none.
        endpoint.domain()?.split('.').next()?
    } else {
        path.split('/').next()?
    };
    Some(name.to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "c2VjcmV0LWtleQ==";

    fn urls(account: &Account) -> (Option<&str>, Option<&str>) {
        (
            account.blob.as_ref().map(Url::as_str),
            account.queue.as_ref().map(Url::as_str),
        )
    }

    #[test]
    fn connection_strings() {
        let development = Account::from_connection_string("UseDevelopmentStorage=true").unwrap();
        assert_eq!(development.name(), "devstoreaccount1");
        assert_eq!(
            urls(&development),
            (
                Some("http://127.0.0.1:10000/devstoreaccount1"),
                Some("http://127.0.0.1:10001/devstoreaccount1")
            )
        );
        let text =
            format!("AccountName=acct;AccountKey={KEY};EndpointSuffix=core.chinacloudapi.cn");
        let cloud = Account::from_connection_string(&text).unwrap();
        assert_eq!(
            urls(&cloud),
            (
                Some("https://acct.blob.core.chinacloudapi.cn/"),
                Some("https://acct.queue.core.chinacloudapi.cn/")
            )
        );
        assert!(matches!(cloud.credential, Credential::Key(_)));
        let text =
            "BlobEndpoint=https://acct.blob.core.windows.net;SharedAccessSignature=?sv=1&sig=x";
        let sas = Account::from_connection_string(text).unwrap();
        assert_eq!((sas.name(), sas.queue.is_none()), ("acct", true));
        assert!(matches!(&sas.credential, Credential::Sas(text) if text == "sv=1&sig=x"));
    }

    #[test]
    fn names_come_from_endpoints() {
        let table = [
            ("https://acct.blob.core.windows.net", "acct"),
            ("http://127.0.0.1:10000/acct/", "acct"),
            ("http://[::1]:10000/acct", "acct"),
            ("https://storage.example.org/acct", "acct"),
        ];
        for (endpoint, name) in table {
            let account = Account::new("", Some(endpoint), None, Credential::Anonymous).unwrap();
            assert_eq!(account.name(), name, "{endpoint}");
        }
        let addressed = Account::new("", Some("http://[::1]:1"), None, Credential::Anonymous);
        assert_eq!(addressed.unwrap_err(), AccountError::Name);
    }

    #[test]
    fn endpoint_may_contain_the_sas() {
        let url = "https://acct.blob.core.windows.net/?sv=1&sig=secret";
        let account = Account::new("", Some(url), None, Credential::Anonymous).unwrap();
        assert_eq!(
            urls(&account).0,
            Some("https://acct.blob.core.windows.net/")
        );
        assert!(matches!(account.credential, Credential::Sas(_)));
        assert!(!format!("{account:?}").contains("secret"));
    }

    #[test]
    fn invalid_values_are_rejected() {
        let anonymous = |blob| Account::new("a", blob, None, Credential::Anonymous);
        assert_eq!(anonymous(None).unwrap_err(), AccountError::NoEndpoint);
        for bad in [
            "ftp://h",
            "h",
            "http://",
            "https://user:pass@h/",
            "data:text/plain,x",
        ] {
            let error = anonymous(Some(bad)).unwrap_err();
            assert_eq!(error, AccountError::Endpoint(Service::Blob), "{bad}");
        }
        assert_eq!(
            anonymous(Some("http://h/?x=1")).unwrap_err(),
            AccountError::Sas
        );
        assert_eq!(
            Credential::key("not base64").unwrap_err(),
            AccountError::Key
        );
        assert_eq!(Credential::sas("sv=1").unwrap_err(), AccountError::Sas);
    }
}
