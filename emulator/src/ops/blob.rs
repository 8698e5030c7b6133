//! Operations on blobs, and what they share: [`content`] holds the bytes, [`replace`] puts a base
//! blob in place of another, [`headers`] reads and [`properties`] renders what describes a blob.

pub mod content;
pub mod headers;
pub mod properties;
pub mod replace;
