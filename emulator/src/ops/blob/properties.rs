//! The headers that describe a blob: shared by Get Blob and Get Blob Properties.
//!
//! Sources: "Get Blob", "Get Blob Properties"; recordings for the version that introduced each
//! header.

use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_TYPE, ETAG, LAST_MODIFIED,
};
use http::{HeaderMap, HeaderName, HeaderValue};
use smalt_protocol::{ApiVersion, Timestamp};

use super::{immutability, last_access};
use crate::config::DefaultTier;
use crate::ops::dfs;
use crate::records::{BlobKind, BlobRecord, ContentHeaders, CopyRecord};
use crate::reply::{Reply, set};
use crate::rules::encryption::Encryption;
use crate::rules::tier as tiers;
use crate::rules::{page_tier, sequence_number};

/// Lease state and duration. "Version 2012-02-12".
const LEASES: ApiVersion = ApiVersion::V2012_02_12;
/// The MD5 of the whole blob in the response to a range. "Version 2016-05-31".
const WHOLE_MD5: ApiVersion = ApiVersion::V2016_05_31;
/// `x-ms-server-encrypted` and `x-ms-request-server-encrypted`. "Version 2015-12-11".
const ENCRYPTED: ApiVersion = ApiVersion::V2015_12_11;
/// Access tiers. "Version 2017-04-17".
const TIERS: ApiVersion = ApiVersion::V2017_04_17;
/// `x-ms-creation-time`. "Version 2017-11-09".
const CREATION_TIME: ApiVersion = ApiVersion::V2017_11_09;
/// Only recorded responses of this version show a tag count of zero, and the account's default tier
/// for blobs of every kind.
const SHOWS_DEFAULTS: ApiVersion = ApiVersion::V2018_11_09;
/// Versions of blobs: documented for 2019-12-12, recorded in 2019-10-10.
const VERSIONS: ApiVersion = ApiVersion::V2019_10_10;
/// Index tags. "Version 2019-12-12".
const TAGS: ApiVersion = ApiVersion::V2019_12_12;
/// Last access time. "Version 2020-02-10".
pub const LAST_ACCESS: ApiVersion = ApiVersion::V2020_02_10;
/// Expiry. "Set Blob Expiry": since 2020-02-10; recorded in 2019-12-12.
const EXPIRES: ApiVersion = ApiVersion::V2019_12_12;
/// Whether an append blob is sealed. "Version 2019-12-12".
const SEALS: ApiVersion = ApiVersion::V2019_12_12;
/// `x-ms-rehydrate-priority` in responses; recordings of 2019-02-02 lack it.
const PRIORITY: ApiVersion = ApiVersion::V2019_12_12;

/// Owner, group and permissions of a path. "Version 2020-06-12".
const OWNERS: ApiVersion = ApiVersion::V2020_06_12;
/// Whether a path is a file or a directory. "Version 2020-10-02".
pub const PATH_TYPES: ApiVersion = ApiVersion::V2020_10_02;

const VERSION_ID: &str = "x-ms-version-id";
/// Header capacity of a full response: enough for most blobs.
const HEADERS: usize = 32;

/// What a response shows of a blob.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Version of the request.
    pub version: ApiVersion,
    /// Whether it is the base blob: a snapshot has no lease.
    pub is_base: bool,
    /// Whether the response has only a range: its MD5 has another header.
    pub is_partial: bool,
    /// Whether the tier is shown: only by Get Blob Properties.
    pub with_tier: bool,
    /// Time of the response.
    pub now: Timestamp,
    /// Whether the account tracks the last access.
    pub with_access: bool,
    /// The tier of block blobs without an explicit one.
    pub default_tier: DefaultTier,
}

/// Returns a reply with the headers that describe a blob.
pub fn describe(status: u16, blob: &BlobRecord, shown: Shown) -> Reply {
    let mut reply = Reply::new(status);
    reply.headers.reserve(HEADERS);
    describe_in(&mut reply.headers, blob, shown);
    reply.metadata(&blob.shown_metadata())
}

fn describe_in(headers: &mut HeaderMap, blob: &BlobRecord, shown: Shown) {
    headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    set(headers, ETAG, blob.etag.quoted());
    set(headers, LAST_MODIFIED, blob.last_modified.rfc1123());
    fixed(headers, "x-ms-blob-type", blob.kind.as_str());
    content(headers, &blob.headers, shown);
    if shown.version >= ENCRYPTED {
        fixed(headers, "x-ms-server-encrypted", "true");
    }
    if let Some((name, value)) = blob.encryption.as_ref().map(Encryption::header) {
        set(headers, HeaderName::from_static(name), value);
    }
    if shown.version >= CREATION_TIME {
        let name = HeaderName::from_static("x-ms-creation-time");
        set(headers, name, blob.created.rfc1123());
    }
    if let (Some(id), true) = (blob.version_id, shown.version >= VERSIONS) {
        let name = HeaderName::from_static(VERSION_ID);
        set(headers, name, id.iso_ticks());
        if !blob.is_previous {
            fixed(headers, "x-ms-is-current-version", "true");
        }
    }
    if shown.is_base {
        lease(headers, blob, shown.version);
    }
    if blob.kind == BlobKind::Append {
        append(headers, blob, shown.version);
    }
    if shown.version == SHOWS_DEFAULTS || (shown.version >= TAGS && !blob.tags.is_empty()) {
        let name = HeaderName::from_static("x-ms-tag-count");
        headers.insert(name, HeaderValue::from(blob.tags.len()));
    }
    if shown.with_tier && shown.version >= TIERS {
        tier(headers, blob, shown);
    }
    if shown.with_access && shown.version >= LAST_ACCESS {
        let name = HeaderName::from_static("x-ms-last-access-time");
        set(headers, name, last_access::of(blob).rfc1123());
    }
    if shown.version >= immutability::SHOWN_SINCE {
        protection(headers, blob);
    }
    if let Some(expires) = blob.expires.filter(|_| shown.version >= EXPIRES) {
        let name = HeaderName::from_static("x-ms-expiry-time");
        set(headers, name, expires.rfc1123());
    }
    if let Some(record) = &blob.copy
        && shown.version >= LEASES
    {
        copy(headers, record);
    }
    if blob.posix.is_some() {
        path(headers, blob, shown.version);
    }
    pages(headers, blob);
}

/// Adds what a blob is as a path of a hierarchical namespace.
fn path(headers: &mut HeaderMap, blob: &BlobRecord, version: ApiVersion) {
    if version >= OWNERS {
        let posix = blob.posix();
        for (name, value) in [
            ("x-ms-owner", posix.owner.clone()),
            ("x-ms-group", posix.group.clone()),
            ("x-ms-permissions", posix.permissions()),
        ] {
            set(headers, HeaderName::from_static(name), value);
        }
    }
    if version >= PATH_TYPES {
        fixed(
            headers,
            "x-ms-resource-type",
            dfs::resource_type(blob.directory),
        );
    }
    if let Some(context) = &blob.encryption_context {
        let name = HeaderName::from_static("x-ms-encryption-context");
        set(headers, name, context.as_str());
    }
}

/// Adds the id of the version that a write created.
pub fn with_version(reply: Reply, blob: &BlobRecord, version: ApiVersion) -> Reply {
    let id = blob.version_id.filter(|_| version >= VERSIONS);
    reply.maybe(VERSION_ID, id.map(Timestamp::iso_ticks))
}

/// Adds the id of the version that a write of content or metadata created, and its encryption.
pub fn written(reply: Reply, blob: &BlobRecord, version: ApiVersion) -> Reply {
    let reply = with_version(reply, blob, version);
    encrypted(reply, blob.encryption.as_ref(), version)
}

/// Adds the encryption of a write of content or metadata: `x-ms-request-server-encrypted` and the
/// client's own key or scope.
pub fn encrypted(reply: Reply, encryption: Option<&Encryption>, version: ApiVersion) -> Reply {
    let is_told = (version >= ENCRYPTED).then_some("true");
    let reply = reply.maybe("x-ms-request-server-encrypted", is_told);
    match encryption.map(Encryption::header) {
        Some((name, value)) => reply.header(name, value),
        None => reply,
    }
}

/// Adds the headers that only page blobs have.
fn pages(headers: &mut HeaderMap, blob: &BlobRecord) {
    if blob.kind == BlobKind::Page {
        let name = HeaderName::from_static(sequence_number::NAME);
        headers.insert(name, HeaderValue::from(blob.sequence_number));
    }
    if let Some(incremental) = &blob.incremental {
        fixed(headers, "x-ms-incremental-copy", "true");
        let name = HeaderName::from_static("x-ms-copy-destination-snapshot");
        set(headers, name, incremental.snapshot.iso_ticks());
    }
}

fn content(headers: &mut HeaderMap, content: &ContentHeaders, shown: Shown) {
    let md5 = if shown.is_partial {
        "x-ms-blob-content-md5"
    } else {
        "content-md5"
    };
    let has_md5 = !shown.is_partial || shown.version >= WHOLE_MD5;
    for (name, value) in [
        (CONTENT_TYPE, &content.content_type),
        (CONTENT_ENCODING, &content.content_encoding),
        (CONTENT_LANGUAGE, &content.content_language),
        (CACHE_CONTROL, &content.cache_control),
        (CONTENT_DISPOSITION, &content.content_disposition),
        (
            HeaderName::from_static(md5),
            if has_md5 { &content.content_md5 } else { &None },
        ),
    ] {
        if let Some(value) = value {
            set(headers, name, value.as_str());
        }
    }
}

fn lease(headers: &mut HeaderMap, blob: &BlobRecord, version: ApiVersion) {
    fixed(headers, "x-ms-lease-status", blob.lease.status_str());
    if version < LEASES {
        return;
    }
    fixed(headers, "x-ms-lease-state", blob.lease.state_str());
    if let Some(duration) = blob.lease.duration_str() {
        fixed(headers, "x-ms-lease-duration", duration);
    }
}

fn protection(headers: &mut HeaderMap, blob: &BlobRecord) {
    if let Some(policy) = blob.immutability {
        let name = HeaderName::from_static(immutability::UNTIL);
        set(headers, name, policy.until.rfc1123());
        fixed(headers, immutability::MODE, policy.mode());
    }
    if let Some(hold) = blob.legal_hold {
        let hold = if hold { "true" } else { "false" };
        fixed(headers, immutability::HOLD, hold);
    }
}

fn append(headers: &mut HeaderMap, blob: &BlobRecord, version: ApiVersion) {
    let name = HeaderName::from_static("x-ms-blob-committed-block-count");
    headers.insert(name, HeaderValue::from(blob.content.blocks()));
    if blob.sealed && version >= SEALS {
        fixed(headers, "x-ms-blob-sealed", "true");
    }
}

/// Returns the tier shown for a blob without an explicit one. Append blobs have none, and page
/// blobs only in premium accounts, except in the one version that shows defaults for all.
pub fn inferred_tier(
    kind: BlobKind,
    length: u64,
    default: DefaultTier,
    version: ApiVersion,
) -> Option<&'static str> {
    match (kind, default) {
        (BlobKind::Block, default) => Some(default.as_str()),
        (BlobKind::Page, DefaultTier::Premium) => Some(page_tier::inferred(length)),
        (_, default) if version == SHOWS_DEFAULTS => Some(default.as_str()),
        _ => None,
    }
}

fn tier(headers: &mut HeaderMap, blob: &BlobRecord, shown: Shown) {
    let access = &blob.access;
    let name = HeaderName::from_static("x-ms-access-tier");
    let inferred = || inferred_tier(blob.kind, blob.length, shown.default_tier, shown.version);
    if let Some(tier) = &access.tier {
        set(headers, name, tier.as_str());
        if tier == tiers::SMART {
            let place = tiers::smart(last_access::of(blob), shown.now);
            fixed(headers, "x-ms-smart-access-tier", place);
        }
    } else if let Some(tier) = inferred() {
        headers.insert(name, HeaderValue::from_static(tier));
        fixed(headers, "x-ms-access-tier-inferred", "true");
    }
    if let Some(changed) = access.changed {
        let name = HeaderName::from_static("x-ms-access-tier-change-time");
        set(headers, name, changed.rfc1123());
    }
    if let Some(rehydration) = &access.rehydration {
        let name = HeaderName::from_static("x-ms-archive-status");
        set(headers, name, rehydration.archive_status());
        if shown.version >= PRIORITY {
            let name = HeaderName::from_static("x-ms-rehydrate-priority");
            set(headers, name, rehydration.priority.as_str());
        }
    }
}

fn copy(headers: &mut HeaderMap, copy: &CopyRecord) {
    let (done, of) = copy.progress;
    let texts = [
        ("x-ms-copy-id", Some(copy.id.clone())),
        ("x-ms-copy-source", Some(copy.source.clone())),
        ("x-ms-copy-status", Some(copy.status.as_str().to_owned())),
        ("x-ms-copy-progress", Some(format!("{done}/{of}"))),
        (
            "x-ms-copy-completion-time",
            copy.completed.map(Timestamp::rfc1123),
        ),
        ("x-ms-copy-status-description", copy.description.clone()),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            set(headers, HeaderName::from_static(name), text);
        }
    }
}

fn fixed(headers: &mut HeaderMap, name: &'static str, value: &'static str) {
    headers.insert(
        HeaderName::from_static(name),
        HeaderValue::from_static(value),
    );
}
