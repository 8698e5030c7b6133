//! Deletes or moves blobs whose `TimeToLive` has passed, safely.

pub mod decide;
pub mod destination;
pub mod glob;
pub mod guard;
pub mod outcome;
pub mod schedule;
pub mod span;
pub mod state;
pub mod ttl;
pub mod uri;
