//! The Table service: EDM values, entities and keys, and their forms in JSON, Atom, URLs, filters,
//! continuation tokens and batches.
//!
//! Pages: *Understanding the Table Service Data Model*, *Payload format for Table service
//! operations*, *Querying tables and entities*, *Performing entity group transactions*. Recordings
//! take precedence where they show more.
//!
//! - [`value`], [`entity`], [`name`], [`key`], [`tag`]: stored data.
//! - [`address`], [`query`], [`filter`], [`format`](mod@format): the parts of a request.
//! - [`payload`]: the documents of requests and answers, over [`literal`]. [`batch`]: several
//!   requests in one. [`continuation`]: the start of the next page.

pub mod address;
mod atom;
pub mod batch;
mod body;
pub mod continuation;
pub mod entity;
pub mod filter;
pub mod format;
mod json;
pub mod key;
pub mod literal;
pub mod name;
pub mod payload;
pub mod query;
pub mod serde_bytes;
pub mod tag;
pub mod value;

pub use address::Resource;
pub use entity::{Entity, EntityBody, Fields, Properties, Property};
pub use filter::{Filter, Interval, KeyRange};
pub use format::{BodyFormat, Format, Metadata};
pub use name::TableName;
pub use payload::Scope;
pub use query::Select;
pub use tag::{EntityTag, IfMatch};
pub use value::{EdmType, Value, ValueRef};
