//! Wakes an idle listener.

use std::sync::Arc;

use crate::observers::Observers;
use crate::rules::trigger::Trigger;
use crate::signal::Signal;

/// Wakes an idle listener. A wake-up is sticky: if it arrives during a get or just before a sleep,
/// it ends that sleep early, so none is lost (DL18). Cheap, and callable from anywhere, any number
/// of times.
#[derive(Clone)]
pub struct Waker {
    queue: String,
    count: Arc<Signal<u64>>,
    observers: Observers,
}

impl Waker {
    pub(crate) fn new(queue: &str, count: Arc<Signal<u64>>, observers: Observers) -> Self {
        Waker {
            queue: queue.to_owned(),
            count,
            observers,
        }
    }

    /// Tells the listener that a message was put. Call it after the put, not before (DL19).
    pub fn wake(&self) {
        self.count.count();
    }

    /// Wakes the listener by an event, which its observers see (L32).
    pub fn notice(&self, event: &Trigger) {
        self.observers.tell(|observer| observer.triggered(event));
        self.wake();
    }

    /// Returns the queue that the listener listens to.
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// Returns whether the listener listens to `queue`, compared as Azure compares queue names
    /// (L32, DL21).
    pub fn is_for(&self, queue: &str) -> bool {
        self.queue.eq_ignore_ascii_case(queue)
    }

    /// Wakes the listener if it listens to `queue`; returns whether it does.
    pub fn wake_for(&self, queue: &str) -> bool {
        let ours = self.is_for(queue);
        if ours {
            self.wake();
        }
        ours
    }
}
