//! Get Blob: reads a blob or snapshot, or a range of it.
//!
//! Source: "Get Blob".
//!
//! ```http
//! GET /devstoreaccount1/events/2026/11/21.json
//! x-ms-range: bytes=0-9
//!
//! 206 Partial Content
//! Content-Range: bytes 0-9/14
//! ETag: "0x8D6D4173A7F45B7"
//! ```

use md5::{Digest, Md5};
use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use super::content::{self, Located};
use super::guard::{self, Guard};
use super::overrides::Overrides;
use super::properties::{self, Shown};
use super::{headers, last_access};
use crate::call::Call;
use crate::keys::Generation;
use crate::operation::{Note, Read};
use crate::ops::lookup::{self, BlobAddress, BlobPart};
use crate::records::BlobRecord;
use crate::reply::Reply;
use crate::rules::encryption::Requested;
use crate::rules::ranges::{RangeHash, Served, WantedRange};
use crate::rules::tier;
use crate::store::{Store, View};

/// Only recorded responses of this version name the snapshot that was read.
const SAYS_SNAPSHOT: ApiVersion = ApiVersion::V2018_11_09;

/// The Get Blob operation.
pub struct GetBlob {
    address: BlobAddress,
    guard: Guard,
    encryption: Requested,
    wanted: WantedRange,
    overrides: Overrides,
    version: ApiVersion,
    tracks_access: bool,
}

/// A blob, and the location of the requested bytes.
pub struct Found {
    generation: Generation,
    blob: BlobRecord,
    served: Served,
    located: Located,
}

impl Read for GetBlob {
    type Output = Found;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetBlob {
            address: BlobAddress::of(call)?,
            guard: Guard::of_read(call)?,
            encryption: headers::encryption(call)?,
            wanted: WantedRange::parse(
                [call.header("x-ms-range")?, call.header("range")?],
                call.header("x-ms-range-get-content-md5")?,
                call.header("x-ms-range-get-content-crc64")?,
            )?,
            overrides: Overrides::of(call),
            version: call.version,
            tracks_access: call.settings.last_access_tracking,
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let lookup::Found { container, blob } = self.address.find(view, now)?;
        self.guard.check_read(&blob, self.address.is_base())?;
        self.encryption.check_read(blob.encryption.as_ref())?;
        guard::check_online(&blob)?;
        if self.address.is_base() && blob.incremental.is_some() {
            return Err(ErrorCode::OperationNotAllowedOnIncrementalCopyBlob.into());
        }
        let served = self.wanted.of(blob.length, self.version)?;
        let located = content::locate(view, blob.content, served.bytes.clone())?;
        Ok(Found {
            generation: container.generation,
            blob,
            served,
            located,
        })
    }

    fn note(&self, found: &Found, now: Timestamp) -> Option<Note> {
        // Smart tiering needs the last access even if the account does not track it.
        let is_smart = found.blob.access.tier.as_deref() == Some(tier::SMART);
        if !self.tracks_access && !is_smart {
            return None;
        }
        last_access::note(&self.address, found.generation, &found.blob, now)
    }

    fn render(self, found: Found, call: &Call, store: &Store) -> Result<Reply, StorageError> {
        let Served { bytes, is_partial } = &found.served;
        let shown = Shown {
            version: call.version,
            is_base: self.address.is_base(),
            is_partial: *is_partial,
            with_tier: false,
            now: call.arrival,
            with_access: self.tracks_access,
            default_tier: call.settings.default_tier,
        };
        let status = if *is_partial { 206 } else { 200 };
        let mut reply = properties::describe(status, &found.blob, shown);
        if *is_partial {
            let (first, last) = (bytes.start, bytes.end.saturating_sub(1));
            let range = format!("bytes {first}-{last}/{}", found.blob.length);
            reply.set("content-range", range);
        }
        if let (BlobPart::Snapshot(time), SAYS_SNAPSHOT) = (self.address.part, call.version) {
            reply.set("x-ms-snapshot", time.iso_ticks());
        }
        match self.wanted.hash {
            Some(RangeHash::Md5) => {
                let md5 = Md5::digest(found.located.read_all(store)?);
                reply.set("content-md5", headers::encode(&md5));
            }
            Some(RangeHash::Crc64) => {
                let crc64 = headers::crc64(&found.located.read_all(store)?);
                reply.set("x-ms-content-crc64", headers::encode(&crc64));
            }
            None => {}
        }
        self.overrides.lay_over(&mut reply);
        Ok(reply.content(found.located.into_content(store)))
    }
}
