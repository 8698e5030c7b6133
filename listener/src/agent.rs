//! The agent that starts and stops instances of a listener (L10, L12): a program of its own, or a
//! part of one, beside the listeners.
//!
//! It looks at the queue from outside and at the instances through [`Instances`], so an instance
//! may be a process, a container or a machine.

mod processes;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use smalt_sleeve::port::{CallContext, PortResult, Storage};
use tokio::time::Instant;

pub use self::processes::Processes;
use crate::rules::instances::{Bounds, InstanceRule, Look};

/// The instances of a listener.
#[async_trait]
pub trait Instances: Send + Sync {
    /// Returns how many instances work, how many are starting, and the mean share of its processor
    /// that a working instance uses, from 0 to 1.
    async fn look(&mut self) -> (u32, u32, f64);

    /// Starts or stops instances until there are this many. A stopped instance drains.
    async fn set(&mut self, wanted: u32);
}

/// Looks at a queue at intervals, and sets the number of instances that process it.
pub struct Agent {
    storage: Arc<dyn Storage>,
    queue: String,
    every: Duration,
    rule: InstanceRule,
}

impl Agent {
    /// Creates an agent that looks at `queue` every `every`: two requests each time.
    pub fn new(storage: Arc<dyn Storage>, queue: &str, every: Duration, bounds: Bounds) -> Self {
        Agent {
            storage,
            queue: queue.to_owned(),
            every,
            rule: InstanceRule::new(bounds),
        }
    }

    /// Scales `instances` until `shutdown` resolves, and leaves them as they are then. A failure of
    /// storage is logged and changes nothing.
    pub async fn run_until(
        &mut self,
        instances: &mut dyn Instances,
        shutdown: impl Future<Output = ()> + Send,
    ) {
        let begun = Instant::now();
        let mut last = None;
        tokio::pin!(shutdown);
        loop {
            match self.look(instances).await {
                Ok(look) => {
                    let wanted = self.rule.target(begun.elapsed(), &look);
                    if last.replace(wanted) != Some(wanted) {
                        tracing::info!(
                            op = "scale",
                            queue = self.queue,
                            wanted,
                            depth = look.depth,
                            oldest_age_s = look.oldest_age.as_secs(),
                            processor = look.processor,
                            "instances"
                        );
                    }
                    instances.set(wanted).await;
                }
                Err(error) => {
                    let queue = self.queue.as_str();
                    tracing::warn!(op = "scale", queue, reason = %error, "cannot see the queue");
                }
            }
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                () = tokio::time::sleep(self.every) => {}
            }
        }
    }

    async fn look(&self, instances: &mut dyn Instances) -> PortResult<Look> {
        let cx = CallContext::housekeeping();
        let depth = self.storage.queue_properties(&cx, &self.queue).await?;
        let peeked = self.storage.peek_messages(&cx, &self.queue, 1).await?;
        let oldest = peeked.messages.first();
        let (ready, starting, processor) = instances.look().await;
        Ok(Look {
            depth: depth.approximate_count,
            oldest_age: oldest.map_or(Duration::ZERO, |m| peeked.server_time.since(m.inserted)),
            ready,
            starting,
            processor,
        })
    }
}
