//! Partitioned queues: beyond what one queue gives (2,000 messages a second), several take its
//! place, and the number of them can be changed while everybody works.
//!
//! - [`Partitions`] is the set: it knows where the [`map`] lies, resizes it, and retires what has
//!   drained.
//! - [`PartitionSender`] puts messages by key: the same key goes to the same queue ([`hash`]).
//! - [`PartitionedListener`] is one [`QueueListener`](crate::QueueListener) per queue under one
//!   handler.
//!
//! ```no_run
//! # async fn example(storage: std::sync::Arc<dyn smalt_sleeve::port::Storage>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use smalt_listener::partition::{PartitionSender, PartitionSettings, Partitions};
//! use smalt_listener::payload::SendOptions;
//!
//! let settings = PartitionSettings::new("orders", 4, "ops");
//! let partitions = Arc::new(Partitions::new(storage, settings)?);
//! let sender = PartitionSender::new(Arc::clone(&partitions), Default::default(), None, 1)?;
//! sender.send(b"customer-17", b"an order", SendOptions::default()).await?;
//! partitions.resize(8).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! No message whose `send` returned `Ok` is stranded by a resize, whenever it happens and whoever
//! crashes meanwhile; [`map`] says by what rules. A message may be put twice by a sender that stood
//! still during a resize. Messages have no order, neither before nor after.

pub mod hash;
mod listen;
pub mod map;
mod sender;
mod set;

pub use listen::PartitionedListener;
pub use map::{Map, PARTITIONS_MAX};
pub use sender::PartitionSender;
pub use set::{PartitionError, PartitionSettings, Partitions};
