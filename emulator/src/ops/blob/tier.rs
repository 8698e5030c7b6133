//! Set Blob Tier: moves a blob between tiers, and starts the rehydration of an archived blob.
//!
//! Source: "Set Blob Tier". Neither ETag nor last-modified time change.
//!
//! ```http
//! PUT /devstoreaccount1/events/2026/11/21.json?comp=tier
//! x-ms-access-tier: Cool
//!
//! 200 OK
//! ```

use smalt_protocol::{ErrorCode, StorageError};

use super::guard::{self, Guard};
use super::headers;
use crate::call::Call;
use crate::config::DefaultTier;
use crate::operation::Write;
use crate::ops::lookup::{BlobAddress, Found};
use crate::records::{Access, BlobKind, Record, Rehydration};
use crate::reply::Reply;
use crate::rules::page_tier;
use crate::rules::tier::{self, Move};
use crate::store::{Stamp, Transaction, View};

/// The Set Blob Tier operation.
pub struct SetBlobTier {
    address: BlobAddress,
    guard: Guard,
    tier: &'static str,
    priority: &'static str,
    is_premium: bool,
}

impl Write for SetBlobTier {
    type Checked = (Found, Move);
    type Output = Move;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetBlobTier {
            is_premium: call.settings.default_tier == DefaultTier::Premium,
            address: BlobAddress::of(call)?,
            guard: Guard::of_write(call)?,
            tier: headers::tier(call)?
                .ok_or_else(|| StorageError::missing_header(headers::TIER))?,
            priority: headers::rehydrate_priority(call)?,
        })
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<(Found, Move), StorageError> {
        let found = self.address.find(view, stamp.now)?;
        self.guard
            .check_write_to_part(&found.blob, self.address.is_base())?;
        guard::check_settled(&found.blob)?;
        let is_block_tier = tier::BLOCK_BLOB.contains(&self.tier);
        match found.blob.kind {
            BlobKind::Block if is_block_tier => {}
            BlobKind::Page if !is_block_tier && self.is_premium => {
                let current = found.blob.access.tier.as_deref();
                page_tier::judge(current, self.tier, found.blob.length)?;
            }
            BlobKind::Block => return Err(ErrorCode::InvalidBlobTier.into()),
            _ => return Err(ErrorCode::AccessTierNotSupportedForBlobType.into()),
        }
        let way = tier::judge(&found.blob.access, self.tier)?;
        if way == Move::Rehydrate && !self.address.is_base() {
            // Recorded for blobs that are not current.
            return Err(ErrorCode::BlobOperationNotSupported.into());
        }
        Ok((found, way))
    }

    fn apply(
        self,
        (found, way): (Found, Move),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Move, StorageError> {
        let generation = found.container.generation;
        let mut blob = found.blob;
        match way {
            Move::Done => {
                blob.access = Access {
                    tier: Some(self.tier.to_owned()),
                    changed: Some(stamp.now),
                    rehydration: None,
                };
            }
            Move::Rehydrate => {
                let pending = blob.access.rehydration.as_ref();
                let since = pending.map_or(stamp.now, |way| way.since);
                let priority = pending.map(|way| way.priority.as_str());
                blob.access.rehydration = Some(Rehydration {
                    tier: self.tier.to_owned(),
                    priority: tier::raised(priority, self.priority).to_owned(),
                    since,
                });
            }
        }
        let key = self.address.key(generation, &blob);
        blob.save(tx, key)?;
        Ok(way)
    }

    fn render(way: Move, _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(match way {
            Move::Done => 200,
            Move::Rehydrate => 202,
        }))
    }
}
