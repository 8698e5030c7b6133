//! Histories of one client of the Table service: what they ask, as requests, and what they are
//! answered.
//!
//! They are histories like those of blobs and queues ([`crate::histories`]), judged by the same
//! model, counted, made small and printed in the same way. Only what they ask is drawn in another
//! way: a step says what is meant, and what it asks for follows from what the model has by then.
//!
//! # Layout
//! - [`generate`]: what is asked; [`machine`]: histories of it, for proptest.
//! - [`requests`]: an operation as a request; [`answers`]: what the answer shows.

pub mod answers;
pub mod generate;
pub mod machine;
pub mod requests;

/// Pages that one query may take: more is a token that leads in a circle.
pub const PAGES_MAX: usize = 200;
