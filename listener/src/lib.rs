//! Processes a storage queue with your handler, on Azure, Azurite, smalt or any other service that
//! the storage port can use.
//!
//! # Layout
//!
//! - [`QueueListener`] is what an application embeds; [`ListenerConfig`] its settings; [`Report`]
//!   its totals; [`Decision`] the result for one message.
//! - [`handler`]: handlers of messages: an async function, a command, an HTTP endpoint.
//! - [`rules`]: back-off, retry curve, scaling, dispatch, envelope: pure functions.
//! - [`payload`]: large payloads in blobs, and the sender of messages.
//! - [`notify`]: events that wake the listeners of other processes.
//! - [`partition`]: partitioned queues, and their resize.
//! - [`config`]: TOML file, flags, secrets. [`metrics`]: an observer that counts, and its text.
//! - `controller` owns the `pool` of `poller` tasks; a poller passes each message to an owner
//!   (`message`), which alone uses its lock (`renew`), runs its handler (`run`) and settles it
//!   (`settle`, `poison`). `calls` makes all requests, through the bucket of `throttle`.
//!
//! # What is promised
//!
//! - A message is deleted only after its handler succeeded or its copy in the poison queue is
//!   durable.
//! - Only the newest receipt is used; after the lock is lost nothing is acknowledged.
//! - A failure, hang or panic of one message affects no other message.
//! - Every message ends in exactly one [`Outcome`], on one line of the log.
//! - Delivery is at least once. The process remembers messages that were handled but could not be
//!   deleted, which reduces duplicates but does not exclude them.

pub mod agent;
mod builder;
mod calls;
pub mod config;
mod controller;
pub mod handler;
mod jitter;
mod listener;
mod message;
pub mod metrics;
pub mod notify;
pub mod observers;
pub mod partition;
pub mod payload;
mod poller;
mod pool;
mod renew;
mod report;
pub mod rules;
mod run;
mod sentinel;
mod settle;
mod shared;
mod signal;
mod sync;
mod throttle;
mod waker;

pub use builder::{ListenerBuilder, NoHandler};
pub use config::{ConfigError, ListenerConfig, SentinelConfig};
pub use listener::QueueListener;
pub use observers::Observer;
pub use report::{Decision, Ended, ListenerError, Outcome, PoolState, PoolStatus, Report};
pub use smalt_worker::budget::Budget;
pub use throttle::{ACCOUNT_RATE_PER_S, AccountLimit};
pub use waker::Waker;
