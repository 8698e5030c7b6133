//! Histories of one client of the Table service: operations, their requests and their answers.
//!
//! They are like the histories of blobs and queues ([`crate::histories`]): checked by the same
//! model, counted, reduced and printed in the same way. Only the generator differs: a step states
//! an intention, and the model's state determines the operation.
//!
//! # Layout
//! - [`generate`]: the operations; [`machine`]: histories for proptest.
//! - [`requests`]: operations as requests; [`answers`]: parses and checks answers.

pub mod answers;
pub mod generate;
pub mod machine;
pub mod requests;

/// Maximum number of pages of a query; more means that a continuation token leads in a circle.
pub const PAGES_MAX: usize = 200;
