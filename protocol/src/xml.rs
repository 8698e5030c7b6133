//! XML documents of the wire: one file per family, over one writer and one reader.
//!
//! Written documents start with a UTF-8 byte order mark, are one line and have their elements in
//! the order of the recordings. The reader limits depth and number of elements and knows only the
//! five predefined entities of XML.

pub mod acl;
pub mod block_list;
pub mod error;
pub mod list_blobs;
pub mod list_containers;
pub mod list_queues;
pub mod message;
pub mod page_list;
pub mod read;
pub mod service_properties;
pub mod user_delegation_key;
pub mod write;

pub use acl::{SignedIdentifier, SignedIdentifiersDocument};
pub use block_list::{BlockListDocument, BlockListEntry, BlockSource, read_block_list};
pub use error::ErrorDocument;
pub use list_blobs::{BlobContent, BlobCopy, BlobEntry, BlobLease, BlobRights, ListBlobsDocument};
pub use list_containers::{ContainerEntry, ListContainersDocument};
pub use list_queues::ListQueuesDocument;
pub use message::{MessageEntry, QueueMessagesDocument, read_queue_message};
pub use page_list::PageListDocument;
pub use read::{Element, read_document};
pub use service_properties::{
    CorsRule, DeleteRetention, LogVersion, Logging, Metrics, Retention, ServiceProperties,
    ServicePropertiesUpdate, StaticWebsite,
};
pub use user_delegation_key::{KeyInfo, UserDelegationKeyDocument};
pub use write::{ListHead, XmlWriter};
