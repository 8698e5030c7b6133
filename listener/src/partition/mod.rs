//! Partitioned queues: several queues for more messages than one can take (2,000 a second). Their
//! number can change during operation.
//!
//! - [`Partitions`] is the set: it stores the [`map`], resizes it, and retires drained queues.
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
//! No resize strands a message whose `send` returned `Ok`, whenever it happens and whichever
//! process crashes meanwhile; [`map`] states the rules. A sender that stalls during a resize may
//! put a message twice. Messages have no order, neither before nor after a resize.

pub mod hash;
mod listen;
pub mod map;
mod sender;
mod set;

pub use listen::PartitionedListener;
pub use map::{Map, PARTITIONS_MAX};
pub use sender::PartitionSender;
pub use set::{PartitionError, PartitionSettings, Partitions};
