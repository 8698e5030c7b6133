//! Lines that wait to be written.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use smalt_protocol::xml::{LogVersion, Logging};
use smalt_protocol::{Service, Timestamp};

/// Bytes of lines that wait at most; further lines are lost.
const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The account and the service that lines are about.
pub type Owner = (String, Service);

/// Lines that are not written yet.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<BTreeMap<Owner, Lines>>);

/// Lines of one blob.
#[derive(Debug)]
pub struct Lines {
    /// The lines, each with its newline.
    pub text: String,
    /// Arrival of the first request.
    pub first: Timestamp,
    /// Arrival of the last request.
    pub last: Timestamp,
    /// Whether there are lines of each [`Purpose`].
    pub logged: [bool; 3],
    /// Format of the lines.
    pub version: LogVersion,
    /// For how many days they are kept; `None` for ever.
    pub retention_days: Option<u32>,
}

/// What a request does, in the order in which `LogType` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Deletes.
    Delete,
}

impl Waiting {
    /// Adds the line of a request that arrived at `at`.
    pub fn add(
        &self,
        owner: Owner,
        logging: &Logging,
        (at, purpose): (Timestamp, Purpose),
        line: &str,
    ) {
        let mut waiting = self.0.lock();
        let lines = waiting.entry(owner).or_insert_with(|| Lines {
            text: String::new(),
            first: at,
            last: at,
            logged: Default::default(),
            version: logging.version,
            retention_days: None,
        });
        if lines.text.len() + line.len() > WAITING_BYTES_MAX {
            return;
        }
        lines.text.push_str(line);
        lines.first = lines.first.min(at);
        lines.last = lines.last.max(at);
        lines.logged[purpose as usize] = true;
        lines.version = logging.version;
        lines.retention_days = logging.retention.0;
    }

    /// Removes and returns the lines that are due.
    pub fn take(&self, is_due: impl Fn(&Lines) -> bool) -> BTreeMap<Owner, Lines> {
        let mut waiting = self.0.lock();
        let all = std::mem::take(&mut *waiting);
        let (due, rest) = all.into_iter().partition(|(_, lines)| is_due(lines));
        *waiting = rest;
        due
    }
}
