//! Faults by operation and number of the call.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use smalt_sleeve::port::{ErrorKind, PortError};

/// The operations that a listener uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    Get,
    Peek,
    Update,
    Delete,
    /// Put Message.
    Put,
    Depth,
    Create,
    List,
    DeleteQueue,
    Lease,
}

/// A fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fails with this kind, without any effect.
    Before(ErrorKind),
    /// Takes effect, but the answer is lost.
    LostAnswer,
    /// Takes effect at once; the answer comes after this time.
    Slow(Duration),
    /// Takes effect after this time.
    Late(Duration),
}

/// The rules, and the number of calls of each operation.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Vec<(Op, Range<u64>, Fault)>,
    calls: BTreeMap<Op, u64>,
}

impl Faults {
    pub fn add(&mut self, op: Op, calls: Range<u64>, fault: Fault) {
        self.rules.push((op, calls, fault));
    }

    pub fn clear(&mut self) {
        self.rules.clear();
    }

    pub fn calls(&self, op: Op) -> u64 {
        self.calls.get(&op).copied().unwrap_or(0)
    }

    pub fn counts(&self) -> &BTreeMap<Op, u64> {
        &self.calls
    }

    /// Counts a call (the first is number 0) and returns its fault.
    pub fn next(&mut self, op: Op) -> Option<Fault> {
        let number = self.calls.entry(op).or_insert(0);
        let call = *number;
        *number += 1;
        let hit = |rule: &&(Op, Range<u64>, Fault)| rule.0 == op && rule.1.contains(&call);
        self.rules.iter().find(hit).map(|rule| rule.2)
    }
}

/// Returns an error of this kind.
pub fn error(kind: ErrorKind) -> PortError {
    let status = match kind {
        ErrorKind::Busy => Some(503),
        ErrorKind::Denied => Some(403),
        ErrorKind::NotFound => Some(404),
        ErrorKind::ReceiptMismatch | ErrorKind::Refused => Some(400),
        _ => None,
    };
    PortError {
        kind,
        status,
        code: None,
        retry_after: None,
        operation: "Test",
        resource: "orders".to_owned(),
        message: "injected".to_owned(),
    }
}
