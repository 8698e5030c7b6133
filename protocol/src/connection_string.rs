//! Connection strings, and the well-known account of the emulators.
//!
//! Source: *Configure Azure Storage connection strings*; *Use the Azurite emulator* for the
//! emulators' account and ports.

use std::fmt;

use crate::service::Service;
use crate::signing::AccountKey;

/// The name of the well-known emulator account.
pub const EMULATOR_ACCOUNT_NAME: &str = "devstoreaccount1";
/// The public key of the emulator account, in Base64. It protects nothing.
pub const EMULATOR_ACCOUNT_KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const DEFAULT_SUFFIX: &str = "core.windows.net";

/// Returns the default port of a service, the same as Azurite's.
pub const fn emulator_port(service: Service) -> u16 {
    match service {
        Service::Blob => 10000,
        Service::Queue => 10001,
        Service::Table => 10002,
    }
}

/// How requests are authorised.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// Shared Key, signed with the account's key.
    Key(AccountKey),
    /// A SAS: its query, without the leading `?`.
    Sas(String),
    /// No authorisation, which only public containers accept.
    Anonymous,
}

/// A parsed connection string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionString {
    /// The account's name; empty when the string has only endpoints and a SAS.
    pub account: String,
    /// How requests are authorised.
    pub credential: Credential,
    /// Base URL of the blob service, without a trailing slash.
    pub blob_endpoint: Option<String>,
    /// Base URL of the queue service, without a trailing slash.
    pub queue_endpoint: Option<String>,
    /// Base URL of the table service, without a trailing slash.
    pub table_endpoint: Option<String>,
}

/// Why a connection string cannot be used. No variant holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionStringError {
    /// The string contains no setting.
    #[error("the connection string is empty")]
    Empty,
    /// A part has no `=`. Holds its position, from 1, and not its text, which may be a piece of a
    /// key.
    #[error("part {0} of the connection string is not of the form Name=Value")]
    NotASetting(usize),
    /// A setting occurs twice.
    #[error("{0} is given twice")]
    Duplicate(&'static str),
    /// `AccountKey` is not valid Base64.
    #[error("AccountKey is not valid Base64")]
    Key,
    /// `DefaultEndpointsProtocol` is neither `http` nor `https`.
    #[error("DefaultEndpointsProtocol must be http or https")]
    Protocol,
    /// An endpoint is not an HTTP URL.
    #[error("{0} is not an http or https URL")]
    Endpoint(&'static str),
    /// Neither an account nor an endpoint says where the service is.
    #[error("the connection string names neither an account nor an endpoint")]
    NoAccount,
    /// `AccountKey` is present without `AccountName`.
    #[error("AccountKey needs AccountName")]
    KeyWithoutAccount,
}

const SETTINGS: [&str; 9] = [
    "DefaultEndpointsProtocol",
    "AccountName",
    "AccountKey",
    "BlobEndpoint",
    "QueueEndpoint",
    "TableEndpoint",
    "EndpointSuffix",
    "SharedAccessSignature",
    "UseDevelopmentStorage",
];

impl ConnectionString {
    /// Parses a connection string. Ignores unknown settings and compares names without regard to
    /// case.
    ///
    /// # Errors
    /// [`ConnectionStringError`] says which part is invalid.
    pub fn parse(text: &str) -> Result<Self, ConnectionStringError> {
        let settings = Settings::read(text)?;
        if settings
            .get("UseDevelopmentStorage")
            .is_some_and(|v| v.eq_ignore_ascii_case("true"))
        {
            return Ok(Self::emulator());
        }
        let account = settings.get("AccountName").unwrap_or("").to_owned();
        let credential = settings.credential()?;
        if account.is_empty() && matches!(credential, Credential::Key(_)) {
            return Err(ConnectionStringError::KeyWithoutAccount);
        }
        let parsed = ConnectionString {
            blob_endpoint: settings.endpoint(Service::Blob, "BlobEndpoint")?,
            queue_endpoint: settings.endpoint(Service::Queue, "QueueEndpoint")?,
            table_endpoint: settings.endpoint(Service::Table, "TableEndpoint")?,
            account,
            credential,
        };
        if Service::ALL
            .iter()
            .all(|service| parsed.endpoint(*service).is_none())
        {
            return Err(ConnectionStringError::NoAccount);
        }
        Ok(parsed)
    }

    /// Returns the settings of `UseDevelopmentStorage=true`: the emulator account on its default
    /// ports.
    pub fn emulator() -> Self {
        let endpoint = |service| {
            let port = emulator_port(service);
            Some(format!("http://127.0.0.1:{port}/{EMULATOR_ACCOUNT_NAME}"))
        };
        let key = AccountKey::parse(EMULATOR_ACCOUNT_KEY);
        ConnectionString {
            account: EMULATOR_ACCOUNT_NAME.to_owned(),
            credential: key.map_or(Credential::Anonymous, Credential::Key),
            blob_endpoint: endpoint(Service::Blob),
            queue_endpoint: endpoint(Service::Queue),
            table_endpoint: endpoint(Service::Table),
        }
    }

    /// Returns the base URL of a service, without a trailing slash.
    pub fn endpoint(&self, service: Service) -> Option<&str> {
        match service {
            Service::Blob => self.blob_endpoint.as_deref(),
            Service::Queue => self.queue_endpoint.as_deref(),
            Service::Table => self.table_endpoint.as_deref(),
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Credential::Key(_) => "Key(redacted)",
            Credential::Sas(_) => "Sas(redacted)",
            Credential::Anonymous => "Anonymous",
        })
    }
}

/// The known settings, by their canonical names.
struct Settings<'a>(Vec<(&'static str, &'a str)>);

impl<'a> Settings<'a> {
    fn read(text: &'a str) -> Result<Self, ConnectionStringError> {
        let mut settings = Settings(Vec::new());
        let mut is_empty = true;
        for (at, part) in text.split(';').enumerate() {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            is_empty = false;
            let (name, value) = part
                .split_once('=')
                .ok_or(ConnectionStringError::NotASetting(at + 1))?;
            let known = SETTINGS
                .iter()
                .find(|known| known.eq_ignore_ascii_case(name.trim()));
            let Some(known) = known else { continue };
            if settings.get(known).is_some() {
                return Err(ConnectionStringError::Duplicate(known));
            }
            settings.0.push((known, value.trim()));
        }
        if is_empty {
            Err(ConnectionStringError::Empty)
        } else {
            Ok(settings)
        }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value)
    }

    /// Returns the credential; a key takes precedence over a SAS.
    fn credential(&self) -> Result<Credential, ConnectionStringError> {
        if let Some(key) = self.get("AccountKey") {
            let key = AccountKey::parse(key).ok_or(ConnectionStringError::Key)?;
            return Ok(Credential::Key(key));
        }
        Ok(match self.get("SharedAccessSignature") {
            Some(sas) => Credential::Sas(sas.trim_start_matches('?').to_owned()),
            None => Credential::Anonymous,
        })
    }

    fn endpoint(
        &self,
        service: Service,
        name: &'static str,
    ) -> Result<Option<String>, ConnectionStringError> {
        if let Some(url) = self.get(name) {
            let rest = url
                .strip_prefix("https://")
                .or_else(|| url.strip_prefix("http://"));
            let has_host = rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
            return if has_host && !url.contains(char::is_whitespace) {
                Ok(Some(url.trim_end_matches('/').to_owned()))
            } else {
                Err(ConnectionStringError::Endpoint(name))
            };
        }
        let protocol = self.get("DefaultEndpointsProtocol").unwrap_or("https");
        if !matches!(protocol, "http" | "https") {
            return Err(ConnectionStringError::Protocol);
        }
        let suffix = self.get("EndpointSuffix").unwrap_or(DEFAULT_SUFFIX);
        Ok(self
            .get("AccountName")
            .filter(|account| !account.is_empty())
            .map(|account| format!("{protocol}://{account}.{service}.{suffix}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parses_the_usual_forms() {
        let text = format!(
            "DefaultEndpointsProtocol=http;AccountName=acct;AccountKey={EMULATOR_ACCOUNT_KEY};\
             QueueEndpoint=http://localhost:1/acct/;EndpointSuffix=example.org;"
        );
        let read = ConnectionString::parse(&text).unwrap();
        assert_eq!(read.account, "acct");
        assert_eq!(
            read.endpoint(Service::Blob),
            Some("http://acct.blob.example.org")
        );
        assert_eq!(
            read.endpoint(Service::Queue),
            Some("http://localhost:1/acct")
        );
        let Credential::Key(key) = &read.credential else {
            panic!("a key was given")
        };
        assert_eq!(key.as_bytes().len(), 64);
        let sas = "BlobEndpoint=https://a.example;SharedAccessSignature=?sv=1&sig=a=b";
        let read = ConnectionString::parse(sas).unwrap();
        assert_eq!(read.credential, Credential::Sas("sv=1&sig=a=b".to_owned()));
        assert_eq!(read.endpoint(Service::Queue), None);
        let emulator = ConnectionString::parse("usedevelopmentstorage=TRUE").unwrap();
        assert_eq!(emulator, ConnectionString::emulator());
        assert!(matches!(emulator.credential, Credential::Key(_)));
        assert_eq!(
            emulator.endpoint(Service::Table),
            Some("http://127.0.0.1:10002/devstoreaccount1")
        );
        let plain = ConnectionString::parse("AccountName=acct").unwrap();
        assert_eq!(
            plain.endpoint(Service::Table),
            Some("https://acct.table.core.windows.net")
        );
        assert_eq!(plain.credential, Credential::Anonymous);
    }

    #[test]
    fn malformed_strings_are_rejected_with_a_reason() {
        use ConnectionStringError as E;
        for (text, expected) in [
            ("", E::Empty),
            (" ; ;", E::Empty),
            ("AccountName=a;nonsense", E::NotASetting(2)),
            ("AccountName=a;accountname=b", E::Duplicate("AccountName")),
            ("AccountName=a;AccountKey=***", E::Key),
            ("AccountName=a;DefaultEndpointsProtocol=ftp", E::Protocol),
            ("BlobEndpoint=ftp://x", E::Endpoint("BlobEndpoint")),
            ("BlobEndpoint=http:///x", E::Endpoint("BlobEndpoint")),
            ("Other=1", E::NoAccount),
            (
                "AccountKey=AAAA;BlobEndpoint=http://x",
                E::KeyWithoutAccount,
            ),
        ] {
            assert_eq!(ConnectionString::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn errors_contain_no_secret() {
        for text in [
            format!("AccountName=acct;AccountKey={EMULATOR_ACCOUNT_KEY}"),
            "AccountName=acct;SharedAccessSignature=sv=1&sig=c2VjcmV0".to_owned(),
        ] {
            let shown = format!("{:?}", ConnectionString::parse(&text).unwrap());
            assert!(
                !shown.contains("Eby8") && !shown.contains("c2VjcmV0"),
                "{shown}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in "(AccountName=|AccountKey=|;|.){0,20}") {
            let _ = ConnectionString::parse(&text);
        }
    }
}
