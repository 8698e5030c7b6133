//! Get Block List: lists the committed and uncommitted blocks of a block blob or snapshot.
//!
//! Source: "Get Block List". For a name with only uncommitted blocks, the response has no ETag,
//! last-modified time or length. Anonymous readers see committed blocks only.
//!
//! ```http
//! GET /devstoreaccount1/events/2026/11/21.json?comp=blocklist&blocklisttype=all
//!
//! 200 OK
//! x-ms-blob-content-length: 20
//!
//! <BlockList><CommittedBlocks>...</CommittedBlocks><UncommittedBlocks /></BlockList>
//! ```

use smalt_protocol::xml::BlockListDocument;
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use super::content::blocks;
use super::guard::Guard;
use super::{block_id, uncommitted};
use crate::auth::Identity;
use crate::call::Call;
use crate::operation::{Read, Weight};
use crate::ops::lookup::BlobAddress;
use crate::records::{BlobKind, BlobRecord, BlockRecord, CommittedBlock};
use crate::reply::Reply;
use crate::store::{Store, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    committed: bool,
    uncommitted: bool,
}

/// The Get Block List operation.
pub struct GetBlockList {
    address: BlobAddress,
    guard: Guard,
    wanted: Wanted,
    sees_uncommitted: bool,
}

/// The lists, and the blob unless there are only uncommitted blocks.
pub struct Lists {
    blob: Option<BlobRecord>,
    committed: Vec<CommittedBlock>,
    uncommitted: Vec<(Vec<u8>, BlockRecord)>,
}

impl Read for GetBlockList {
    type Output = Lists;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetBlockList {
            address: BlobAddress::of(call)?,
            guard: Guard::of_read(call)?,
            wanted: wanted(call)?,
            sees_uncommitted: call.identity != Identity::Anonymous,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Lists, StorageError> {
        let name = &self.address.name;
        let mut lists = Lists {
            blob: None,
            committed: Vec::new(),
            uncommitted: Vec::new(),
        };
        if self.address.is_base() && self.sees_uncommitted {
            let place = name.find_place(view, now)?;
            let generation = place.container.generation;
            if place.blob.is_none() {
                // There are only uncommitted blocks, or nothing at all.
                uncommitted::record(view, generation, &name.blob, now)?
                    .ok_or(ErrorCode::BlobNotFound)?;
                self.guard.check_lease(&place)?;
            }
            lists.blob = place.blob;
            if self.wanted.uncommitted {
                lists.uncommitted = uncommitted::read(view, generation, &name.blob, now)?;
            }
        } else {
            lists.blob = Some(self.address.find(view, now)?.blob);
        }
        if let Some(blob) = &lists.blob {
            self.guard.check_read(blob, self.address.is_base())?;
            if blob.kind != BlobKind::Block {
                return Err(ErrorCode::InvalidBlobType.into());
            }
            if self.wanted.committed {
                lists.committed = blocks::read(view, blob.content)?;
                // Appended blocks and those put from a URL have no ids: they are not listed.
                lists.committed.retain(|block| !block.id.is_empty());
            }
        }
        Ok(lists)
    }

    fn render(self, lists: Lists, _: &Call, _: &Store) -> Result<Reply, StorageError> {
        let mut document = BlockListDocument::new();
        let committed = lists.committed.iter().map(|b| (b.id.as_slice(), b.length));
        let uncommitted = lists.uncommitted.iter();
        let uncommitted = uncommitted.map(|(id, b)| (id.as_slice(), b.length));
        let (committed, uncommitted) = (shown(committed), shown(uncommitted));
        if self.wanted.committed {
            document.committed(committed.iter().map(|(id, size)| (id.as_str(), *size)));
        }
        if self.wanted.uncommitted {
            document.uncommitted(uncommitted.iter().map(|(id, size)| (id.as_str(), *size)));
        }
        let reply = Reply::xml(200, document.finish());
        Ok(match lists.blob {
            Some(blob) => reply
                .version(blob.etag, blob.last_modified)
                .header("x-ms-blob-content-length", blob.length.to_string()),
            None => reply,
        })
    }
}

fn shown<'a>(blocks: impl Iterator<Item = (&'a [u8], u64)>) -> Vec<(String, u64)> {
    blocks
        .map(|(id, length)| (block_id::encode(id), length))
        .collect()
}

fn wanted(call: &Call) -> Result<Wanted, StorageError> {
    const NAME: &str = "blocklisttype";
    let text = call.query(NAME).unwrap_or("committed");
    let (committed, uncommitted) = match text.to_ascii_lowercase().as_str() {
        "committed" => (true, false),
        "uncommitted" => (false, true),
        "all" => (true, true),
        _ => return Err(StorageError::invalid_query(NAME, text, "")),
    };
    Ok(Wanted {
        committed,
        uncommitted,
    })
}
