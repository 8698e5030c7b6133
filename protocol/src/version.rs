//! Versions of the service: the `x-ms-version` header, `api-version` and `sv` of a SAS.
//!
//! Source of the list: Microsoft's pages *Versioning for Azure Storage* and *Previous Azure Storage
//! service versions*, and the service versions that its client libraries name.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A service version. Versions are dates and compare in order of publication.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApiVersion(u32);

macro_rules! published {
    ($($(#[doc = $doc:literal])* $name:ident $date:literal,)*) => {
        impl ApiVersion {
            $($(#[doc = $doc])* pub const $name: ApiVersion = ApiVersion($date);)*
        }

        /// Every published version, oldest first.
        pub const PUBLISHED: &[ApiVersion] = &[$(ApiVersion::$name,)*];
    };
}

published! {
    /// The first public version.
    V2008_10_27 20081027,
    /// Copy Blob, block list types.
    V2009_04_14 20090414,
    /// Root container, SAS on blobs, a single condition header.
    V2009_07_17 20090717,
    /// Page blobs, snapshots, leases, today's Shared Key string, metadata names as C# identifiers.
    V2009_09_19 20090919,
    /// Quoted ETags, `bytes=a-`, default version, 64 KiB messages, Update Message.
    V2011_08_18 20110818,
    /// Asynchronous copy, lease durations and ids, container leases, automatic MD5, `sv` in a SAS.
    V2012_02_12 20120212,
    /// Several conditions on reads, CORS, content disposition, 416 for an empty blob.
    V2013_08_15 20130815,
    /// `api-version` overrides the protocol version of a SAS.
    V2014_02_14 20140214,
    /// Append blobs, the service's name in a SAS resource, empty Content-Length line when 0.
    V2015_02_21 20150221,
    /// Account SAS, `sip` and `spr`.
    V2015_04_05 20150405,
    /// Page range differences between snapshots.
    V2015_07_08 20150708,
    /// Encryption headers, JSON only for tables.
    V2015_12_11 20151211,
    /// 100 MiB blocks, Put Message returns the message, empty `x-ms-` headers are signed.
    V2016_05_31 20160531,
    /// Tiers, `If-Match: *` fails on an uncommitted blob, continuation token in `Marker`.
    V2017_04_17 20170417,
    /// Soft delete, `x-ms-error-code`, unlimited time to live of messages.
    V2017_07_29 20170729,
    /// Bearer tokens, creation time.
    V2017_11_09 20171109,
    /// Put Block From URL, account information, synchronous copy.
    V2018_03_28 20180328,
    /// Preview of hierarchical namespaces.
    V2018_06_17 20180617,
    /// User delegation SAS, page and append blocks from URL, batch.
    V2018_11_09 20181109,
    /// CRC64, customer-provided keys, echo of `x-ms-client-request-id`.
    V2019_02_02 20190202,
    /// No change to blobs, queues or tables that is emulated.
    V2019_07_07 20190707,
    /// Versions and tags in preview.
    V2019_10_10 20191010,
    /// Versions, tags, query, 4,000 MiB blocks, undelete of containers.
    V2019_12_12 20191212,
    /// Directory SAS, expiry of files, permanent delete.
    V2020_02_10 20200210,
    /// Put Blob From URL, batch on a container.
    V2020_04_08 20200408,
    /// Immutability policies and legal holds.
    V2020_06_12 20200612,
    /// No change to blobs, queues or tables that is emulated.
    V2020_08_04 20200804,
    /// Listing of page ranges by pages, listing of deleted blobs with versions.
    V2020_10_02 20201002,
    /// Encryption scope in a SAS.
    V2020_12_06 20201206,
    /// Listings percent-encode names that XML cannot represent.
    V2021_02_12 20210212,
    /// No change to blobs, queues or tables that is emulated.
    V2021_04_10 20210410,
    /// No change to blobs, queues or tables that is emulated.
    V2021_06_08 20210608,
    /// No change to blobs, queues or tables that is emulated.
    V2021_08_06 20210806,
    /// No change to blobs, queues or tables that is emulated.
    V2021_10_04 20211004,
    /// Tier Cold.
    V2021_12_02 20211202,
    /// 100 MiB append blocks.
    V2022_11_02 20221102,
    /// No change to blobs, queues or tables that is emulated.
    V2023_01_03 20230103,
    /// No change to blobs, queues or tables that is emulated.
    V2023_05_03 20230503,
    /// No change to blobs, queues or tables that is emulated.
    V2023_08_03 20230803,
    /// No change to blobs, queues or tables that is emulated.
    V2023_11_03 20231103,
    /// No change to blobs, queues or tables that is emulated.
    V2024_02_04 20240204,
    /// No change to blobs, queues or tables that is emulated.
    V2024_05_04 20240504,
    /// No change to blobs, queues or tables that is emulated.
    V2024_08_04 20240804,
    /// No change to blobs, queues or tables that is emulated.
    V2024_11_04 20241104,
    /// Structured bodies.
    V2025_01_05 20250105,
    /// No change to blobs, queues or tables that is emulated.
    V2025_05_05 20250505,
    /// User delegation SAS bound to a user.
    V2025_07_05 20250705,
    /// No change to blobs, queues or tables that is emulated.
    V2025_11_05 20251105,
    /// `startFrom` of a listing, conditions on tags.
    V2026_02_06 20260206,
    /// Request headers and parameters in a SAS (`srh`, `srq`), user delegation for queues.
    V2026_04_06 20260406,
    /// Tier Smart.
    V2026_06_06 20260606,
    /// CRC64 on more responses.
    V2026_10_06 20261006,
}

/// The result of resolving a version string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The version whose behaviour applies.
    pub version: ApiVersion,
    /// Whether the request asked for a version newer than every published one; `version` is then
    /// the newest.
    pub newer_than_known: bool,
}

/// The string is not a date, or no version has that date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown version of the service")]
pub struct UnknownVersion;

impl ApiVersion {
    /// The newest version of [`PUBLISHED`].
    pub const LATEST: ApiVersion = ApiVersion::V2026_10_06;

    /// Parses `yyyy-mm-dd`. Checks only the syntax, not whether the version exists. Returns `None`
    /// for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        let mut date = 0;
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'0'..=b'9' => date = date * 10 + u32::from(byte - b'0'),
                _ if at == 4 || at == 7 => {}
                _ => return None,
            }
        }
        let (month, day) = (date / 100 % 100, date % 100);
        ((1..=12).contains(&month) && (1..=31).contains(&day)).then_some(ApiVersion(date))
    }

    /// Returns the version that serves a request for `text`: a published version itself, or the
    /// newest version, with a flag, for a later date.
    ///
    /// # Errors
    /// [`UnknownVersion`] for a string that is not a date or a date without a version.
    pub fn resolve(text: &str) -> Result<Resolved, UnknownVersion> {
        let asked = Self::parse(text).ok_or(UnknownVersion)?;
        if asked > Self::LATEST {
            return Ok(Resolved {
                version: Self::LATEST,
                newer_than_known: true,
            });
        }
        match PUBLISHED.binary_search(&asked) {
            Ok(_) => Ok(Resolved {
                version: asked,
                newer_than_known: false,
            }),
            Err(_) => Err(UnknownVersion),
        }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The number consists of the version's digits. Every answer includes a version, so this
        // avoids `format!`.
        let mut text = *b"0000-00-00";
        let mut left = self.0;
        for place in [9, 8, 6, 5, 3, 2, 1, 0] {
            text[place] += (left % 10) as u8;
            left /= 10;
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_list_is_sorted_and_ends_with_the_latest() {
        assert!(PUBLISHED.is_sorted_by(|a, b| a < b));
        assert_eq!(PUBLISHED.last(), Some(&ApiVersion::LATEST));
        for version in PUBLISHED {
            assert_eq!(ApiVersion::parse(&version.to_string()), Some(*version));
            let resolved = Resolved {
                version: *version,
                newer_than_known: false,
            };
            assert_eq!(ApiVersion::resolve(&version.to_string()), Ok(resolved));
        }
    }

    #[test]
    fn later_versions_resolve_to_the_latest_and_unknown_ones_are_rejected() {
        let newest = Resolved {
            version: ApiVersion::LATEST,
            newer_than_known: true,
        };
        for (text, expected) in [
            ("2026-10-07", Ok(newest)),
            ("2027-03-07", Ok(newest)),
            ("9999-12-31", Ok(newest)),
            ("2018-03-29", Err(UnknownVersion)),
            ("2000-01-01", Err(UnknownVersion)),
            ("2027-13-01", Err(UnknownVersion)),
            ("2027-00-01", Err(UnknownVersion)),
            ("2027-1-001", Err(UnknownVersion)),
            ("2027/01/01", Err(UnknownVersion)),
            ("2018-03-28 ", Err(UnknownVersion)),
            ("12.0.0b1", Err(UnknownVersion)),
            ("", Err(UnknownVersion)),
            ("２０２７-01", Err(UnknownVersion)),
        ] {
            assert_eq!(ApiVersion::resolve(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_rejected(text in ".{0,12}") {
            if let Some(version) = ApiVersion::parse(&text) {
                prop_assert_eq!(version.to_string(), text);
            }
        }
    }
}
