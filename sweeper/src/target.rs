//! What a command is about: one blob, by `CONTAINER/BLOB` or by its URL.

use std::str::FromStr;

use smalt_protocol::uri::percent_decode;
use smalt_sleeve::port::{BlobId, Storage};

use crate::destination;

/// One blob, or the beginning of names, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The URL of a blob; a query, where a SAS may stand, is dropped.
    Url(String),
    /// A blob of the swept account, or of the one that the state document names for the container.
    Path(BlobId),
}

/// Text that names no blob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no blob; write CONTAINER/BLOB or the blob's URL")]
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

/// The blob that a URL means in this account; `None` when it is another account's.
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
