//! What keeps the store from taking writes, or its time from going on.

use std::time::Duration;

use super::error::StoreError;
use super::handle::Store;

/// A clock may be this far behind the store's last commit without anybody being told: hosts that
/// take turns with one directory differ by less.
const CLOCK_BEHIND_MIN: Duration = Duration::from_secs(60);

/// Something that an operator should know of, with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no room: writes are refused until there is.
    DiskFull(String),
    /// A write failed: none is taken until the store is opened again.
    WritesStopped(String),
    /// The directory was removed, moved or replaced: no write is taken until the store is opened
    /// again.
    DirectoryGone(String),
    /// The clock is this far behind the last commit: the store's time stands still for as long.
    ClockBehind(Duration),
}

impl Trouble {
    /// The names of all kinds.
    pub const NAMES: [&'static str; 4] = [
        "disk_full",
        "writes_stopped",
        "directory_gone",
        "clock_behind",
    ];

    /// Its name in answers and metrics.
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
    /// What is wrong at this moment; nothing when writes are taken and time goes on.
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

    /// How far the clock is behind the last commit's time: as long the store's time stands still.
    pub fn behind(&self) -> Duration {
        self.last_used().since(self.0.shared().clock.now())
    }

    /// Why no file of payloads is deleted, when the store's files do not account for each other.
    pub fn unexplained(&self) -> Option<&str> {
        self.0.shared().unexplained()
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::DiskFull(cause) => write!(
                f,
                "{cause}: reads and deletes go on, writes do so by themselves when there is room"
            ),
            Trouble::WritesStopped(cause) => {
                write!(f, "{cause}: look at the disk, then start smalt again")
            }
            Trouble::DirectoryGone(cause) => {
                write!(
                    f,
                    "{cause}: put it back, or start smalt on another directory"
                )
            }
            Trouble::ClockBehind(by) => write!(
                f,
                "the clock is {} s behind the last write: time stands still for as long, unless \
                 `PUT /clock` is sent {{\"rebase\": true}}",
                by.as_secs()
            ),
        }
    }
}
