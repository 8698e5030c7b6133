//! Operations on a container (G1, G2). The service compares no ETags of containers, so a tracked
//! write is refused rather than sent without its condition.

use super::ContainerSleeve;
use crate::port::{BlobPage, ContainerProperties, ListBlobs, PortResult, PublicAccess};

impl ContainerSleeve<'_> {
    /// Create Container. Returns whether it was created; `false` if it already exists.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn create(&self, access: PublicAccess) -> PortResult<(bool, Self)> {
        let (created, etag) = self.client.create(access).await?;
        let next = etag.map_or_else(|| self.clone(), |etag| self.after(&etag));
        Ok((created, next))
    }

    /// Get Container Properties, with metadata.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn properties(&self) -> PortResult<(ContainerProperties, Self)> {
        let properties = self.client.head().await?;
        let next = self.after(&properties.etag);
        Ok((properties, next))
    }

    /// Set Container ACL: sets who may read without credentials, and keeps the stored access
    /// policies that it finds.
    ///
    /// # Errors
    /// As typed by the service; [`Invalid`](crate::ErrorKind::Invalid) while an ETag is tracked.
    pub async fn set_access(&self, access: PublicAccess) -> PortResult<Self> {
        self.untracked("Set Container ACL")?;
        let etag = self.client.set_access(access).await?;
        Ok(self.after(&etag))
    }

    /// List Blobs: one page.
    ///
    /// # Errors
    /// As typed by the service.
    pub async fn list(&self, list: &ListBlobs) -> PortResult<BlobPage> {
        self.client.list(list).await
    }

    /// Delete Container.
    ///
    /// # Errors
    /// As typed by the service; [`Invalid`](crate::ErrorKind::Invalid) while an ETag is tracked.
    pub async fn delete(&self) -> PortResult<Self> {
        self.untracked("Delete Container")?;
        self.client.delete().await?;
        Ok(self.gone())
    }
}
