//! Operations on the Blob service of an account.

pub mod account_info;
pub mod list_containers;
