//! Operations on a service of an account; properties and statistics of all three services.

pub mod account_info;
pub mod data_lake;
pub mod find_blobs;
pub mod list_containers;
pub mod preflight;
pub mod properties;
pub mod stats;
pub mod user_delegation_key;
