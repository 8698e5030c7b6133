//! Containers, their listings, leases and service properties, through a client.

mod data_lake;
mod lifecycle;
mod logs;
mod restoring;
mod website;
mod worm;
