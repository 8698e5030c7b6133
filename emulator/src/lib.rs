//! Azure Blob and Queue Storage, in process or as one binary.

pub mod clock;
pub mod disk;
pub mod ids;
pub mod store;
