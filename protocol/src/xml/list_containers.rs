//! The answer to List Containers.
//!
//! Source: *List Containers*; recordings for the order of elements. The caller decides which of
//! them a version shows.

use crate::etag::ETag;
use crate::metadata::Metadata;
use crate::time::Timestamp;
use crate::xml::list_blobs::BlobLease;
use crate::xml::list_queues::{finish_list, push_metadata};
use crate::xml::write::{ListHead, XmlWriter};

/// One container of a listing. Fields that are `None` are omitted.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContainerEntry<'a> {
    /// The container's name.
    pub name: &'a str,
    /// `Deleted`, and the `Version` that restores it, for a soft-deleted container.
    pub deleted_version: Option<&'a str>,
    /// `Last-Modified`.
    pub last_modified: Timestamp,
    /// `Etag`, written with quotes.
    pub etag: Option<ETag>,
    /// `LeaseStatus`, `LeaseState` and `LeaseDuration`.
    pub lease: BlobLease<'a>,
    /// `PublicAccess`: `container` or `blob`.
    pub public_access: Option<&'a str>,
    /// `DefaultEncryptionScope` and `DenyEncryptionScopeOverride`, since 2019-02-02.
    pub encryption_scope: Option<(&'a str, bool)>,
    /// `HasImmutabilityPolicy` and `HasLegalHold`, since 2017-11-09.
    pub immutability: Option<(bool, bool)>,
    /// `ImmutableStorageWithVersioningEnabled`, since 2020-06-12.
    pub immutable_with_versioning: Option<bool>,
    /// `DeletedTime` and `RemainingRetentionDays` of a soft-deleted container.
    pub deletion: Option<(Timestamp, u32)>,
    /// `Metadata`, if the request includes it.
    pub metadata: Option<&'a Metadata>,
}

/// A listing of containers, written entry by entry.
#[derive(Debug)]
pub struct ListContainersDocument {
    xml: XmlWriter,
    has_entries: bool,
    address: Option<String>,
}

impl ListContainersDocument {
    /// Starts the document.
    pub fn new(head: &ListHead<'_>) -> Self {
        let mut xml = XmlWriter::new();
        xml.open_listing(head);
        ListContainersDocument {
            xml,
            has_entries: false,
            address: head.address(),
        }
    }

    /// Writes one container.
    pub fn push(&mut self, entry: &ContainerEntry<'_>) {
        let xml = &mut self.xml;
        if !self.has_entries {
            xml.open("Containers");
            self.has_entries = true;
        }
        xml.open("Container");
        xml.element("Name", entry.name);
        if let Some(address) = &self.address {
            xml.element("Url", &format!("{address}{}", entry.name));
        }
        if let Some(version) = entry.deleted_version {
            xml.element("Deleted", "true");
            xml.element("Version", version);
        }
        push_properties(xml, entry);
        push_metadata(xml, entry.metadata);
        xml.close("Container");
    }

    /// Ends the document with the marker of the next page, or an empty one.
    pub fn finish(mut self, next_marker: &str) -> Vec<u8> {
        finish_list(&mut self.xml, "Containers", self.has_entries, next_marker);
        self.xml.finish()
    }
}

fn push_properties(xml: &mut XmlWriter, entry: &ContainerEntry<'_>) {
    xml.open("Properties");
    xml.element("Last-Modified", &entry.last_modified.rfc1123());
    xml.optional("Etag", entry.etag.map(ETag::quoted).as_deref());
    entry.lease.push(xml);
    xml.optional("PublicAccess", entry.public_access);
    if let Some((scope, deny_override)) = entry.encryption_scope {
        xml.element("DefaultEncryptionScope", scope);
        xml.boolean("DenyEncryptionScopeOverride", deny_override);
    }
    if let Some((has_policy, has_legal_hold)) = entry.immutability {
        xml.boolean("HasImmutabilityPolicy", has_policy);
        xml.boolean("HasLegalHold", has_legal_hold);
    }
    if let Some(enabled) = entry.immutable_with_versioning {
        xml.boolean("ImmutableStorageWithVersioningEnabled", enabled);
    }
    if let Some((time, days)) = entry.deletion {
        xml.element("DeletedTime", &time.rfc1123());
        xml.element("RemainingRetentionDays", &days.to_string());
    }
    xml.close("Properties");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::write::tests::body_of;

    #[test]
    fn renders_as_recorded() {
        let time = Timestamp::from_unix_s(1_557_363_479);
        let plain = ContainerEntry {
            name: "c",
            last_modified: time,
            etag: ETag::parse("0x8D6D419613E05C1"),
            lease: BlobLease {
                status: Some("unlocked"),
                state: Some("available"),
                duration: None,
            },
            immutability: Some((false, false)),
            ..ContainerEntry::default()
        };
        let metadata = Metadata::from_headers([("x-ms-meta-hello", "world")]).unwrap();
        let head = ListHead {
            service_endpoint: "https://a/",
            ..ListHead::default()
        };
        let mut list = ListContainersDocument::new(&head);
        list.push(&ContainerEntry {
            metadata: Some(&metadata),
            ..plain
        });
        list.push(&ContainerEntry {
            deleted_version: Some("01D62509D55582C5"),
            public_access: Some("blob"),
            encryption_scope: Some(("$account-encryption-key", false)),
            immutable_with_versioning: Some(false),
            deletion: Some((time, 7)),
            ..plain
        });
        let lease = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>";
        let start = "<Properties><Last-Modified>Thu, 09 May 2019 00:57:59 GMT</Last-Modified>\
                     <Etag>\"0x8D6D419613E05C1\"</Etag>";
        let immutability = "<HasImmutabilityPolicy>false</HasImmutabilityPolicy>\
                            <HasLegalHold>false</HasLegalHold>";
        assert_eq!(
            body_of(list.finish("")),
            format!(
                "<EnumerationResults ServiceEndpoint=\"https://a/\"><Containers><Container>\
                 <Name>c</Name>{start}{lease}{immutability}</Properties><Metadata>\
                 <hello>world</hello></Metadata></Container><Container><Name>c</Name>\
                 <Deleted>true</Deleted><Version>01D62509D55582C5</Version>{start}{lease}\
                 <PublicAccess>blob</PublicAccess>\
                 <DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>\
                 <DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>{immutability}\
                 <ImmutableStorageWithVersioningEnabled>false\
                 </ImmutableStorageWithVersioningEnabled>\
                 <DeletedTime>Thu, 09 May 2019 00:57:59 GMT</DeletedTime>\
                 <RemainingRetentionDays>7</RemainingRetentionDays></Properties></Container>\
                 </Containers><NextMarker /></EnumerationResults>"
            )
        );
    }
}
