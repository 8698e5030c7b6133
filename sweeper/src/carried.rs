//! Properties that Copy Blob does not copy by itself: index tags and the access tier.

use smalt_sleeve::port::{
    BlobId, BlobKind, BlobProperties, ErrorKind, Metadata, PortError, Storage,
};

use crate::config::TagPolicy;
use crate::rule::asks_for_tags;
use crate::shared::Core;

/// Returns the index tags for the copy of a blob, or `None` if it gets none. Makes a call only if
/// the blob has tags. Tags have no version, so a change after this read is lost.
pub(crate) async fn tags(
    core: &Core,
    page: &str,
    storage: &dyn Storage,
    blob: &BlobId,
    seen: &BlobProperties,
) -> Result<Option<Metadata>, PortError> {
    let policy = core.config.dead.index_tags;
    if seen.tag_count == 0 || policy == TagPolicy::Drop {
        return Ok(None);
    }
    match core.paced(storage, page).blob_tags(blob).await {
        Ok(tags) => Ok(Some(tags).filter(|tags| !tags.is_empty())),
        Err(error) if policy == TagPolicy::Try && is_forbidden(&error) => {
            tracing::warn!(blob = blob.name, %error, "copying without index tags");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Adds the index tags to the properties of a single blob, if a rule needs them. The tags stay
/// unknown if they cannot be read.
pub(crate) async fn with_tags(
    core: &Core,
    storage: &dyn Storage,
    blob: &BlobId,
    mut seen: BlobProperties,
) -> BlobProperties {
    if seen.tag_count > 0 && seen.tags.is_none() && asks_for_tags(&core.policy().rules) {
        seen.tags = core.paced(storage, "").blob_tags(blob).await.ok();
    }
    seen
}

/// Returns whether the permission to read the tags is missing.
pub(crate) fn is_forbidden(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::Denied | ErrorKind::Refused)
}

/// Returns the tier to set on the copy. Without one it gets the account's default, which costs more
/// than the cooler tiers.
pub(crate) fn tier(seen: &BlobProperties) -> Option<String> {
    let tier = seen.access_tier.as_deref()?;
    let cooler = seen.kind == BlobKind::Block && matches!(tier, "Cool" | "Cold");
    cooler.then(|| tier.to_owned())
}
