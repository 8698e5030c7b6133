//! Path - Update, append: uploads bytes of a file, which a flush then adds to it.
//!
//! Source: "Path - Update". The bytes wait as an uncommitted block whose id is their position; with
//! `flush=true` they are added at once.
//!
//! ```http
//! PATCH /devstoreaccount1/lake/events.csv?action=append&position=0
//! Content-Length: 14
//!
//! 202 Accepted
//! ```

use smalt_protocol::limits::put_block_bytes_max;
use smalt_protocol::{ETag, StorageError, Timestamp};

use super::flush::{self, Flush};
use super::{check_file, flag, number};
use crate::call::Call;
use crate::operation::{Received, Takes, Write};
use crate::ops::blob::guard::{self, Guard};
use crate::ops::blob::uncommitted::{self, Slot};
use crate::ops::blob::upload::Upload;
use crate::ops::blob::{headers, properties};
use crate::ops::lookup::{BlobName, Found};
use crate::reply::Reply;
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{Stamp, Transaction, View};

/// The append action of Path - Update.
pub struct AppendPath {
    name: BlobName,
    position: u64,
    length: u64,
    guard: Guard,
    encryption: Requested,
    upload: Upload,
    lease: flush::Leasing,
    flush: Option<Flush>,
}

/// The file, and the slot of the bytes.
pub struct Checked {
    found: Found,
    slot: Slot,
}

/// What the response tells.
pub struct Appended {
    encryption: Option<Encryption>,
    flushed: Option<(ETag, Timestamp)>,
    is_renewed: bool,
    md5: Option<[u8; 16]>,
}

impl Write for AppendPath {
    type Checked = Checked;
    type Output = Appended;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        let position = number(call, "position")?;
        let position = position.ok_or_else(|| StorageError::missing_query("position"))?;
        let length = call.body_length.unwrap_or_default();
        let flushes = flag(call, "flush")?.unwrap_or(false);
        let end = position.saturating_add(length);
        Ok(AppendPath {
            name: BlobName::of_write(call)?,
            position,
            length,
            guard: Guard::of_lease(call)?,
            encryption: headers::encryption(call)?,
            upload: Upload::of_block(call, put_block_bytes_max(call.version))?,
            lease: flush::Leasing::of(call)?,
            flush: flushes.then(|| Flush::with_body(call, end)).transpose()?,
        })
    }

    fn takes(&self) -> Takes {
        self.upload.takes()
    }

    fn payload(&mut self, received: Received) -> Result<(), StorageError> {
        self.upload.receive(received)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let found = self.name.find(view, stamp.now)?;
        check_file(&found.blob)?;
        let leased = self.lease.check(found.blob.lease, stamp.now)?;
        if leased.is_none() {
            self.guard.check_write(&found.blob)?;
        }
        guard::check_encryption(&self.encryption, &found)?;
        let id = self.position.to_be_bytes();
        let slot = uncommitted::slot(
            view,
            &self.name,
            &found.container,
            &self.encryption,
            &id,
            stamp.now,
        )?;
        if let Some(flush) = &self.flush {
            flush.check(
                view,
                &self.name,
                &found,
                Some((self.position, self.length)),
                stamp,
            )?;
        }
        Ok(Checked { found, slot })
    }

    fn apply(
        self,
        Checked { mut found, slot }: Checked,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Appended, StorageError> {
        let (staged, hashes) = self.upload.into_bytes()?;
        let encryption = slot.encryption().cloned();
        if !staged.is_empty() {
            let block = uncommitted::block(tx, staged)?;
            let id = self.position.to_be_bytes();
            uncommitted::keep(tx, &self.name, &id, slot, block, stamp)?;
        }
        let is_renewed = self.lease.renews();
        let flushed = match self.flush {
            Some(flush) => {
                let blob = flush.apply(&self.name, found, self.lease, tx, stamp)?;
                Some((blob.etag, blob.last_modified))
            }
            None => {
                self.lease.keep(&self.name, &mut found, tx, stamp)?;
                None
            }
        };
        Ok(Appended {
            encryption,
            flushed,
            is_renewed,
            md5: hashes.md5.filter(|_| hashes.by_md5),
        })
    }

    fn render(appended: Appended, call: &Call) -> Result<Reply, StorageError> {
        let reply = Reply::new(202)
            .maybe("x-ms-lease-renewed", appended.is_renewed.then_some("true"))
            .maybe("content-md5", appended.md5.map(|md5| headers::encode(&md5)));
        let reply = match appended.flushed {
            Some((etag, last_modified)) => reply.version(etag, last_modified),
            None => reply,
        };
        let encryption = appended.encryption.as_ref();
        Ok(properties::encrypted(reply, encryption, call.version))
    }
}
