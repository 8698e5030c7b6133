//! A storage account as one worker calls it: rate-limited, counted, and retried after transient
//! failures.

use std::time::Duration;

use bytes::Bytes;
use smalt_protocol::Timestamp;
use smalt_sleeve::port::{
    BlobId, BlobPage, BlobProperties, CallContext, Conditions, CopyStarted, DeleteSnapshots,
    Downloaded, ListBlobs, Metadata, PortResult, PutBlob, StartCopy, Storage, Tag, Written,
};

use crate::shared::Core;

/// An account, called on behalf of one page or command.
pub(crate) struct Paced<'a> {
    core: &'a Core,
    pub(crate) storage: &'a dyn Storage,
    context: CallContext,
}

impl Core {
    /// Wraps a storage account; `page` goes into the context of each request.
    pub(crate) fn paced<'a>(&'a self, storage: &'a dyn Storage, page: &str) -> Paced<'a> {
        Paced {
            core: self,
            storage,
            context: self.context(page),
        }
    }
}

/// Defines the port's calls under their own names.
macro_rules! calls {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $output:ty;)*) => {$(
        pub(crate) async fn $name(&self, $($argument: $kind),*) -> PortResult<$output> {
            let call = || self.storage.$name(&self.context, $($argument),*);
            let core = self.core;
            core.calls.repeated(&core.entropy, stringify!($name), call).await
        }
    )*};
}

impl Paced<'_> {
    calls! {
        blob_properties(blob: &BlobId) -> (BlobProperties, Timestamp);
        blob_tags(blob: &BlobId) -> Metadata;
        break_lease(blob: &BlobId) -> bool;
        create_container(container: &str) -> bool;
        delete_blob(blob: &BlobId, on: &Conditions, snapshots: DeleteSnapshots) -> ();
        get_blob(blob: &BlobId, bytes_max: u64) -> Downloaded;
        get_blob_range(blob: &BlobId, version: &Tag, from: u64, bytes: u64) -> Bytes;
        has_snapshots(blob: &BlobId) -> bool;
        list_blobs(container: &str, list: &ListBlobs) -> BlobPage;
        set_blob_metadata(blob: &BlobId, metadata: &Metadata, on: &Conditions) -> Written;
        start_copy(blob: &BlobId, copy: &StartCopy) -> CopyStarted;
    }

    pub(crate) async fn put_blob(
        &self,
        blob: &BlobId,
        content: Bytes,
        put: &PutBlob,
    ) -> PortResult<Written> {
        let call = || {
            self.storage
                .put_blob(&self.context, blob, content.clone(), put)
        };
        let core = self.core;
        core.calls.repeated(&core.entropy, "put_blob", call).await
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.core.stop.is_set()
    }

    /// Fetches the key that signs blob URLs, for accounts opened with a token.
    pub(crate) async fn fetch_signing_key(&self, lifetime: Duration) -> PortResult<()> {
        let call = || self.storage.fetch_signing_key(&self.context, lifetime);
        let (core, operation) = (self.core, "user_delegation_key");
        core.calls.repeated(&core.entropy, operation, call).await
    }
}
