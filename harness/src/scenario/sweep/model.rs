//! The content of storage, derived from the history alone: every version of every blob.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_protocol::metadata::FOLDER_MARKER;
use smalt_protocol::uri::percent_decode;

use super::extras::TAG;
use crate::scenario::history::{self, Answer, Event, Exchange};

/// Account, container, name.
pub(super) type Key = (String, String, String);

/// One version of a blob.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub etag: String,
    /// Metadata, with names in lower case.
    pub metadata: BTreeMap<String, String>,
    pub content: Bytes,
    /// When it was created.
    pub made: Timestamp,
    /// Index in the history.
    pub number: usize,
    /// Whether it has the index tag of the rule, and since when.
    pub tagged: (bool, Timestamp),
    /// Whether its owner wrote it.
    pub by_owner: bool,
    /// Whether it is a copy that was not seen to be complete.
    pub pending: bool,
    /// Whether it is a copy that was seen to have failed.
    pub broken: bool,
}

impl Version {
    /// Returns a metadata value.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.metadata.get(name).map(String::as_str)
    }

    /// Returns when it expires; `None` without a valid expiry, and for a directory.
    pub(super) fn due(&self) -> Option<Timestamp> {
        if self.value(FOLDER_MARKER).is_some() {
            return None;
        }
        let text = self.value("timetolive")?;
        if let Some(days) = text.strip_prefix('P').and_then(|t| t.strip_suffix('D')) {
            let days: u64 = days.parse().ok()?;
            return Some(self.made.floor_s().plus_s(days * 86_400));
        }
        let zoned = text.len() == 20 && text.ends_with('Z') || text.len() == 25;
        if zoned {
            Timestamp::parse_iso(text)
        } else {
            None
        }
    }
}

/// The effect of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Put,
    /// Its metadata was replaced.
    Tagged,
    /// Its index tags were replaced, which makes no new version.
    Retagged,
    /// Its properties were replaced, which removes its MD5.
    Described,
    Copied,
    Deleted,
}

#[derive(Debug, Default)]
pub(super) struct Model {
    /// The current version of each blob.
    pub blobs: BTreeMap<Key, Version>,
    /// ETags of versions without an MD5.
    without_md5: BTreeSet<String>,
}

/// Returns the kind of write that a request on a blob is.
pub(super) fn deed(exchange: &Exchange) -> Option<Deed> {
    let (_, container, name) = exchange.segments();
    if container.is_empty() || name.is_empty() {
        return None;
    }
    match (exchange.method.as_str(), exchange.parameter("comp")) {
        ("DELETE", None) => Some(Deed::Deleted),
        ("PUT", Some("metadata")) => Some(Deed::Tagged),
        ("PUT", Some("tags")) => Some(Deed::Retagged),
        ("PUT", Some("properties")) => Some(Deed::Described),
        ("PUT", None) if exchange.header("x-ms-copy-source").is_some() => Some(Deed::Copied),
        ("PUT", None) => Some(Deed::Put),
        _ => None,
    }
}

/// Returns the blob of a request.
pub(super) fn key(exchange: &Exchange) -> Key {
    exchange.segments()
}

/// Returns the container and name to which `DeadBlobContainer` moves a blob.
pub(super) fn resolve(value: &str, name: &str) -> Option<(String, String)> {
    let (container, rest) = value.split_once('/').unwrap_or((value, ""));
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if container.len() < 3 || !container.chars().all(legal) {
        return None;
    }
    let name = match rest {
        exact if !exact.is_empty() && !exact.ends_with('/') => exact.to_owned(),
        prefix => format!("{prefix}{name}"),
    };
    Some((container.to_owned(), name))
}

impl Model {
    /// Whether the version with this ETag, without its quotes, has no MD5.
    pub(super) fn lacks_md5(&self, etag: &str) -> bool {
        let mut lacking = self.without_md5.iter();
        lacking.any(|lacking| lacking.trim_matches('"') == etag)
    }

    /// Updates a pending copy from the properties in an answer.
    pub(super) fn looked(&mut self, key: &Key, answer: &Answer) {
        let Some(version) = self.blobs.get_mut(key) else {
            return;
        };
        version.etag = answer.header("etag").unwrap_or_default().to_owned();
        match answer.header("x-ms-copy-status") {
            Some("success") => version.pending = false,
            Some("failed" | "aborted") => {
                (version.pending, version.broken) = (false, true);
                version.content = Bytes::new();
            }
            _ => {}
        }
    }

    /// Removes the blobs of a container that was deleted, and returns them.
    pub(super) fn emptied(&mut self, container: &Key) -> Vec<Version> {
        let in_it = |key: &&Key| (&key.0, &key.1) == (&container.0, &container.1);
        let gone: Vec<Key> = self.blobs.keys().filter(in_it).cloned().collect();
        gone.iter()
            .filter_map(|key| self.blobs.remove(key))
            .collect()
    }

    /// Applies a successful write.
    pub(super) fn apply(
        &mut self,
        number: usize,
        event: &Event,
        exchange: &Exchange,
        answer: &Answer,
    ) {
        let (Some(deed), key) = (deed(exchange), key(exchange)) else {
            return;
        };
        let given = given_metadata(exchange);
        let etag = answer.header("etag").unwrap_or_default().to_owned();
        let there = self.blobs.get(&key);
        let tagged = match deed {
            Deed::Tagged | Deed::Described => there.map(|version| version.tagged),
            _ => None,
        };
        let (metadata, content) = match deed {
            Deed::Deleted => {
                self.blobs.remove(&key);
                return;
            }
            Deed::Retagged => {
                let text = String::from_utf8_lossy(&exchange.body);
                let tagged = history::element(&text, "Value") == Some(TAG.1);
                if let Some(version) = self.blobs.get_mut(&key) {
                    version.tagged = (tagged, event.at);
                }
                return;
            }
            Deed::Described => {
                self.without_md5.insert(etag.clone());
                let there = there.map(|v| (v.metadata.clone(), v.content.clone()));
                there.unwrap_or_default()
            }
            Deed::Put => (given, exchange.body.clone()),
            Deed::Tagged => {
                if there.is_some_and(|v| self.without_md5.contains(&v.etag)) {
                    self.without_md5.insert(etag.clone());
                }
                let content = there.map(|v| v.content.clone());
                (given, content.unwrap_or_default())
            }
            Deed::Copied => {
                let source = source_key(exchange).and_then(|key| self.blobs.get(&key));
                let (metadata, content) = source
                    .map(|v| (v.metadata.clone(), v.content.clone()))
                    .unwrap_or_default();
                (if given.is_empty() { metadata } else { given }, content)
            }
        };
        let version = Version {
            etag,
            metadata,
            content,
            made: event.at,
            number,
            tagged: tagged.unwrap_or((false, event.at)),
            by_owner: event.actor == "owner",
            pending: answer.header("x-ms-copy-status") == Some("pending"),
            broken: false,
        };
        self.blobs.insert(key, version);
    }
}

/// Returns the metadata in a request's headers.
fn given_metadata(exchange: &Exchange) -> BTreeMap<String, String> {
    let named = exchange.headers.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix("x-ms-meta-")?;
        Some((name.to_owned(), value.clone()))
    });
    named.collect()
}

/// Returns the source of a copy.
pub(super) fn source_key(exchange: &Exchange) -> Option<Key> {
    let url: http::Uri = exchange.header("x-ms-copy-source")?.parse().ok()?;
    let mut parts = url.path().trim_start_matches('/').splitn(3, '/');
    let mut next = || percent_decode(parts.next().unwrap_or_default()).ok();
    Some((next()?, next()?, next()?))
}
