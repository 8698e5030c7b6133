//! The URL of a copy source: `https://account.blob.core.windows.net/c/b?snapshot=...&sig=...`, in
//! path style, or in the form of before 2012-02-12, `/account/c/b`; or any other of http and https.

use smalt_protocol::limits::COPY_SOURCE_URL_BYTES_MAX;
use smalt_protocol::{ApiVersion, ErrorCode, Service, StorageError, uri};

use crate::call::Call;
use crate::config::Config;
use crate::target::{self, Address, Resource, Target};

const HEADER: &str = "x-ms-copy-source";
/// Since this version, a source is a URL with scheme and host. "Version 2012-02-12".
const IS_WHOLE: ApiVersion = ApiVersion::V2012_02_12;

/// A parsed copy source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceUrl {
    secure: bool,
    /// `None` in the form without scheme and host.
    authority: Option<String>,
    path: String,
    raw_query: String,
    query: Vec<(String, String)>,
}

impl SourceUrl {
    /// Parses the header.
    ///
    /// # Errors
    /// 400 `MissingRequiredHeader`, 400 `InvalidHeaderValue` for a string that is not a URL, or is
    /// too long.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        let text = call.required_header(HEADER)?;
        Self::parse(text)
            .filter(|url| url.authority.is_some() || call.version < IS_WHOLE)
            .ok_or_else(|| StorageError::invalid_header(HEADER, text))
    }

    fn parse(text: &str) -> Option<Self> {
        if text.len() > COPY_SOURCE_URL_BYTES_MAX {
            return None;
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, text),
        };
        let secure = match scheme.as_deref() {
            Some("https") => true,
            Some("http") => false,
            None if text.starts_with('/') => false,
            _ => return None,
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_at(place.find('/')?);
        uri::percent_decode(path).ok()?;
        let authority = scheme.is_some().then(|| authority.to_owned());
        // Requires a host and forbids user information.
        let is_host = |authority: &str| !authority.is_empty() && !authority.contains('@');
        authority.as_deref().is_none_or(is_host).then_some(())?;
        Some(SourceUrl {
            secure,
            authority,
            path: path.to_owned(),
            raw_query: query.to_owned(),
            query: uri::parse_query(query).ok()?,
        })
    }

    /// Whether the scheme is https.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// Whether the URL has a shared access signature.
    pub fn is_signed(&self) -> bool {
        self.query.iter().any(|(name, _)| name == "sig")
    }

    /// Returns the decoded query.
    pub fn query(&self) -> &[(String, String)] {
        &self.query
    }

    /// Returns the URL as sent; `None` without scheme and host.
    pub fn whole(&self) -> Option<String> {
        let scheme = if self.secure { "https" } else { "http" };
        let mark = if self.raw_query.is_empty() { "" } else { "?" };
        let authority = self.authority.as_ref()?;
        let (path, query) = (&self.path, &self.raw_query);
        Some(format!("{scheme}://{authority}{path}{mark}{query}"))
    }

    /// Whether the host is that of the caller's own request.
    pub fn is_of_host_of(&self, call: &Call) -> bool {
        let own_host = call.origin.split_once("://").map_or("", |(_, host)| host);
        match &self.authority {
            Some(authority) => authority.eq_ignore_ascii_case(own_host),
            None => true,
        }
    }

    /// Returns the URL as stored and shown: as sent, without the signature (recorded).
    pub fn shown(&self, origin: &str) -> String {
        let base = match &self.authority {
            Some(authority) => {
                let scheme = if self.secure { "https" } else { "http" };
                format!("{scheme}://{authority}")
            }
            None => origin.to_owned(),
        };
        let is_signature = |parameter: &&str| {
            let name = parameter.split('=').next().unwrap_or_default();
            uri::percent_decode(name).is_ok_and(|name| name.eq_ignore_ascii_case("sig"))
        };
        let parameters = self.raw_query.split('&');
        let query: Vec<&str> = parameters.filter(|p| !is_signature(p)).collect();
        let query = query.join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{base}{}{mark}{query}", self.path)
    }

    /// Returns the blob of this emulator that the URL names; `None` if it is outside. A URL is
    /// inside if its host has a configured account, is the host of the caller's request, or has the
    /// emulator's usual port.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue` for a URL of this emulator that is not a blob's.
    pub fn resolve(&self, call: &Call, config: &Config) -> Result<Option<Target>, StorageError> {
        let address = Address {
            host: self.authority.as_deref().unwrap_or_default(),
            raw_path: &self.path,
            socket: self.is_of_host_of(call).then_some(Service::Blob),
            on_data_lake_socket: false,
            names_container: false,
            has_data_lake_shape: false,
            host_style: config.host_style,
        };
        let is_account = |name: &str| config.account(name).is_some();
        match target::resolve(&address, is_account) {
            Ok(target) if target.service != Service::Blob || !is_account(&target.account) => {
                Ok(None)
            }
            Ok(target) if matches!(target.resource, Resource::Blob(..)) => Ok(Some(target)),
            Ok(_) => Err(StorageError::invalid_header(HEADER, &self.shown(""))),
            Err(error) if error.code() == ErrorCode::InvalidUri => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_are_parsed_and_shown_without_signature() {
        for (text, shown) in [
            ("https://a.blob.x/c/b", Some("https://a.blob.x/c/b")),
            (
                "HTTP://127.0.0.1:10000/a/c/d%20e?sv=1&sig=s%3D&snapshot=2020-01-01T00%3A00%3A00Z",
                Some("http://127.0.0.1:10000/a/c/d%20e?sv=1&snapshot=2020-01-01T00%3A00%3A00Z"),
            ),
            ("https://a.blob.x/c/b?%73ig=s", Some("https://a.blob.x/c/b")),
            ("/a/c/b", Some("http://self/a/c/b")),
            ("ftp://a/c/b", None),
            ("http:///c/b", None),
            ("http://a", None),
            ("http://user:password@a/c/b", None),
            ("a/c/b", None),
            ("http://a/c/%zz", None),
            ("http://a/c/b?x=%FF", None),
            ("", None),
        ] {
            let url = SourceUrl::parse(text).map(|url| url.shown("http://self"));
            assert_eq!(url.as_deref(), shown, "{text}");
        }
        let long = format!("http://a/{}", "b".repeat(COPY_SOURCE_URL_BYTES_MAX));
        assert_eq!(SourceUrl::parse(&long), None);
    }

    proptest! {
        /// A URL is rejected, or stored as sent and shown without its signature.
        #[test]
        fn shown_urls_carry_no_signature(
            host in "[a-z]{1,8}(\\.[a-z]{1,8}){0,3}(:[0-9]{1,5})?",
            path in "(/|%2[fF]|%|[a-z]|\\PC){0,12}",
            query in "(&|=|sv|%73ig|[a-z]|%20){0,12}",
            secret in "[A-Za-z0-9]{20}",
        ) {
            let sent = format!("http://{host}/{path}?{query}&sig={secret}");
            if let Some(url) = SourceUrl::parse(&sent) {
                prop_assert!(!url.shown("http://self").contains(&secret));
                if !sent.contains('#') && !path.contains('?') {
                    prop_assert!(url.is_signed());
                    prop_assert_eq!(url.whole(), Some(sent));
                }
            }
        }
    }
}
