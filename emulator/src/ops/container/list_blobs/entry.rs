//! One item of a listing, by version.
//!
//! Source: "List Blobs"; recordings for what each version shows.

use smalt_protocol::xml::{
    BlobContent, BlobCopy, BlobEntry, BlobLease, BlobRights, ListBlobsDocument,
};
use smalt_protocol::{ApiVersion, Timestamp};

use super::marker::Position;
use super::walk::Item;
use crate::call::Call;
use crate::config::DefaultTier;
use crate::ops::blob::last_access;
use crate::ops::blob::properties::{LAST_ACCESS, PATH_TYPES, inferred_tier};
use crate::ops::dfs;
use crate::ops::listing::includes;
use crate::records::{BlobKind, BlobRecord, CopyRecord, Deleted, Rehydration};
use crate::rules::acl::Posix;
use crate::rules::encryption::Encryption;

/// Since this version, content disposition is listed. "List Blobs".
const SHOWS_DISPOSITION: ApiVersion = ApiVersion::V2013_08_15;
/// Since this version, the encryption of a blob is listed. Same page.
const SHOWS_ENCRYPTED: ApiVersion = ApiVersion::V2015_12_11;
/// Since this version, the tier of a blob is listed. Same page.
const SHOWS_TIER: ApiVersion = ApiVersion::V2017_04_17;
/// Since this version, the creation time is listed. Same page.
const SHOWS_CREATION: ApiVersion = ApiVersion::V2017_11_09;
/// The only version that lists a tag count of zero, as recorded.
const SHOWS_NO_TAGS: ApiVersion = ApiVersion::V2018_11_09;
/// Since this version, an empty CRC and the tier of a snapshot are listed, as recorded.
const SHOWS_CRC64: ApiVersion = ApiVersion::V2019_02_02;
/// Since this version, versions are listed, as recorded.
const SHOWS_VERSIONS: ApiVersion = ApiVersion::V2019_10_10;
/// Since this version, the expiry time is listed. "Set Blob Expiry".
const SHOWS_EXPIRY: ApiVersion = ApiVersion::V2020_02_10;
/// Since this version, the tag count, the seal of an append blob, and an empty `OrMetadata` are
/// listed, as recorded.
const SHOWS_TAGS: ApiVersion = ApiVersion::V2019_12_12;

/// The parts of an item that version and request show.
#[derive(Clone, Copy, Debug)]
pub struct ShownParts {
    version: ApiVersion,
    now: Timestamp,
    metadata: bool,
    tags: bool,
    copy: bool,
    default_tier: DefaultTier,
    last_access: bool,
    immutability_policy: bool,
    legal_hold: bool,
    permissions: bool,
}

impl ShownParts {
    /// Returns the parts that a listing shows.
    pub fn of(call: &Call, now: Timestamp) -> Self {
        ShownParts {
            version: call.version,
            now,
            metadata: includes(call, "metadata"),
            tags: includes(call, "tags"),
            copy: includes(call, "copy"),
            default_tier: call.settings.default_tier,
            immutability_policy: includes(call, "immutabilitypolicy"),
            legal_hold: includes(call, "legalhold"),
            permissions: includes(call, "permissions"),
            last_access: call.settings.last_access_tracking && call.version >= LAST_ACCESS,
        }
    }

    /// Adds an item to the document.
    pub fn push(&self, list: &mut ListBlobsDocument, place: &Position, item: &Item) {
        match item {
            Item::Blob(blob)
            | Item::Deleted(blob)
            | Item::VersionsOnly(blob)
            | Item::Snapshot(blob)
            | Item::Version(blob) => self.push_committed(list, place, blob, item),
            Item::Uncommitted => list.push_blob(&self.uncommitted(&place.name)),
            Item::Gone => {}
        }
    }

    fn push_committed(
        &self,
        list: &mut ListBlobsDocument,
        place: &Position,
        blob: &BlobRecord,
        item: &Item,
    ) {
        let metadata = blob.shown_metadata();
        let is_snapshot = matches!(item, Item::Snapshot(_));
        let snapshot = is_snapshot.then(|| place.time.iso_ticks());
        let version_id = blob.version_id.filter(|_| self.since(SHOWS_VERSIONS));
        let version_id = version_id.map(Timestamp::iso_ticks);
        let copy = blob.copy.as_ref().filter(|_| self.copy);
        let progress = copy.map_or_else(String::new, progress);
        let incremental = blob.incremental.as_ref();
        let incremental = incremental.map(|copy| copy.snapshot.iso_ticks());
        let shows_tier = !is_snapshot || self.since(SHOWS_CRC64);
        let tier = self.tier(blob).filter(|_| shows_tier);
        let rehydration = blob.access.rehydration.as_ref().filter(|_| tier.is_some());
        let archive_status = rehydration.map(Rehydration::archive_status);
        let policy = blob.immutability.filter(|_| self.immutability_policy);
        let owned = blob.posix.as_deref().filter(|_| self.permissions);
        let texts = owned.map(|posix| (posix.permissions(), posix.acl_text()));
        let is_path = blob.posix.is_some() && self.since(PATH_TYPES);
        let tags = u32::try_from(blob.tags.len()).unwrap_or(u32::MAX);
        let is_counted = self.version == SHOWS_NO_TAGS || (tags > 0 && self.since(SHOWS_TAGS));
        let entry = BlobEntry {
            name: &place.name,
            snapshot: snapshot.as_deref(),
            version_id: version_id.as_deref(),
            is_current_version: version_id.is_some() && !blob.is_previous,
            has_versions_only: matches!(item, Item::VersionsOnly(_)),
            is_deleted: blob.deleted.is_some(),
            creation_time: self.since(SHOWS_CREATION).then_some(blob.created),
            last_modified: Some(blob.last_modified),
            etag: Some(blob.etag),
            rights: owned.zip(texts.as_ref()).map(rights),
            resource_type: is_path.then(|| dfs::resource_type(blob.directory)),
            content_length: blob.length,
            content: Some(self.content(blob)),
            last_access_time: self.last_access.then(|| last_access::of(blob)),
            blob_type: blob.kind.as_str(),
            access_tier: tier,
            access_tier_inferred: tier.is_some() && blob.access.tier.is_none(),
            archive_status: archive_status.as_deref(),
            rehydrate_priority: rehydration.map(|rehydration| rehydration.priority.as_str()),
            access_tier_change_time: blob.access.changed.filter(|_| tier.is_some()),
            lease: match item {
                Item::Blob(_) | Item::VersionsOnly(_) => lease(blob, self.now),
                Item::Deleted(_) => DELETED_LEASE,
                _ => BlobLease::default(),
            },
            copy: copy.map(|copy| copy_entry(copy, &progress, incremental.as_deref())),
            server_encrypted: self.since(SHOWS_ENCRYPTED).then_some(true),
            key_sha256: blob.encryption.as_ref().and_then(Encryption::key_sha256),
            encryption_scope: blob.encryption.as_ref().and_then(Encryption::scope),
            expiry_time: blob.expires.filter(|_| self.since(SHOWS_EXPIRY)),
            is_sealed: blob.sealed && self.since(SHOWS_TAGS),
            tag_count: is_counted.then_some(tags),
            deletion: deletion(blob, self.now),
            immutability_policy: policy.map(|policy| (policy.until, policy.mode())),
            legal_hold: blob.legal_hold.filter(|_| self.legal_hold),
            metadata: self.metadata.then_some(metadata.as_ref()),
            tags: (self.tags && tags > 0).then_some(blob.tags.as_slice()),
            has_replication_metadata: self.since(SHOWS_TAGS),
            sequence_number: (blob.kind == BlobKind::Page).then_some(blob.sequence_number),
            ..BlobEntry::default()
        };
        list.push_blob(&of_deleted_path(entry, place, item));
    }

    /// Returns the entry of a blob with only uncommitted blocks.
    fn uncommitted<'a>(&self, name: &'a str) -> BlobEntry<'a> {
        let shows_tier = self.since(SHOWS_TIER);
        BlobEntry {
            name,
            blob_type: BlobKind::Block.as_str(),
            access_tier: shows_tier.then_some(self.default_tier.as_str()),
            access_tier_inferred: shows_tier,
            lease: BlobLease {
                status: Some("unlocked"),
                state: Some("available"),
                duration: None,
            },
            server_encrypted: self.since(SHOWS_ENCRYPTED).then_some(false),
            tag_count: (self.version == SHOWS_NO_TAGS).then_some(0),
            has_replication_metadata: self.since(SHOWS_TAGS),
            ..BlobEntry::default()
        }
    }

    fn content<'a>(&self, blob: &'a BlobRecord) -> BlobContent<'a> {
        fn text(value: &Option<String>) -> &str {
            value.as_deref().unwrap_or_default()
        }
        let headers = &blob.headers;
        let disposition = text(&headers.content_disposition);
        BlobContent {
            content_type: text(&headers.content_type),
            encoding: text(&headers.content_encoding),
            language: text(&headers.content_language),
            crc64: self.since(SHOWS_CRC64).then_some(""),
            md5: text(&headers.content_md5),
            cache_control: text(&headers.cache_control),
            disposition: self.since(SHOWS_DISPOSITION).then_some(disposition),
        }
    }

    /// Returns the explicit tier, or the inferred one.
    fn tier<'a>(&self, blob: &'a BlobRecord) -> Option<&'a str> {
        let set = blob.access.tier.as_deref();
        let inferred = || inferred_tier(blob.kind, blob.length, self.default_tier, self.version);
        let shown = set.or_else(inferred);
        shown.filter(|_| self.since(SHOWS_TIER))
    }

    fn since(&self, first: ApiVersion) -> bool {
        self.version >= first
    }
}

/// The CRC of no bytes, as recorded of deleted files.
const CRC64_EMPTY: &str = "AAAAAAAAAAA=";

fn progress(copy: &CopyRecord) -> String {
    format!("{}/{}", copy.progress.0, copy.progress.1)
}

/// Returns the entry of a path that was deleted in a hierarchical container, as recorded: with the
/// id of its deletion, and without a lease. Other entries stay as they are.
fn of_deleted_path<'a>(entry: BlobEntry<'a>, place: &Position, item: &Item) -> BlobEntry<'a> {
    let Item::Deleted(blob) = item else {
        return entry;
    };
    if blob.posix.is_none() {
        return entry;
    }
    BlobEntry {
        deletion_id: Some(place.time.filetime()),
        resource_type: Some(dfs::resource_type(blob.directory)),
        expiry_time: blob.deleted.map(Deleted::until),
        lease: BlobLease::default(),
        content: entry.content.map(|content| BlobContent {
            crc64: content
                .crc64
                .map(|_| if blob.length == 0 { CRC64_EMPTY } else { "" }),
            ..content
        }),
        ..entry
    }
}

/// Recorded: the lease of a deleted blob has an empty status and no state.
const DELETED_LEASE: BlobLease<'static> = BlobLease {
    status: Some(""),
    state: None,
    duration: None,
};

fn deletion(blob: &BlobRecord, now: Timestamp) -> Option<(Timestamp, u32)> {
    let deleted = blob.deleted?;
    Some((deleted.at, deleted.remaining_days(now)))
}

fn lease(blob: &BlobRecord, now: Timestamp) -> BlobLease<'static> {
    let lease = blob.lease.at(now);
    BlobLease {
        status: Some(lease.status_str()),
        state: Some(lease.state_str()),
        duration: lease.duration_str(),
    }
}

fn rights<'a>((posix, texts): (&'a Posix, &'a (String, String))) -> BlobRights<'a> {
    let (permissions, acl) = texts;
    BlobRights {
        owner: &posix.owner,
        group: &posix.group,
        permissions,
        acl,
    }
}

fn copy_entry<'a>(
    copy: &'a CopyRecord,
    progress: &'a str,
    incremental_snapshot: Option<&'a str>,
) -> BlobCopy<'a> {
    BlobCopy {
        id: &copy.id,
        source: &copy.source,
        status: copy.status.as_str(),
        status_description: copy.description.as_deref(),
        progress,
        completion_time: copy.completed,
        incremental_snapshot,
    }
}
