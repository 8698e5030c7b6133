//! Operations on tables and entities.

pub mod acl;
pub mod answer;
pub mod change;
pub mod create;
pub mod delete;
pub mod get;
pub mod list;
pub mod name;
pub mod parameters;
pub mod query;
pub mod range;
pub mod scan;
pub mod transaction;
pub mod write;
