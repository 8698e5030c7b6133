//! The answer to List Blobs: blobs and prefixes interleaved in the order of their names.
//!
//! Source: *List Blobs*; recordings for the order of elements and for empty ones. The caller
//! decides which of them a version shows.

use crate::etag::ETag;
use crate::metadata::Metadata;
use crate::time::Timestamp;
use crate::uri;
use crate::xml::list_queues::{finish_list, push_metadata};
use crate::xml::write::{ListHead, XmlWriter};

/// The lease of a listed blob or container. Snapshots and versions have none; a deleted blob has an
/// empty status.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobLease<'a> {
    /// `locked` or `unlocked`.
    pub status: Option<&'a str>,
    /// `available`, `leased`, `expired`, `breaking`, `broken`.
    pub state: Option<&'a str>,
    /// `infinite` or `fixed`, for an active lease.
    pub duration: Option<&'a str>,
}

/// Content headers of a blob. An empty string is written as an empty element.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobContent<'a> {
    /// `Content-Type`.
    pub content_type: &'a str,
    /// `Content-Encoding`.
    pub encoding: &'a str,
    /// `Content-Language`.
    pub language: &'a str,
    /// `Content-CRC64`, always empty, listed since 2019-02-02.
    pub crc64: Option<&'a str>,
    /// `Content-MD5`, Base64.
    pub md5: &'a str,
    /// `Cache-Control`.
    pub cache_control: &'a str,
    /// `Content-Disposition`, since 2013-08-15.
    pub disposition: Option<&'a str>,
}

/// The copy that created a blob, if the request includes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobCopy<'a> {
    /// `CopyId`.
    pub id: &'a str,
    /// `CopySource`.
    pub source: &'a str,
    /// `success`, `pending`, `aborted` or `failed`.
    pub status: &'a str,
    /// `CopyStatusDescription`.
    pub status_description: Option<&'a str>,
    /// `CopyProgress`, such as `1024/1024`, in bytes.
    pub progress: &'a str,
    /// `CopyCompletionTime`.
    pub completion_time: Option<Timestamp>,
    /// `IncrementalCopy` and its `CopyDestinationSnapshot`.
    pub incremental_snapshot: Option<&'a str>,
}

/// Owner, group and access control list of a path in a hierarchical account.
#[derive(Clone, Copy, Debug)]
pub struct BlobRights<'a> {
    /// `Owner`.
    pub owner: &'a str,
    /// `Group`.
    pub group: &'a str,
    /// `Permissions`: `rwxr-x---`.
    pub permissions: &'a str,
    /// `Acl`: `user::rwx,group::r-x,other::---`.
    pub acl: &'a str,
}

/// One blob, snapshot or version of a listing. Fields that are `None` or false are omitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlobEntry<'a> {
    /// The name, decoded.
    pub name: &'a str,
    /// `Snapshot`.
    pub snapshot: Option<&'a str>,
    /// `VersionId`.
    pub version_id: Option<&'a str>,
    /// `IsCurrentVersion`.
    pub is_current_version: bool,
    /// `DeletionId` of a deleted path of a hierarchical account, whose expiry is listed earlier.
    pub deletion_id: Option<u64>,
    /// `Deleted`.
    pub is_deleted: bool,
    /// `HasVersionsOnly`.
    pub has_versions_only: bool,
    /// `Creation-Time`, since 2017-11-09; `None` for uncommitted blobs.
    pub creation_time: Option<Timestamp>,
    /// `Last-Modified`; `None` for uncommitted blobs.
    pub last_modified: Option<Timestamp>,
    /// `Etag`, written without quotes; `None` for uncommitted blobs.
    pub etag: Option<ETag>,
    /// Owner and permissions, if the request includes them.
    pub rights: Option<BlobRights<'a>>,
    /// `ResourceType` in a hierarchical account: `file` or `directory`.
    pub resource_type: Option<&'a str>,
    /// `Content-Length`, in bytes.
    pub content_length: u64,
    /// Content headers; `None` for uncommitted blobs.
    pub content: Option<BlobContent<'a>>,
    /// `LastAccessTime`, if the account tracks it.
    pub last_access_time: Option<Timestamp>,
    /// `x-ms-blob-sequence-number` of a page blob.
    pub sequence_number: Option<u64>,
    /// `BlockBlob`, `PageBlob` or `AppendBlob`.
    pub blob_type: &'a str,
    /// `AccessTier`, since 2017-04-17.
    pub access_tier: Option<&'a str>,
    /// `AccessTierInferred`: the blob has the account's default tier.
    pub access_tier_inferred: bool,
    /// `ArchiveStatus`: `rehydrate-pending-to-hot`, ...
    pub archive_status: Option<&'a str>,
    /// `RehydratePriority`.
    pub rehydrate_priority: Option<&'a str>,
    /// `AccessTierChangeTime`.
    pub access_tier_change_time: Option<Timestamp>,
    /// `LeaseStatus`, `LeaseState` and `LeaseDuration`.
    pub lease: BlobLease<'a>,
    /// The copy, if the request includes it.
    pub copy: Option<BlobCopy<'a>>,
    /// `ServerEncrypted`, since 2015-12-11.
    pub server_encrypted: Option<bool>,
    /// `CustomerProvidedKeySha256`.
    pub key_sha256: Option<&'a str>,
    /// `EncryptionScope`.
    pub encryption_scope: Option<&'a str>,
    /// `TagCount`.
    pub tag_count: Option<u32>,
    /// `Expiry-Time`, if the blob expires.
    pub expiry_time: Option<Timestamp>,
    /// `Sealed` of an append blob.
    pub is_sealed: bool,
    /// `DeletedTime` and `RemainingRetentionDays`.
    pub deletion: Option<(Timestamp, u32)>,
    /// `ImmutabilityPolicyUntilDate` and `ImmutabilityPolicyMode`.
    pub immutability_policy: Option<(Timestamp, &'a str)>,
    /// `LegalHold`.
    pub legal_hold: Option<bool>,
    /// `Metadata`, if the request includes it.
    pub metadata: Option<&'a Metadata>,
    /// `Tags`, if the request includes them and there are any.
    pub tags: Option<&'a [(String, String)]>,
    /// The empty `OrMetadata`, listed since 2019-12-12.
    pub has_replication_metadata: bool,
}

/// A listing of blobs, written entry by entry.
#[derive(Debug)]
pub struct ListBlobsDocument {
    xml: XmlWriter,
    has_entries: bool,
    address: Option<String>,
}

impl ListBlobsDocument {
    /// Starts the document.
    pub fn new(head: &ListHead<'_>) -> Self {
        let mut xml = XmlWriter::new();
        xml.open_listing(head);
        ListBlobsDocument {
            xml,
            has_entries: false,
            address: head.address(),
        }
    }

    /// Writes one blob, snapshot or version.
    pub fn push_blob(&mut self, entry: &BlobEntry<'_>) {
        let address = self.address.as_deref().map(|base| address(base, entry));
        let xml = self.entries();
        xml.open("Blob");
        xml.name_element("Name", entry.name);
        xml.optional("Snapshot", entry.snapshot);
        xml.optional("VersionId", entry.version_id);
        flag(xml, "IsCurrentVersion", entry.is_current_version);
        flag(xml, "HasVersionsOnly", entry.has_versions_only);
        number(xml, "DeletionId", entry.deletion_id);
        flag(xml, "Deleted", entry.is_deleted);
        xml.optional("Url", address.as_deref());
        push_properties(xml, entry);
        push_metadata(xml, entry.metadata);
        if let Some(tags) = entry.tags {
            push_tags(xml, tags);
        }
        if entry.has_replication_metadata {
            xml.empty("OrMetadata");
        }
        xml.close("Blob");
    }

    /// Writes one common prefix, up to and including the delimiter.
    pub fn push_prefix(&mut self, prefix: &str) {
        let xml = self.entries();
        xml.open("BlobPrefix");
        xml.name_element("Name", prefix);
        xml.close("BlobPrefix");
    }

    /// Ends the document with the marker of the next page, or an empty one.
    pub fn finish(mut self, next_marker: &str) -> Vec<u8> {
        finish_list(&mut self.xml, "Blobs", self.has_entries, next_marker);
        self.xml.finish()
    }

    fn entries(&mut self) -> &mut XmlWriter {
        if !self.has_entries {
            self.xml.open("Blobs");
            self.has_entries = true;
        }
        &mut self.xml
    }
}

/// Returns the address of a blob or snapshot.
fn address(base: &str, entry: &BlobEntry<'_>) -> String {
    let name = uri::encode_path(entry.name);
    match entry.snapshot {
        Some(time) => format!("{base}{name}?snapshot={}", uri::encode_query(time)),
        None => format!("{base}{name}"),
    }
}

impl BlobLease<'_> {
    pub(super) fn push(&self, xml: &mut XmlWriter) {
        xml.optional("LeaseStatus", self.status);
        xml.optional("LeaseState", self.state);
        xml.optional("LeaseDuration", self.duration);
    }
}

fn push_properties(xml: &mut XmlWriter, entry: &BlobEntry<'_>) {
    xml.open("Properties");
    time(xml, "Creation-Time", entry.creation_time);
    time(xml, "Last-Modified", entry.last_modified);
    let expires_first = entry.deletion_id.is_some();
    time(
        xml,
        "Expiry-Time",
        entry.expiry_time.filter(|_| expires_first),
    );
    xml.optional("Etag", entry.etag.map(|tag| tag.to_string()).as_deref());
    if let Some(rights) = &entry.rights {
        xml.element("Owner", rights.owner);
        xml.element("Group", rights.group);
        xml.element("Permissions", rights.permissions);
        xml.element("Acl", rights.acl);
    }
    xml.optional("ResourceType", entry.resource_type);
    xml.element("Content-Length", &entry.content_length.to_string());
    if let Some(content) = &entry.content {
        push_content(xml, content);
    }
    time(xml, "LastAccessTime", entry.last_access_time);
    number(xml, "x-ms-blob-sequence-number", entry.sequence_number);
    xml.element("BlobType", entry.blob_type);
    xml.optional("AccessTier", entry.access_tier);
    flag(xml, "AccessTierInferred", entry.access_tier_inferred);
    xml.optional("ArchiveStatus", entry.archive_status);
    xml.optional("RehydratePriority", entry.rehydrate_priority);
    time(xml, "AccessTierChangeTime", entry.access_tier_change_time);
    entry.lease.push(xml);
    if let Some(copy) = &entry.copy {
        push_copy(xml, copy);
    }
    if let Some(encrypted) = entry.server_encrypted {
        xml.boolean("ServerEncrypted", encrypted);
    }
    xml.optional("CustomerProvidedKeySha256", entry.key_sha256);
    xml.optional("EncryptionScope", entry.encryption_scope);
    number(xml, "TagCount", entry.tag_count.map(u64::from));
    time(
        xml,
        "Expiry-Time",
        entry.expiry_time.filter(|_| !expires_first),
    );
    flag(xml, "Sealed", entry.is_sealed);
    if let Some((deleted, days)) = entry.deletion {
        time(xml, "DeletedTime", Some(deleted));
        number(xml, "RemainingRetentionDays", Some(u64::from(days)));
    }
    if let Some((until, mode)) = entry.immutability_policy {
        time(xml, "ImmutabilityPolicyUntilDate", Some(until));
        xml.element("ImmutabilityPolicyMode", mode);
    }
    if let Some(hold) = entry.legal_hold {
        xml.boolean("LegalHold", hold);
    }
    xml.close("Properties");
}

fn push_content(xml: &mut XmlWriter, content: &BlobContent<'_>) {
    xml.element("Content-Type", content.content_type);
    xml.element("Content-Encoding", content.encoding);
    xml.element("Content-Language", content.language);
    xml.optional("Content-CRC64", content.crc64);
    xml.element("Content-MD5", content.md5);
    xml.element("Cache-Control", content.cache_control);
    xml.optional("Content-Disposition", content.disposition);
}

fn push_copy(xml: &mut XmlWriter, copy: &BlobCopy<'_>) {
    xml.element("CopyId", copy.id);
    xml.element("CopySource", copy.source);
    xml.element("CopyStatus", copy.status);
    xml.optional("CopyStatusDescription", copy.status_description);
    xml.element("CopyProgress", copy.progress);
    time(xml, "CopyCompletionTime", copy.completion_time);
    if let Some(snapshot) = copy.incremental_snapshot {
        xml.element("IncrementalCopy", "true");
        xml.element("CopyDestinationSnapshot", snapshot);
    }
}

/// Writes `Tags` with its set, as in Get Blob Tags.
pub fn push_tags(xml: &mut XmlWriter, tags: &[(String, String)]) {
    xml.open("Tags");
    xml.open("TagSet");
    for (key, value) in tags {
        xml.open("Tag");
        xml.element("Key", key);
        xml.element("Value", value);
        xml.close("Tag");
    }
    xml.close("TagSet");
    xml.close("Tags");
}

fn flag(xml: &mut XmlWriter, name: &str, is_set: bool) {
    if is_set {
        xml.element(name, "true");
    }
}

fn time(xml: &mut XmlWriter, name: &str, time: Option<Timestamp>) {
    if let Some(time) = time {
        xml.element(name, &time.rfc1123());
    }
}

fn number(xml: &mut XmlWriter, name: &str, number: Option<u64>) {
    if let Some(number) = number {
        xml.element(name, &number.to_string());
    }
}

#[cfg(test)]
#[path = "list_blobs_tests.rs"]
mod tests;
