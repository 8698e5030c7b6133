//! Blocks of block blobs. Source: "Put Block", "Put Block List", "Get Block List".

use smalt_protocol::ErrorCode;

use crate::content::{Block, Bytes};
use crate::expected::{Answer, Expected, Fact, Refusal};
use crate::lease::{self, Lease, Of};
use crate::state::{Blob, Model, Uncommitted};
use crate::vocabulary::{BlobId, BlockSource, Content, Guard, Labels, LeaseId};

/// Returns the committed blocks. The existing blob must be a block blob.
fn committed(there: Option<&Blob>) -> Result<&[Block], Refusal> {
    match there.map(|blob| &blob.state.content) {
        None => Ok(&[]),
        Some(Bytes::Blocks(blocks)) => Ok(blocks),
        Some(_) => Err(ErrorCode::InvalidBlobType.into()),
    }
}

/// Seconds that uncommitted blocks are kept after the last Put Block.
const KEPT_S: u64 = 7 * 24 * 60 * 60;

impl Uncommitted {
    /// Returns whether the blocks are still kept.
    pub(crate) fn is_kept(&self, now_s: u64) -> bool {
        now_s - self.touched_s < KEPT_S
    }
}

impl Model {
    pub(crate) fn put_block(
        &mut self,
        id: &BlobId,
        block: &[u8],
        content: Content,
        given: Option<LeaseId>,
    ) -> Answer {
        if content.length == 0 {
            return Err(ErrorCode::InvalidHeaderValue.into());
        }
        let now_s = self.now_s;
        let container = self.find(&id.container)?;
        let there = container.blobs.get(&id.blob);
        let lease = there.map_or(Lease::Available, |blob| blob.lease.at(now_s));
        lease::check_guarded(Of::Blob, lease, given)?;
        committed(there)?;
        let known = container.uncommitted.entry(id.blob.clone()).or_default();
        if !known.is_kept(now_s) {
            known.blocks.clear();
        }
        let other = known.blocks.keys().next().map(Vec::len);
        if other.is_some_and(|length| length != block.len()) {
            return Err(ErrorCode::InvalidBlobOrBlock.into());
        }
        known.touched_s = now_s;
        known.blocks.insert(block.to_vec(), content.bytes());
        Ok(Expected::ok(201).with(Fact::Header("etag", None)))
    }

    pub(crate) fn put_block_list(
        &mut self,
        id: &BlobId,
        list: &[(BlockSource, Vec<u8>)],
        labels: &Labels,
        guard: Guard,
    ) -> Answer {
        let now_s = self.now_s;
        let there = self.find(&id.container)?.blobs.get(&id.blob).cloned();
        self.check_create(there.as_ref(), guard, ErrorCode::ConditionNotMet)?;
        let old = committed(there.as_ref())?;
        let container = self.find(&id.container)?;
        let open = container.uncommitted.get(&id.blob);
        let open = open.filter(|open| open.is_kept(now_s));
        let uncommitted = |block: &Vec<u8>| open.and_then(|open| open.blocks.get(block));
        let committed = |block: &Vec<u8>| {
            let found = old.iter().find(|(id, _)| id.as_ref() == Some(block));
            found.map(|(_, bytes)| bytes)
        };
        let mut blocks = Vec::new();
        for (place, (source, block)) in list.iter().enumerate() {
            // "The same block may be named again, in the same list": but not from another list.
            let mut before = list[..place].iter();
            if before.any(|(other, named)| named == block && other != source) {
                return Err(ErrorCode::InvalidBlockList.into());
            }
            let found = match source {
                BlockSource::Committed => committed(block),
                BlockSource::Uncommitted => uncommitted(block),
                BlockSource::Latest => uncommitted(block).or_else(|| committed(block)),
            };
            let bytes = found.ok_or(ErrorCode::InvalidBlockList)?;
            blocks.push((Some(block.clone()), bytes.clone()));
        }
        let made = self.make(id, Bytes::Blocks(blocks), labels);
        Ok(made.written(201))
    }

    pub(crate) fn get_block_list(&mut self, id: &BlobId, given: Option<LeaseId>) -> Answer {
        let now_s = self.now_s;
        let container = self.find(&id.container)?;
        let open = container.uncommitted.get(&id.blob);
        let open = open.filter(|open| open.is_kept(now_s));
        let blob = container.blobs.get(&id.blob);
        if blob.is_none() && open.is_none() {
            return Err(ErrorCode::BlobNotFound.into());
        }
        let lease = blob.map_or(Lease::Available, |blob| blob.lease.at(now_s));
        lease::check_use(Of::Blob, lease, given)?;
        let committed = committed(blob)?;
        let committed = committed
            .iter()
            .filter_map(|(id, bytes)| Some((id.clone()?, bytes.len() as u64)))
            .collect();
        let uncommitted = open
            .into_iter()
            .flat_map(|open| &open.blocks)
            .map(|(id, bytes)| (id.clone(), bytes.len() as u64))
            .collect();
        Ok(Expected::ok(200).with(Fact::Blocks(committed, uncommitted)))
    }
}
