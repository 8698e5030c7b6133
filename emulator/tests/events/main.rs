//! Events of blobs: which operation raises which, how they are delivered, and what never happens.
//! One binary, because each binary is linked separately.

mod delivery;
mod later;
mod raised;
mod random;
#[path = "../support/mod.rs"]
mod support;
mod webhooks;
mod world;
