//! Idle connections, newest first, so that surplus ones expire and are dropped.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::connect::{Origin, Sender};

pub(super) struct Pool {
    idle: Mutex<HashMap<Origin, Vec<Idle>>>,
    idle_most: usize,
    idle_timeout: Duration,
}

struct Idle {
    sender: Sender,
    since: Instant,
}

impl Pool {
    pub(super) fn new(idle_most: usize, idle_timeout: Duration) -> Self {
        Pool {
            idle: Mutex::default(),
            idle_most,
            idle_timeout,
        }
    }

    /// Returns a connection that was recently open, if there is one.
    pub(super) async fn take(&self, origin: &Origin) -> Option<Sender> {
        loop {
            let mut sender = self.pop(origin)?;
            // The connection's own task must first have processed the end of the last response.
            if sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    fn pop(&self, origin: &Origin) -> Option<Sender> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let stack = idle.get_mut(origin)?;
        let now = Instant::now();
        stack.retain(|entry| now.duration_since(entry.since) < self.idle_timeout);
        let found = loop {
            match stack.pop() {
                Some(entry) if entry.sender.is_closed() => {}
                entry => break entry.map(|entry| entry.sender),
            }
        };
        if stack.is_empty() {
            idle.remove(origin);
        }
        found
    }

    /// Keeps a connection whose response was read completely.
    pub(super) fn put(&self, origin: Origin, sender: Sender) {
        if sender.is_closed() || self.idle_most == 0 {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let stack = idle.entry(origin).or_default();
        if stack.len() >= self.idle_most {
            stack.remove(0);
        }
        stack.push(Idle {
            sender,
            since: Instant::now(),
        });
    }

    pub(super) fn len(&self) -> usize {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.values().map(Vec::len).sum()
    }
}
