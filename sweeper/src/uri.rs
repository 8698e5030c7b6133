//! Parses the URIs of containers in the state document, and of the document itself.

use smalt_protocol::uri::percent_decode;

/// A parsed container URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerUri {
    /// Account name: the host's first label, or the first path segment of an IP-style URI.
    pub account: String,
    /// URI of the service, without container and query.
    pub endpoint: String,
    /// Container name.
    pub container: String,
    /// The query, a SAS, still percent-encoded. Empty if there is none.
    pub sas: String,
}

/// The URI of a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobUri {
    /// The service and the container.
    pub service: ContainerUri,
    /// Name of the blob.
    pub blob: String,
}

/// Parses `https://acct.blob.core.windows.net/events?sig=..` or
/// `http://127.0.0.1:10000/devstoreaccount1/events`.
pub fn parse(uri: &str) -> Option<ContainerUri> {
    let (container, blob) = split(uri)?;
    blob.is_empty().then_some(container)
}

/// Parses `https://acct.blob.core.windows.net/jobs/TimeToLiveBlobs?sig=..`.
pub fn parse_blob(uri: &str) -> Option<BlobUri> {
    let (service, blob) = split(uri)?;
    let blob = percent_decode(&blob).ok().filter(|blob| !blob.is_empty())?;
    Some(BlobUri { service, blob })
}

/// Splits off the name of the blob, still percent-encoded; empty for the URI of a container.
fn split(uri: &str) -> Option<(ContainerUri, String)> {
    let (base, sas) = uri.trim().split_once('?').unwrap_or((uri.trim(), ""));
    let (scheme, rest) = base.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let (host, path) = rest.split_once('/')?;
    let mut segments = path.split('/').filter(|s| !s.is_empty());
    let bare_host = host.rsplit_once(':').map_or(host, |(bare, _)| bare);
    let path_style = bare_host == "localhost"
        || bare_host.starts_with('[')
        || bare_host.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let (account, endpoint) = if path_style {
        let account = segments.next()?;
        (account, format!("{scheme}://{host}/{account}"))
    } else {
        (bare_host.split('.').next()?, format!("{scheme}://{host}"))
    };
    let container = segments.next()?.to_owned();
    let blob = segments.collect::<Vec<_>>().join("/");
    let container = ContainerUri {
        account: account.to_owned(),
        endpoint,
        container,
        sas: sas.to_owned(),
    };
    (!account.is_empty()).then_some((container, blob))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_styles_are_parsed() {
        for (uri, expected) in [
            (
                "https://acct.blob.core.windows.net/events?sr=c&sig=x",
                Some((
                    "acct",
                    "https://acct.blob.core.windows.net",
                    "events",
                    "sr=c&sig=x",
                )),
            ),
            (
                "http://127.0.0.1:10000/devstoreaccount1/events/",
                Some((
                    "devstoreaccount1",
                    "http://127.0.0.1:10000/devstoreaccount1",
                    "events",
                    "",
                )),
            ),
            (
                "http://localhost:10000/a/events",
                Some(("a", "http://localhost:10000/a", "events", "")),
            ),
            ("https://acct.blob.core.windows.net/events/blob", None),
            ("https://acct.blob.core.windows.net", None),
            ("ftp://acct/events", None),
            ("events", None),
        ] {
            let parsed = parse(uri);
            let shown = parsed.as_ref().map(|u| {
                (
                    u.account.as_str(),
                    u.endpoint.as_str(),
                    u.container.as_str(),
                    u.sas.as_str(),
                )
            });
            assert_eq!(shown, expected, "{uri}");
        }
    }

    /// S15: the state document by its URI with a SAS.
    #[test]
    fn s15_a_blob_has_a_container_and_a_name() {
        let at = "https://acct.blob.core.windows.net";
        for (path, expected) in [
            ("/jobs/TimeToLiveBlobs", Some(("jobs", "TimeToLiveBlobs"))),
            ("/jobs/a%20b/c?sr=b&sig=x", Some(("jobs", "a b/c"))),
            ("/jobs", None),
            ("/jobs/%ff", None),
        ] {
            let parsed = parse_blob(&format!("{at}{path}"));
            let parsed = parsed.as_ref();
            let shown = parsed.map(|u| (u.service.container.as_str(), u.blob.as_str()));
            assert_eq!(shown, expected, "{path}");
            assert!(parsed.is_none_or(|u| u.service.account == "acct"), "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(uri in "(https?://)?.{0,40}") {
            let _ = parse(&uri);
        }
    }
}
