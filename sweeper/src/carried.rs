//! What a copy does not take along by itself: index tags and the access tier.

use smalt_sleeve::port::{
    BlobId, BlobKind, BlobProperties, ErrorKind, Metadata, PortError, Storage,
};

use crate::config::TagPolicy;
use crate::rule::asks_for_tags;
use crate::shared::Core;

/// The index tags that a copy of this blob is to have; `None` for none. Costs a call only where the
/// blob has some. They have no version: what is changed after this reading stays behind.
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
            tracing::warn!(blob = blob.name, %error, "index tags are left behind");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// A blob that was read alone comes without its tags: they are read where a rule asks for them, and
/// stay unknown where they may not be.
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

/// Whether the tags could not be read for want of a permission.
pub(crate) fn is_forbidden(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::Denied | ErrorKind::Refused)
}

/// The tier that a copy is to have: without one it gets the account's default, which costs more
/// than the cooler tiers.
pub(crate) fn tier(seen: &BlobProperties) -> Option<String> {
    let tier = seen.access_tier.as_deref()?;
    let cooler = seen.kind == BlobKind::Block && matches!(tier, "Cool" | "Cold");
    cooler.then(|| tier.to_owned())
}
