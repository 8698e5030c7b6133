//! Events of blobs: which operation raises which, how they are delivered, and what never happens.

mod delivery;
mod later;
mod raised;
mod random;
mod webhooks;
mod world;
