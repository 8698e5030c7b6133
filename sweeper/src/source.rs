//! Returns the source URL from which the destination's account can copy, signed if necessary.
//!
//! All credentials, and copies within one account, work the same way. Within one account a token
//! would work without a SAS, but not if the destination is in another account.

use std::time::Duration;

use smalt_sleeve::port::{BlobId, PortResult, Storage};

use crate::shared::Core;

/// Lifetime of the SAS with which the destination's account reads the source; longer than any copy.
const READ_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// Returns the URL to copy a blob from. For an account opened with an Entra ID token, fetches the
/// signing key from the service first, in one call for all waiting tasks.
pub(crate) async fn url(
    core: &Core,
    storage: &dyn Storage,
    blob: &BlobId,
    page: &str,
) -> PortResult<String> {
    if storage.lacks_signing_key(READ_LIFETIME) {
        let _turn = core.signing.lock().await;
        // Another task may have fetched the key in the meantime.
        if storage.lacks_signing_key(READ_LIFETIME) {
            let account = core.paced(storage, page);
            account.fetch_signing_key(READ_LIFETIME).await?;
        }
    }
    // The storage client signs by this machine's clock, and the service judges by its own.
    storage.readable_url(blob, READ_LIFETIME + core.ahead())
}
