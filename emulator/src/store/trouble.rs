//! Conditions that keep the store from accepting writes or its time from advancing.

use std::time::Duration;

use super::error::StoreError;
use super::handle::Store;

/// How far a clock may be behind the store's last commit without a report; hosts that take turns
/// with one directory differ by less.
const CLOCK_BEHIND_MIN: Duration = Duration::from_secs(60);

/// A condition that an operator should know of, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The disk is full; writes are refused until there is room.
    DiskFull(String),
    /// A write failed; writes are refused until the store is reopened.
    WritesStopped(String),
    /// The directory was removed, moved or replaced; writes are refused until the store is
    /// reopened.
    DirectoryGone(String),
    /// The clock is this far behind the last commit; the store's time stands still for as long.
    ClockBehind(Duration),
}

impl Trouble {
    /// The names of all conditions.
    pub const NAMES: [&'static str; 4] = [
        "disk_full",
        "writes_stopped",
        "directory_gone",
        "clock_behind",
    ];

    /// Returns the name in responses and metrics.
    pub fn name(&self) -> &'static str {
        let kind = match self {
            Trouble::DiskFull(_) => 0,
            Trouble::WritesStopped(_) => 1,
            Trouble::DirectoryGone(_) => 2,
            Trouble::ClockBehind(_) => 3,
        };
        Self::NAMES[kind]
    }
}

impl Store {
    /// Returns the current conditions; empty when the store accepts writes and time advances.
    pub fn troubles(&self) -> Vec<Trouble> {
        let full = self.0.shared().look();
        let mut troubles: Vec<_> = full.map(Trouble::DiskFull).into_iter().collect();
        troubles.extend(self.0.shared().failed_by().map(|error| match error {
            StoreError::Gone(cause) => Trouble::DirectoryGone(cause.clone()),
            other => Trouble::WritesStopped(other.to_string()),
        }));
        let behind = self.behind();
        if behind >= CLOCK_BEHIND_MIN {
            troubles.push(Trouble::ClockBehind(behind));
        }
        troubles
    }

    /// Returns how far the clock is behind the last commit's time, during which the store's time
    /// stands still.
    pub fn behind(&self) -> Duration {
        self.last_used().since(self.0.shared().clock.now())
    }

    /// Returns why no payload file is deleted; `None` when the store's files are consistent.
    pub fn unexplained(&self) -> Option<&str> {
        self.0.shared().unexplained()
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::DiskFull(cause) => write!(
                f,
                "{cause}: reads and deletes continue, and writes resume when there is room"
            ),
            Trouble::WritesStopped(cause) => {
                write!(f, "{cause}: check the disk, then start smalt again")
            }
            Trouble::DirectoryGone(cause) => {
                write!(
                    f,
                    "{cause}: put it back, or start smalt on another directory"
                )
            }
            Trouble::ClockBehind(by) => write!(
                f,
                "the clock is {} s behind the last write, so time stands still for as long; to \
                 resume now, send {{\"rebase\": true}} to `PUT /clock`",
                by.as_secs()
            ),
        }
    }
}
