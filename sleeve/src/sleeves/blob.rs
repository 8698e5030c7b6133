//! Operations on a block blob (G1, G2).

use std::time::Duration;

use bytes::Bytes;

use super::BlobSleeve;
use crate::port::{
    BlobHeaders, BlobProperties, Conditions, CopyStatus, DeleteSnapshots, Downloaded, Metadata,
    PortResult, PutBlob, StartCopy,
};

/// Delays between looks at a running copy: the first, and the longest.
const COPY_DELAYS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// For how long the destination's account may read the source.
const SOURCE_LIFETIME: Duration = Duration::from_secs(24 * 3_600);

/// Parameters of [`BlobSleeve::copy_from`].
#[derive(Clone, Debug, Default)]
pub struct CopyFrom {
    /// Metadata of the destination; if `None`, the source's are copied.
    pub metadata: Option<Metadata>,
    /// Tier of the destination; if `None`, the account's default.
    pub tier: Option<String>,
    /// Whether an existing destination is kept: the copy then fails with
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists).
    pub if_absent: bool,
}

impl BlobSleeve<'_> {
    /// Put Blob, as a block blob in one request. A tracked ETag replaces `put`'s `If-Match`.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn create(&self, content: Bytes, put: &PutBlob) -> PortResult<Self> {
        let put = PutBlob {
            conditions: self.on(&put.conditions),
            ..put.clone()
        };
        let written = self.client.put(content, &put).await?;
        Ok(self.after(&written.etag))
    }

    /// Get Blob, at most `most_bytes`.
    ///
    /// # Errors
    /// As typed by the service; a larger blob is an error, never truncated.
    pub async fn read(&self, most_bytes: u64) -> PortResult<(Downloaded, Self)> {
        let read = self.client.get(most_bytes, &self.conditions()).await?;
        let next = self.after(&read.properties.etag);
        Ok((read, next))
    }

    /// Get Blob Properties, with metadata.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn properties(&self) -> PortResult<(BlobProperties, Self)> {
        let (properties, _) = self.client.head(&self.conditions()).await?;
        let next = self.after(&properties.etag);
        Ok((properties, next))
    }

    /// Set Blob Metadata; replaces all metadata.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn set_metadata(&self, metadata: &Metadata) -> PortResult<Self> {
        let written = self.client.describe(metadata, &self.conditions()).await?;
        Ok(self.after(&written.etag))
    }

    /// Set Blob Properties; replaces all of them.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn set_headers(&self, headers: &BlobHeaders) -> PortResult<Self> {
        let written = self.client.set_headers(headers, &self.conditions()).await?;
        Ok(self.after(&written.etag))
    }

    /// Set Blob Tier, such as `Cool`. It changes no ETag.
    ///
    /// # Errors
    /// As typed by the service; [`Invalid`](crate::ErrorKind::Invalid) while an ETag is tracked,
    /// because the service does not compare it here.
    pub async fn set_tier(&self, tier: &str) -> PortResult<Self> {
        self.untracked("Set Blob Tier")?;
        self.client.set_tier(tier).await?;
        Ok(self.clone())
    }

    /// Delete Blob.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn delete(&self, snapshots: DeleteSnapshots) -> PortResult<Self> {
        self.client.delete(&self.conditions(), snapshots).await?;
        Ok(self.gone())
    }

    /// Copies a blob of any account onto this one (Copy Blob), and waits until the copy ends. A
    /// source that tracks its ETag is copied only as that version. The properties say how the copy
    /// ended; if it was replaced by another, they describe that one.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn copy_from(
        &self,
        source: &BlobSleeve<'_>,
        copy: &CopyFrom,
    ) -> PortResult<(BlobProperties, Self)> {
        let on = Conditions {
            if_absent: copy.if_absent,
            ..Conditions::default()
        };
        let start = StartCopy {
            source_url: source.signed_url("r", SOURCE_LIFETIME).await?,
            source_if_match: source.conditions().if_match,
            metadata: copy.metadata.clone(),
            conditions: self.on(&on),
            synchronous: false,
            tags: None,
            tier: copy.tier.clone(),
        };
        let started = self.client.copy(&start).await?;
        let (mut delay, longest) = COPY_DELAYS;
        loop {
            let (properties, _) = self.client.head(&Conditions::default()).await?;
            let state = properties
                .copy
                .as_ref()
                .filter(|copy| copy.id == started.id);
            if state.is_none_or(|copy| copy.status != CopyStatus::Pending) {
                let next = self.after(&properties.etag);
                return Ok((properties, next));
            }
            tokio::time::sleep(delay).await;
            delay = delay.saturating_mul(2).min(longest);
        }
    }

    fn on(&self, given: &Conditions) -> Conditions {
        let tracked = self.conditions().if_match;
        Conditions {
            if_match: tracked.or_else(|| given.if_match.clone()),
            ..given.clone()
        }
    }
}
