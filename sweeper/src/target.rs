//! The blob that a command acts on, as `CONTAINER/BLOB` or URL.

use std::str::FromStr;

use smalt_protocol::uri::percent_decode;
use smalt_sleeve::port::{BlobId, Storage};

use crate::destination;

/// One blob, or a prefix of blob names, as the user writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The URL of a blob. Its query is dropped, because it may be a SAS.
    Url(String),
    /// A blob in the account that the state document names for the container, or else in the swept
    /// account.
    Path(BlobId),
}

/// The text is not `CONTAINER/BLOB` or a URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a blob; use CONTAINER/BLOB or the blob's URL")]
pub struct BadTarget(pub String);

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let bad = || BadTarget(smalt_sleeve::redact(text));
        if text.contains("://") {
            let plain = text.split(['?', '#']).next().unwrap_or_default();
            let web = plain.starts_with("http://") || plain.starts_with("https://");
            return web.then(|| Target::Url(plain.to_owned())).ok_or_else(bad);
        }
        let (container, name) = text.split_once('/').ok_or_else(bad)?;
        if !destination::is_container_name(container) || name.is_empty() {
            return Err(bad());
        }
        Ok(Target::Path(BlobId::new(container, name)))
    }
}

/// Returns the blob of a URL in this account; `None` if the URL is in another account.
pub(crate) fn within(storage: &dyn Storage, url: &str) -> Option<BlobId> {
    let probe = storage.blob_url(&BlobId::new("c", "b"));
    let root = probe.strip_suffix("c/b")?;
    let plain = url.split('?').next().unwrap_or_default();
    let (container, name) = plain.strip_prefix(root)?.split_once('/')?;
    let decode = |text: &str| percent_decode(text).ok();
    let blob = BlobId::new(decode(container)?, decode(name)?);
    (!blob.name.is_empty()).then_some(blob)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blobs_are_named_by_path_or_url() {
        let path = |c: &str, n: &str| Some(Target::Path(BlobId::new(c, n)));
        let url = |text: &str| Some(Target::Url(text.to_owned()));
        for (text, expected) in [
            ("events/a/b", path("events", "a/b")),
            (
                "https://a.blob.core.windows.net/c/b",
                url("https://a.blob.core.windows.net/c/b"),
            ),
            ("https://a/c/b?sig=secret#x", url("https://a/c/b")),
            ("events", None),
            ("events/", None),
            ("Events/a", None),
            ("ftp://a/c/b", None),
            ("", None),
        ] {
            assert_eq!(text.parse::<Target>().ok(), expected, "{text}");
        }
        let error = "x://a?sig=SECRET".parse::<Target>().unwrap_err();
        assert!(!error.to_string().contains("SECRET"));
    }
}
