//! Get Blob Tags and Set Blob Tags: the index tags of a blob.
//!
//! Sources: "Get Blob Tags", "Set Blob Tags". Set replaces all tags; neither ETag nor last-modified
//! time change.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=tags
//! <Tags><TagSet><Tag><Key>team</Key><Value>billing</Value></Tag></TagSet></Tags>
//!
//! 204 No Content
//! ```

use bytes::Bytes;
use smalt_protocol::limits::XML_BODY_BYTES_MAX;
use smalt_protocol::xml::list_blobs::push_tags;
use smalt_protocol::xml::read::ELEMENTS_MAX;
use smalt_protocol::xml::{Element, XmlWriter, read_document};
use smalt_protocol::{StorageError, Timestamp};

use super::guard::{self, Guard};
use super::headers::BodyHashes;
use super::tag_index::Owner;
use crate::call::Call;
use crate::operation::{Read, Takes, Write};
use crate::ops::lookup::{BlobAddress, Found};
use crate::records::Record;
use crate::reply::Reply;
use crate::rules::tags;
use crate::store::{Stamp, Store, Transaction, View};

type Tags = Vec<(String, String)>;

/// The Get Blob Tags operation.
pub struct GetBlobTags {
    address: BlobAddress,
    guard: Guard,
}

impl Read for GetBlobTags {
    type Output = Tags;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetBlobTags {
            address: BlobAddress::of(call)?,
            guard: Guard::of_tags(call)?,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Tags, StorageError> {
        let blob = self.address.find(view, now)?.blob;
        self.guard.check_read(&blob, self.address.is_base())?;
        Ok(blob.tags)
    }

    fn render(self, tags: Tags, _: &Call, _: &Store) -> Result<Reply, StorageError> {
        let mut document = XmlWriter::new();
        push_tags(&mut document, &tags);
        Ok(Reply::xml(200, document.finish()))
    }
}

/// The Set Blob Tags operation, for a base blob or a version.
pub struct SetBlobTags {
    address: BlobAddress,
    guard: Guard,
    hashes: BodyHashes,
    tags: Tags,
}

impl Write for SetBlobTags {
    type Checked = Found;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        if let Some(snapshot) = call.query("snapshot").filter(|text| !text.is_empty()) {
            return Err(StorageError::invalid_query("snapshot", snapshot, ""));
        }
        Ok(SetBlobTags {
            address: BlobAddress::of(call)?,
            guard: Guard::of_tags(call)?,
            hashes: BodyHashes::of(call)?,
            tags: Tags::new(),
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(XML_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.hashes.check_document(&document)?;
        self.tags = tags::validate(parse_tags(&document)?)?;
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Found, StorageError> {
        let found = self.address.find(view, stamp.now)?;
        self.guard
            .check_write_to_part(&found.blob, self.address.is_base())?;
        guard::check_settled(&found.blob)?;
        Ok(found)
    }

    fn apply(self, found: Found, tx: &mut Transaction<'_>, _: &Stamp) -> Result<(), StorageError> {
        let mut blob = found.blob;
        let generation = found.container.generation;
        let owner = Owner::of(generation, &self.address.name.blob, &blob);
        owner.change(tx, &blob.tags, &self.tags);
        blob.tags = self.tags;
        let key = self.address.key(generation, &blob);
        blob.save(tx, key)?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(204))
    }
}

/// Parses `Tags`, `TagSet`, `Tag` with `Key` and `Value`.
fn parse_tags(document: &[u8]) -> Result<Tags, StorageError> {
    let root = read_document(document, ELEMENTS_MAX)?;
    if root.name != "Tags" {
        return Err(root.unexpected());
    }
    let tag = |element: &Element<'_>| {
        if element.name != "Tag" {
            return Err(element.unexpected());
        }
        Ok((
            element.required("Key")?.text.to_string(),
            element.required("Value")?.text.to_string(),
        ))
    };
    root.required("TagSet")?.children.iter().map(tag).collect()
}
