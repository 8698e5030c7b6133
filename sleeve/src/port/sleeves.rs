//! Values of the operations that only sleeves have.

use super::{Metadata, Tag};

/// The properties of a blob that Set Blob Properties replaces, all at once: what is `None` is
/// removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlobHeaders {
    /// `Content-Type`.
    pub content_type: Option<String>,
    /// `Content-Encoding`.
    pub content_encoding: Option<String>,
    /// `Content-Language`.
    pub content_language: Option<String>,
    /// `Content-MD5` in Base64; the service stores it without checking it.
    pub content_md5: Option<String>,
    /// `Content-Disposition`.
    pub content_disposition: Option<String>,
    /// `Cache-Control`.
    pub cache_control: Option<String>,
}

/// Who may read a container without credentials (`x-ms-blob-public-access`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PublicAccess {
    /// Nobody.
    #[default]
    Private,
    /// Everybody may read its blobs, and not list them.
    Blob,
    /// Everybody may list and read its blobs.
    Container,
}

/// Properties and metadata of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerProperties {
    /// ETag of this version.
    pub etag: Tag,
    /// Who may read it without credentials.
    pub access: PublicAccess,
    /// User metadata.
    pub metadata: Metadata,
}
