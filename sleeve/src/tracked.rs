//! A blob whose version is watched over a sequence of calls (Gridwich: *ETag tracking*).
//!
//! Read the metadata, decide, delete: if the blob changed in between, the delete must fail, and the
//! sequence starts again. The rules:
//!
//! - Every answer that carries a tag stores it (G13). The tag is opaque (G10).
//! - Tracking, off at first, decides only whether the *next* call uses the stored tag.
//! - A null or empty tag is never sent: no tag, no check.
//! - After a delete there is no tag any more (DG2). A failed call changes nothing.
//! - The state belongs to one session that one task drives: every call takes `&mut self`, so two
//!   calls cannot race on the tag (DG5). What a call sends is fixed when it starts.
//! - Starting again is bounded and waits a little longer each time ([`TrackedBlob::with_restarts`],
//!   DG3).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{ErrorKind, PortError};
use crate::port::{
    BlobId, BlobProperties, CallContext, Conditions, DeleteSnapshots, Downloaded, Metadata,
    PortResult, PutBlob, Storage, Tag,
};

/// Longest wait before a sequence starts again for the first time; it doubles.
const RESTART_DELAY: Duration = Duration::from_millis(50);

/// A session on one blob under one operation context.
pub struct TrackedBlob {
    storage: Arc<dyn Storage>,
    blob: BlobId,
    cx: CallContext,
    etag: Option<Tag>,
    tracking: bool,
}

impl TrackedBlob {
    /// A session without a tag, not tracking.
    pub fn new(storage: Arc<dyn Storage>, blob: BlobId, cx: CallContext) -> Self {
        TrackedBlob {
            storage,
            blob,
            cx,
            etag: None,
            tracking: false,
        }
    }

    /// The blob.
    pub fn blob(&self) -> &BlobId {
        &self.blob
    }

    /// The stored tag.
    pub fn etag(&self) -> Option<&Tag> {
        self.etag.as_ref()
    }

    /// Whether the next call uses the stored tag.
    pub fn is_tracking(&self) -> bool {
        self.tracking
    }

    /// Switches tracking on or off, from the next call on.
    pub fn set_tracking(&mut self, tracking: bool) {
        self.tracking = tracking;
    }

    /// Mutes or unmutes the calls from the next one on; the stored tag stays (G8).
    pub fn set_muted(&mut self, muted: bool) {
        self.cx.muted = muted;
    }

    /// Get Blob Properties.
    ///
    /// # Errors
    /// Those of the port; [`ErrorKind::ConditionNotMet`] when tracking and another version is
    /// there.
    pub async fn properties(&mut self) -> PortResult<BlobProperties> {
        let (properties, _) = self.storage.blob_properties(&self.cx, &self.blob).await?;
        self.same_version("Get Blob Properties", &properties.etag)?;
        self.store(&properties.etag);
        Ok(properties)
    }

    /// Get Blob, at most `most_bytes`.
    ///
    /// # Errors
    /// As for [`TrackedBlob::properties`].
    pub async fn get(&mut self, most_bytes: u64) -> PortResult<Downloaded> {
        let downloaded = self
            .storage
            .get_blob(&self.cx, &self.blob, most_bytes)
            .await?;
        self.same_version("Get Blob", &downloaded.properties.etag)?;
        self.store(&downloaded.properties.etag);
        Ok(downloaded)
    }

    /// Put Blob.
    ///
    /// # Errors
    /// Those of the port.
    pub async fn put(&mut self, content: Bytes, put: PutBlob) -> PortResult<Tag> {
        let put = PutBlob {
            conditions: self.conditions(put.conditions),
            ..put
        };
        let written = self
            .storage
            .put_blob(&self.cx, &self.blob, content, &put)
            .await?;
        self.store(&written.etag);
        Ok(written.etag)
    }

    /// Set Blob Metadata.
    ///
    /// # Errors
    /// Those of the port.
    pub async fn set_metadata(&mut self, metadata: &Metadata) -> PortResult<Tag> {
        let conditions = self.conditions(Conditions::default());
        let storage = &self.storage;
        let written = storage
            .set_blob_metadata(&self.cx, &self.blob, metadata, &conditions)
            .await?;
        self.store(&written.etag);
        Ok(written.etag)
    }

    /// Delete Blob. Its answer carries no tag: the stored one is cleared.
    ///
    /// # Errors
    /// Those of the port.
    pub async fn delete(&mut self, snapshots: DeleteSnapshots) -> PortResult<()> {
        let conditions = self.conditions(Conditions::default());
        let storage = &self.storage;
        storage
            .delete_blob(&self.cx, &self.blob, &conditions, snapshots)
            .await?;
        self.etag = None;
        Ok(())
    }

    /// Runs a sequence of calls, and runs it again in a fresh session while another version gets in
    /// its way: at most `rounds_max` times, waiting longer each time. `jitter` (0.0 to 1.0) spreads
    /// the waits of workers that contend.
    ///
    /// # Errors
    /// The first error other than [`ErrorKind::ConditionNotMet`], or that one after the last round.
    pub async fn with_restarts<T, F>(
        storage: Arc<dyn Storage>,
        blob: BlobId,
        cx: CallContext,
        rounds_max: u32,
        mut jitter: impl FnMut() -> f64 + Send,
        mut sequence: F,
    ) -> PortResult<T>
    where
        F: AsyncFnMut(&mut TrackedBlob) -> PortResult<T>,
    {
        let mut round = 1;
        loop {
            let mut session = TrackedBlob::new(Arc::clone(&storage), blob.clone(), cx.clone());
            match sequence(&mut session).await {
                Err(error) if error.kind == ErrorKind::ConditionNotMet && round < rounds_max => {
                    let most = RESTART_DELAY.saturating_mul(2u32.saturating_pow(round - 1));
                    tokio::time::sleep(most.mul_f64(jitter().clamp(0.0, 1.0))).await;
                    round += 1;
                }
                done => return done,
            }
        }
    }

    /// The caller's conditions plus the stored tag, when it is to be used.
    fn conditions(&self, given: Conditions) -> Conditions {
        match &self.etag {
            Some(tag) if self.tracking && !given.if_absent => Conditions {
                if_match: Some(tag.clone()),
                ..given
            },
            _ => given,
        }
    }

    /// Reads cannot be conditional in the port; comparing afterwards means the same.
    fn same_version(&self, operation: &'static str, found: &Tag) -> PortResult<()> {
        match &self.etag {
            Some(known) if self.tracking && known != found => Err(PortError {
                kind: ErrorKind::ConditionNotMet,
                status: None,
                code: None,
                retry_after: None,
                operation,
                resource: format!("{}/{}", self.blob.container, self.blob.name),
                message: "another version is there than the one that is tracked".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    fn store(&mut self, tag: &Tag) {
        if !tag.0.trim().is_empty() {
            self.etag = Some(tag.clone());
        }
    }
}
