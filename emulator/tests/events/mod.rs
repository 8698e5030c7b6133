//! Events of blobs: which operation raises which, how they are delivered, and what never happens.

mod delivery;
mod raised;
mod random;
mod world;
