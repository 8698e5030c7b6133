//! The operations, one file each; `register` lists them.

pub mod batch;
pub mod blob;
pub mod container;
pub mod deletion;
pub mod dfs;
pub mod leasing;
pub mod listing;
pub mod lookup;
pub mod marker;
pub mod paging;
pub mod policies;
pub mod queue;
pub mod service;
pub mod table;
pub mod tree;
