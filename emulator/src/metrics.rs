//! Counters of served requests, for `/metrics`.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use smalt_protocol::Service;

/// Counters of requests by operation and status.
#[derive(Debug, Default)]
pub struct Metrics {
    served: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
}

impl Metrics {
    /// Counts one response.
    pub fn count(&self, service: Service, operation: &'static str, status: u16) {
        *self
            .served
            .lock()
            .entry((service.as_str(), operation, status))
            .or_default() += 1;
    }

    /// Returns every counter: service, operation, status, number.
    pub fn snapshot(&self) -> Vec<(&'static str, &'static str, u16, u64)> {
        self.served
            .lock()
            .iter()
            .map(|((s, o, c), n)| (*s, *o, *c, *n))
            .collect()
    }
}
