//! How the destination's account may read what is copied: the source's URL, signed where it has to
//! be.
//!
//! One way for every credential, and for copies within one account, too: there a token would do
//! without a SAS, but a destination that turns out to be another account's would not.

use std::time::Duration;

use smalt_sleeve::port::{BlobId, PortResult, Storage};

use crate::shared::Core;

/// How long the destination's account may read the source: longer than any copy may take.
const READ_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// The URL to copy a blob from. Where a token of Entra ID opens the account, what signs it is a key
/// that the service is asked for, by one call for all who wait for it.
pub(crate) async fn url(
    core: &Core,
    storage: &dyn Storage,
    blob: &BlobId,
    page: &str,
) -> PortResult<String> {
    if storage.lacks_signing_key(READ_LIFETIME) {
        let _turn = core.signing.lock().await;
        // Whoever came first has it by now.
        if storage.lacks_signing_key(READ_LIFETIME) {
            let account = core.paced(storage, page);
            account.fetch_signing_key(READ_LIFETIME).await?;
        }
    }
    storage.readable_url(blob, READ_LIFETIME)
}
