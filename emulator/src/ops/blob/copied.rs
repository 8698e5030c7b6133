//! Shared code of the copying operations: what is copied from the source and what the request
//! overrides.
//!
//! Sources: "Copy Blob", "Copy Blob From URL", "Put Blob From URL". Metadata is copied unless the
//! request has its own; tags are copied only if the request asks for it; the tier never is.

use smalt_protocol::{ErrorCode, Metadata, StorageError, Timestamp};

use super::content;
use super::replace::Marks;
use super::source::{self, Source};
use super::{guard, headers, immutability};
use crate::call::Call;
use crate::config::DefaultTier;
use crate::faults::Hold;
use crate::ops::lookup::Place;
use crate::records::{Access, BlobContent, BlobKind, BlobRecord, CopyRecord, CopyStatus};
use crate::rules::tier;
use crate::store::{self, Staged, Stamp, StoreResult, Transaction};

/// Access tiers of page blobs. "Set Blob Tier".
const PAGE_TIERS: [&str; 14] = [
    "P1", "P2", "P3", "P4", "P6", "P10", "P15", "P20", "P30", "P40", "P50", "P60", "P70", "P80",
];

/// Values of a request that override those of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overrides {
    metadata: Metadata,
    /// Whether the source's metadata is copied when the request has none.
    pub takes_metadata: bool,
    tags: Tags,
    tier: Option<String>,
    priority: &'static str,
    sealed: Option<bool>,
    marks: Marks,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tags {
    Given(Vec<(String, String)>),
    Source,
}

impl Overrides {
    /// Parses metadata, tags, `x-ms-copy-source-tag-option`, tier and seal.
    ///
    /// # Errors
    /// 400 `InvalidHeaderValue`, 400 `BothUserTagsAndSourceTagsCopyPresentException`, and those of
    /// metadata and tags.
    pub fn of(call: &Call) -> Result<Self, StorageError> {
        Ok(Overrides {
            metadata: call.metadata()?,
            takes_metadata: true,
            tags: tags(call)?,
            tier: tier(call)?,
            priority: headers::rehydrate_priority(call)?,
            sealed: sealed(call)?,
            marks: immutability::marks(call)?,
        })
    }

    /// Returns the metadata of the copy.
    pub fn metadata(&self, source: &BlobRecord) -> Metadata {
        if self.metadata.is_empty() && self.takes_metadata {
            source.metadata.clone()
        } else {
            self.metadata.clone()
        }
    }

    /// Returns the tags of the copy.
    pub fn tags(&self, source: &BlobRecord) -> Vec<(String, String)> {
        match &self.tags {
            Tags::Given(tags) => tags.clone(),
            Tags::Source => source.tags.clone(),
        }
    }

    /// Returns the access tier of the copy.
    pub fn access(&self, now: Timestamp) -> Access {
        // Recorded: the tier that a page blob is created with does not count as a change.
        let is_page_tier = |tier: &str| PAGE_TIERS.contains(&tier);
        let changing = self.tier.as_deref().filter(|tier| !is_page_tier(tier));
        Access {
            changed: changing.map(|_| now),
            tier: self.tier.clone(),
            rehydration: None,
        }
    }

    /// Returns immutability policy and legal hold of the request, and the seal of an append blob's
    /// copy: the source's, unless the request says otherwise.
    pub fn marks(&self, source: &BlobRecord) -> Marks {
        Marks {
            sealed: source.kind == BlobKind::Append && self.sealed.unwrap_or(source.sealed),
            ..self.marks
        }
    }

    /// Returns how long the copy of an archived source is pending while the source is rehydrated.
    pub fn thaw(&self, source: &BlobRecord) -> Option<Hold> {
        let is_archived = guard::check_online(source).is_err();
        is_archived.then(|| Hold {
            duration_s: Some(tier::rehydration_s(self.priority)),
            bytes_per_s: None,
            failure: None,
        })
    }

    /// Whether the request gives a tier with readable bytes.
    pub fn has_online_tier(&self) -> bool {
        self.tier.as_deref().is_some_and(|tier| tier != "Archive")
    }

    /// Checks that a blob of this kind can have the tier.
    ///
    /// # Errors
    /// 400 `AccessTierNotSupportedForBlobType`.
    pub fn check_tier(&self, kind: BlobKind) -> Result<(), StorageError> {
        let Some(tier) = &self.tier else {
            return Ok(());
        };
        let is_of_pages = PAGE_TIERS.contains(&tier.as_str());
        match kind {
            BlobKind::Block if !is_of_pages => Ok(()),
            BlobKind::Page if is_of_pages => Ok(()),
            _ => Err(ErrorCode::AccessTierNotSupportedForBlobType.into()),
        }
    }

    /// Checks that the tags of the source may be read if they are copied.
    ///
    /// # Errors
    /// 403 `CannotVerifyCopySource` for a source that was opened without the right to its tags.
    pub fn check_tags(&self, source: &Source) -> Result<(), StorageError> {
        if self.tags == Tags::Source && !source.may_read_tags {
            let refusal = ErrorCode::AuthorizationPermissionMismatch.into();
            return Err(source::refused(&refusal));
        }
        Ok(())
    }
}

fn tags(call: &Call) -> Result<Tags, StorageError> {
    const OPTION: &str = "x-ms-copy-source-tag-option";
    let given = headers::tags(call)?;
    match call.header(OPTION)? {
        Some(option) if option.eq_ignore_ascii_case("COPY") => {
            if given.is_empty() {
                Ok(Tags::Source)
            } else {
                Err(ErrorCode::BothUserTagsAndSourceTagsCopyPresentException.into())
            }
        }
        Some(option) if !option.is_empty() && !option.eq_ignore_ascii_case("REPLACE") => {
            Err(StorageError::invalid_header(OPTION, option))
        }
        _ => Ok(Tags::Given(given)),
    }
}

fn sealed(call: &Call) -> Result<Option<bool>, StorageError> {
    const NAME: &str = "x-ms-seal-blob";
    match call.header(NAME)? {
        None => Ok(None),
        Some(text) if text.eq_ignore_ascii_case("true") => Ok(Some(true)),
        Some(text) if text.eq_ignore_ascii_case("false") => Ok(Some(false)),
        Some(text) => Err(StorageError::invalid_header(NAME, text)),
    }
}

fn tier(call: &Call) -> Result<Option<String>, StorageError> {
    let given = call.header("x-ms-access-tier")?.unwrap_or_default();
    let page = PAGE_TIERS
        .iter()
        .find(|tier| tier.eq_ignore_ascii_case(given));
    match page {
        // Only premium accounts have these tiers.
        Some(_) if call.settings.default_tier != DefaultTier::Premium => {
            Err(ErrorCode::AccessTierNotSupportedForBlobType.into())
        }
        Some(tier) => Ok(Some((*tier).to_owned())),
        None => headers::block_blob_tier(call),
    }
}

/// Rejects a copy onto an existing blob if the caller may only create blobs, and one onto a blob of
/// another kind.
///
/// # Errors
/// 403 `UnauthorizedBlobOverwrite`, 409 `InvalidBlobType`.
pub fn check_overwrite(
    place: &Place,
    may_overwrite: bool,
    kind: Option<BlobKind>,
) -> Result<(), StorageError> {
    match (&place.blob, kind) {
        (Some(_), _) if !may_overwrite => Err(ErrorCode::UnauthorizedBlobOverwrite.into()),
        (Some(blob), Some(kind)) if blob.kind != kind => Err(ErrorCode::InvalidBlobType.into()),
        _ => Ok(()),
    }
}

/// Returns the content of a copy: the bytes staged for it, otherwise the source's content, shared.
///
/// # Errors
/// When the store fails.
pub fn content(
    tx: &mut Transaction<'_>,
    staged: Option<Staged>,
    source: &BlobRecord,
) -> StoreResult<BlobContent> {
    match staged {
        Some(staged) if staged.is_empty() => Ok(BlobContent::Empty),
        Some(staged) => Ok(BlobContent::Payload(store::adopt(tx, staged)?)),
        None => {
            content::retain(tx, source.content)?;
            Ok(source.content)
        }
    }
}

/// Drops the block ids of a content: a blob that is put from a URL does not have a block list, for
/// "the block list isn't preserved".
///
/// # Errors
/// When the store fails.
pub fn without_ids(
    tx: &mut Transaction<'_>,
    shared: BlobContent,
    stamp: &Stamp,
) -> StoreResult<BlobContent> {
    let mut blocks = content::blocks::read(tx, shared)?;
    if blocks.iter().all(|block| block.id.is_empty()) {
        return Ok(shared);
    }
    for block in &mut blocks {
        block.id.clear();
        if let Some(payload) = block.payload {
            store::retain(tx, payload)?;
        }
    }
    content::release(tx, shared)?;
    content::blocks::write(tx, stamp.tick.ticks(), &blocks)
}

/// Returns the record of a completed copy.
pub fn finished(id: String, source: String, length: u64, now: Timestamp) -> CopyRecord {
    CopyRecord {
        id,
        source,
        status: CopyStatus::Success,
        progress: (length, length),
        completed: Some(now),
        description: None,
        pending: None,
    }
}
