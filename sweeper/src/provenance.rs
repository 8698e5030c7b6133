//! Metadata of a moved blob: what is kept, what is removed, and how our own copy is recognized.
//!
//! The copy loses `TimeToLive` and `DeadBlobContainer` (S9, DS27) and records its origin.
//! `SourceUri` and `SourceETag` tell a later worker that the copy already exists, if the service's
//! own record of the copy agrees. These names are reserved: values of the source under them are
//! replaced.

use smalt_protocol::Timestamp;
use smalt_protocol::uri::percent_decode;
use smalt_sleeve::port::{BlobProperties, Metadata, Tag, metadata_value};

/// Maximum size of a blob's metadata in bytes, names and values (Set Blob Metadata).
pub const METADATA_BYTES_MAX: usize = 8 * 1_024;
/// Metadata name of the source's URL, without credentials.
pub const SOURCE_URI: &str = "SourceUri";
/// Metadata name of the source's ETag, without quotes.
pub const SOURCE_ETAG: &str = "SourceETag";
/// Metadata name of the source's Last-Modified.
pub const SOURCE_LAST_MODIFIED: &str = "SourceLastModified";
/// Metadata name of the due time.
pub const DELETED_DUE: &str = "DeletedDue";
/// Metadata name of the page that moved the blob: `cycle/container/fence`.
pub const SWEEP_ID: &str = "SweepId";
/// Metadata name of the time to live as its owner wrote it.
pub const ORIGINAL_TTL: &str = "OriginalTimeToLive";
/// Metadata name of the destination as its owner wrote it.
pub const ORIGINAL_DBC: &str = "OriginalDeadBlobContainer";
/// All metadata names that describe a copy's history.
pub const RESERVED: [&str; 7] = [
    SOURCE_URI,
    SOURCE_ETAG,
    SOURCE_LAST_MODIFIED,
    DELETED_DUE,
    SWEEP_ID,
    ORIGINAL_TTL,
    ORIGINAL_DBC,
];

/// The version of the blob that a copy is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    uri: String,
    etag: String,
}

impl Origin {
    /// Creates the origin for version `etag` of the blob at `url`.
    pub fn new(url: &str, etag: &Tag) -> Self {
        Origin {
            uri: header_safe(url.split('?').next().unwrap_or_default()),
            etag: header_safe(etag.0.trim_matches('"')),
        }
    }

    /// Returns the ETag as the ending of a blob name.
    pub fn suffix(&self) -> String {
        let kept = self.etag.chars().filter(char::is_ascii_alphanumeric);
        format!("~{}", kept.collect::<String>())
    }

    /// Returns whether the metadata claim a copy of exactly this version.
    pub fn made(&self, copy: &Metadata) -> bool {
        let etag = metadata_value(copy, SOURCE_ETAG);
        let uri = metadata_value(copy, SOURCE_URI);
        // A URI that did not fit into the metadata was omitted; then the ETag alone decides.
        etag == Some(self.etag.as_str()) && uri.is_none_or(|uri| uri == self.uri)
    }

    /// Returns whether a blob is a copy of exactly this version, by its metadata and by the
    /// service's record of the copy. Forged metadata alone never cause a source to be deleted.
    pub fn made_blob(&self, there: &BlobProperties) -> bool {
        self.made(&there.metadata) && is_recorded(there, &self.uri)
    }

    /// Returns whether the metadata claim a copy of another version of this blob.
    pub fn made_earlier(&self, copy: &Metadata) -> bool {
        let uri = metadata_value(copy, SOURCE_URI);
        uri == Some(self.uri.as_str()) && !self.made(copy)
    }
}

/// Returns the metadata of the copy. The last `optional` values are dropped first if they do not
/// all fit; the user's own are never dropped (D1). `None` if not even the ETag fits.
pub fn metadata(
    source: &Metadata,
    dropped: &[&str],
    origin: &Origin,
    optional: &[(&str, String)],
) -> Option<Metadata> {
    let mut copy: Metadata = source
        .iter()
        .filter(|(name, _)| !dropped.iter().any(|d| d.eq_ignore_ascii_case(name)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let needed = [
        (SOURCE_ETAG, origin.etag.clone()),
        (SOURCE_URI, origin.uri.clone()),
    ];
    copy.retain(|name, _| !is_reserved(name));
    let mut size: usize = copy
        .iter()
        .map(|(name, value)| name.len() + value.len())
        .sum();
    for (name, value) in needed.iter().chain(optional) {
        let grown = size + name.len() + value.len();
        if grown <= METADATA_BYTES_MAX {
            size = grown;
            copy.insert((*name).to_owned(), header_safe(value));
        } else if *name == SOURCE_ETAG {
            return None;
        }
    }
    Some(copy)
}

fn is_reserved(name: &str) -> bool {
    RESERVED
        .iter()
        .any(|reserved| reserved.eq_ignore_ascii_case(name))
}

/// The history recorded in a dead copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// URL of the source blob.
    pub source_uri: String,
    /// Cycle that moved the blob, if recorded.
    pub cycle: Option<u64>,
    /// The time to live set by the owner.
    pub time_to_live: Option<String>,
    /// Last-Modified of the source version, if recorded.
    pub changed: Option<Timestamp>,
}

impl History {
    /// Reads the history. `None` if no sweep moved the blob, or its source is not recorded.
    pub fn read(copy: &Metadata) -> Option<Self> {
        let said = |name| metadata_value(copy, name).map(str::to_owned);
        said(SOURCE_ETAG)?;
        let page = said(SWEEP_ID).unwrap_or_default();
        Some(History {
            source_uri: said(SOURCE_URI)?,
            cycle: page.split('/').next().and_then(|cycle| cycle.parse().ok()),
            time_to_live: said(ORIGINAL_TTL),
            changed: said(SOURCE_LAST_MODIFIED).and_then(|at| Timestamp::parse_iso(&at)),
        })
    }
}

/// Returns the metadata of a restored blob: its own, without the history and the expired time to
/// live, and with its original destination for the next time.
pub fn restored(copy: &Metadata, ttl_key: &str, dbc_key: &str) -> Metadata {
    let own = copy
        .iter()
        .filter(|(name, _)| !is_reserved(name) && !ttl_key.eq_ignore_ascii_case(name));
    let mut own: Metadata = own.map(|(n, v)| (n.clone(), v.clone())).collect();
    if let Some(place) = metadata_value(copy, ORIGINAL_DBC) {
        own.insert(dbc_key.to_owned(), place.to_owned());
    }
    own
}

/// Returns whether the service recorded that the blob was copied from this URL. Metadata prove
/// nothing, because anyone who can write the blob can write them. Services escape URLs differently.
pub(crate) fn is_recorded(there: &BlobProperties, url: &str) -> bool {
    let plain = |url: &str| {
        let bare = url.split('?').next().unwrap_or_default();
        percent_decode(bare).unwrap_or_else(|_| bare.to_owned())
    };
    let source = there.copy.as_ref().and_then(|copy| copy.source.as_deref());
    source.is_some_and(|source| plain(source) == plain(url))
}

/// Returns the URL of a source as written to metadata.
pub(crate) fn as_recorded(url: &str) -> String {
    header_safe(url)
}

/// Percent-encodes everything except visible ASCII, because metadata travel in headers.
fn header_safe(value: &str) -> String {
    let mut safe = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_graphic() || byte == b' ' {
            safe.push(char::from(byte));
        } else {
            safe.push_str(&format!("%{byte:02X}"));
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn origin() -> Origin {
        Origin::new(
            "https://acct/events/é?sig=secret",
            &Tag("\"0x1A\"".to_owned()),
        )
    }

    fn of(pairs: &[(&str, &str)]) -> Metadata {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    const DROPPED: [&str; 2] = ["TimeToLive", "DeadBlobContainer"];

    /// S9, DS27: time to live and destination are removed, other metadata stay, provenance is
    /// added. `restored` reverts this: the owner's metadata come back without the time to live.
    #[test]
    fn history_is_read_and_removed() {
        let own = |pairs: &[(&str, &str)]| -> Metadata {
            let pairs = pairs.iter();
            pairs
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect()
        };
        let source = own(&[
            ("Owner", "me"),
            ("TimeToLive", "P7D"),
            ("DeadBlobContainer", "dbc"),
        ]);
        let origin = Origin::new("https://a/c/b?sig=x", &Tag("\"0x1\"".to_owned()));
        let optional = [
            (SWEEP_ID, "184/events/17".to_owned()),
            (ORIGINAL_TTL, "P7D".to_owned()),
            (ORIGINAL_DBC, "dbc".to_owned()),
        ];
        let dropped = ["TimeToLive", "DeadBlobContainer"];
        let copy = metadata(&source, &dropped, &origin, &optional).unwrap();
        let history = History::read(&copy).unwrap();
        assert_eq!(history.source_uri, "https://a/c/b");
        assert_eq!(
            (history.cycle, history.time_to_live.as_deref()),
            (Some(184), Some("P7D"))
        );
        let back = restored(&copy, "TimeToLive", "DeadBlobContainer");
        assert_eq!(back, own(&[("Owner", "me"), ("DeadBlobContainer", "dbc")]));
        assert_eq!(History::read(&source), None);
    }

    #[test]
    fn copy_records_its_origin_and_has_no_ttl() {
        let source = of(&[
            ("timetolive", "x"),
            ("DeadBlobContainer", "y"),
            ("Owner", "Ann"),
        ]);
        let due = [(DELETED_DUE, "2026".to_owned())];
        let copy = metadata(&source, &DROPPED, &origin(), &due).unwrap();
        let expected = of(&[
            ("DeletedDue", "2026"),
            ("Owner", "Ann"),
            ("SourceETag", "0x1A"),
            ("SourceUri", "https://acct/events/%C3%A9"),
        ]);
        assert_eq!(copy, expected);
        assert!(origin().made(&copy));
        assert_eq!(origin().suffix(), "~0x1A");
        let newer = Origin::new("https://acct/events/é", &Tag("0x1B".to_owned()));
        assert!(!newer.made(&copy) && newer.made_earlier(&copy));
        assert!(!origin().made(&Metadata::new()));
    }

    #[test]
    fn oversized_metadata_drops_only_optional_values() {
        let long = "x".repeat(METADATA_BYTES_MAX - 40);
        let source = of(&[("big", &long)]);
        let copy = metadata(&source, &DROPPED, &origin(), &[(SWEEP_ID, "s".repeat(99))]).unwrap();
        assert_eq!(copy.keys().collect::<Vec<_>>(), ["SourceETag", "big"]);
        assert!(origin().made(&copy));
        let full = of(&[("big", &"x".repeat(METADATA_BYTES_MAX - 3))]);
        assert_eq!(metadata(&full, &DROPPED, &origin(), &[]), None);
    }

    proptest! {
        #[test]
        fn copy_always_fits_and_is_recognized(
            values in proptest::collection::btree_map("[a-z]{1,8}", "[ -~]{0,900}", 0..12),
            extra in ".{0,200}",
        ) {
            if let Some(copy) = metadata(&values, &DROPPED, &origin(), &[(SWEEP_ID, extra)]) {
                prop_assert!(origin().made(&copy));
                prop_assert!(values.iter().all(|(k, v)| copy.get(k) == Some(v)));
            }
        }
    }
}
