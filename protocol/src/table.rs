//! The Table service's words: EDM values, entities and keys, and how JSON, Atom, URLs, filters,
//! continuation tokens and batches spell them.
//!
//! Pages: *Understanding the Table Service Data Model*, *Payload format for Table service
//! operations*, *Querying tables and entities*, *Performing entity group transactions*. Recordings
//! decide where they show more.
//!
//! - [`value`], [`entity`], [`name`], [`key`]: what is stored.

pub mod address;
pub mod entity;
pub mod format;
pub mod key;
pub mod name;
pub mod serde_bytes;
pub mod tag;
pub mod value;

pub use address::Resource;
pub use entity::{Entity, EntityBody, Properties, Property};
pub use format::{BodyFormat, Format, Metadata};
pub use name::TableName;
pub use tag::EntityTag;
pub use value::{EdmType, Value, ValueRef};
