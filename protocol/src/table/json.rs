//! JSON of tables and entities.

pub(crate) mod read;
pub(crate) mod write;
