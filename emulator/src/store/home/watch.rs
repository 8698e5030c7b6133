//! Checks whether the directory can take a write: it is still the one that was opened, and its file
//! system has room.
//!
//! The metadata engine does not survive a write without room: it must be reopened. So writes are
//! refused before that, when less than [`Marks::keep`] is left. Writes that free room continue
//! below that mark. A file of [`Marks::reserve`] bytes is kept in case another program fills the
//! disk to the last byte: it is removed then, and created again when there is room.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::super::config::Mode;
use super::super::error::{StoreError, StoreResult};
use crate::disk::{Disk, Identity, Room};

/// Name of the reserve's file.
pub(in super::super) const RESERVE: &str = "reserve";
/// Bytes of the reserve on a large file system.
pub(in super::super) const RESERVE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Bytes of the reserve on a small one: eight segments of the engine, of 256 KiB each.
const RESERVE_BYTES_MIN: u64 = 2 * 1024 * 1024;
/// In between, the reserve is the file system's size divided by this.
const RESERVE_PART: u64 = 16;
/// Bytes that even a delete leaves free: two segments of the engine.
const FLOOR_BYTES: u64 = 512 * 1024;

/// Bytes written between two checks of the disk in the mode `fast`, where a check takes as long as
/// a small commit. Less than what even a delete leaves free.
const SLACK_BYTES: u64 = FLOOR_BYTES / 2;

/// The purpose of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Adds data; refused when there is little room.
    Grows,
    /// Frees room, or returns data that is to be deleted next; may use the reserve.
    Frees,
}

/// How much room writes leave free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    reserve: u64,
    /// Bytes besides the reserve below which writes are refused. They cover what other programs
    /// write between the check and the engine's own write.
    keep: u64,
}

impl Marks {
    fn of(total: u64) -> Self {
        let reserve = (total / RESERVE_PART).clamp(RESERVE_BYTES_MIN, RESERVE_BYTES_MAX);
        Marks {
            reserve,
            keep: reserve / 2,
        }
    }

    /// Returns the bytes that a write leaves free, including the reserve's while it does not exist.
    fn least(self, is_aside: bool) -> u64 {
        self.keep + if is_aside { 0 } else { self.reserve }
    }

    /// Returns whether there is room for a write of `need` bytes. Every write counts as having some
    /// size; otherwise small ones would sometimes succeed where others are refused.
    fn suffice(self, room: Room, is_aside: bool, promised: u64, need: u64) -> bool {
        let least = self.least(is_aside).saturating_add(promised);
        room.is_writable && room.available >= least.saturating_add(need.max(FLOOR_BYTES))
    }
}

/// Checks the directory and its file system.
pub(in super::super) struct Watch {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Files without which the store is lost, with their identities when they were opened.
    known: RwLock<Vec<(PathBuf, Option<Identity>)>>,
    /// Whether the reserve exists.
    is_aside: Mutex<bool>,
    is_full: AtomicBool,
    /// Bytes that may be written between two checks, and those since the last.
    slack: u64,
    unseen: AtomicU64,
}

impl Watch {
    /// Begins to watch a directory. Removes a reserve that a killed process left, because opening
    /// the engine may need its room.
    pub(super) fn new(disk: &Arc<dyn Disk>, dir: &Path, mode: Mode) -> Self {
        let watch = Watch {
            disk: Arc::clone(disk),
            dir: dir.to_owned(),
            known: RwLock::default(),
            is_aside: Mutex::new(true),
            is_full: AtomicBool::new(false),
            slack: if mode == Mode::Fast { SLACK_BYTES } else { 0 },
            unseen: AtomicU64::new(0),
        };
        watch.give_up_reserve();
        watch
    }

    /// Records a file's current identity, and replaces that of an earlier file of the same name.
    pub(super) fn note(&self, path: PathBuf) -> io::Result<()> {
        let found = self.disk.identity(&path)?;
        let mut known = self.known.write();
        known.retain(|(other, _)| other.file_name() != path.file_name());
        known.push((path, found));
        Ok(())
    }

    /// Fails when a recorded file was removed, moved or replaced. Writes and syncs succeed even
    /// then.
    pub(super) fn check_is_there(&self) -> StoreResult<()> {
        for (path, opened) in self.known.read().iter() {
            match self.disk.identity(path) {
                Ok(found) if found == *opened => {}
                Ok(_) => return Err(self.gone(path, "was replaced while it was open")),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(self.gone(path, "was removed or moved while it was open"));
                }
                Err(error) => return Err(self.gone(path, &error.to_string())),
            }
        }
        Ok(())
    }

    fn gone(&self, path: &Path, what: &str) -> StoreError {
        let name = path.strip_prefix(&self.dir).unwrap_or(path);
        StoreError::Gone(format!(
            "{} in {} {what}",
            name.display(),
            self.dir.display()
        ))
    }

    /// Refuses a write of about `need` bytes when there is no room for it besides the `promised`
    /// bytes of running uploads.
    pub(super) fn admit(&self, need: u64, promised: u64, purpose: Purpose) -> StoreResult<()> {
        let unseen = self.unseen.fetch_add(need, Ordering::AcqRel) + need;
        if unseen < self.slack && !self.is_full.load(Ordering::Acquire) {
            return Ok(());
        }
        let Some(room) = self.room() else {
            return Ok(());
        };
        let (marks, is_aside) = (Marks::of(room.total), *self.is_aside.lock());
        self.tell(room, marks.suffice(room, is_aside, promised, 0));
        if marks.suffice(room, is_aside, promised, need) {
            return Ok(());
        }
        let suffices = |room: Room| room.available >= FLOOR_BYTES.saturating_add(need);
        let is_urgent = purpose == Purpose::Frees && room.is_writable;
        if is_urgent
            && (suffices(room) || self.give_up_reserve() && self.room().is_some_and(suffices))
        {
            return Ok(());
        }
        Err(refusal(room, need))
    }

    /// Returns whether writes that add data are refused. Checks again only if they were refused
    /// last time.
    pub(super) fn is_full(&self, promised: u64) -> bool {
        self.is_full.load(Ordering::Acquire) && self.look(promised).is_some()
    }

    /// Returns why writes that add data are refused; `None` when they are not. Creates the reserve
    /// again when there is room for it.
    pub(super) fn look(&self, promised: u64) -> Option<String> {
        let room = self.room()?;
        let marks = Marks::of(room.total);
        let mut is_aside = self.is_aside.lock();
        let has_room = marks.suffice(room, *is_aside, promised, 0);
        if !*is_aside && has_room {
            *is_aside = self.take_reserve(marks.reserve);
        }
        drop(is_aside);
        self.tell(room, has_room);
        (!has_room).then(|| about(room))
    }

    /// Removes the reserve.
    pub(super) fn end(&self) {
        if self.check_is_there().is_ok() {
            self.give_up_reserve();
        }
    }

    /// Returns the free bytes; `None` when the system does not report them.
    pub(super) fn available(&self) -> Option<u64> {
        self.room().map(|room| room.available)
    }

    /// Returns the room of the file system. One that cannot be asked does not count as full: a
    /// write will show it.
    fn room(&self) -> Option<Room> {
        self.unseen.store(0, Ordering::Release);
        self.disk.room(&self.dir).ok().flatten()
    }

    fn reserve(&self) -> PathBuf {
        self.dir.join(RESERVE)
    }

    /// Creates the reserve's file. If the system cannot, its room is left free instead.
    fn take_reserve(&self, bytes: u64) -> bool {
        let path = self.reserve();
        let made = self.disk.set_aside(&path, bytes).is_ok();
        if !made {
            // A shorter file is useless; a failure to remove it changes nothing.
            let _ = self.disk.remove(&path);
        }
        made
    }

    fn give_up_reserve(&self) -> bool {
        let mut is_aside = self.is_aside.lock();
        std::mem::take(&mut *is_aside) && self.disk.remove(&self.reserve()).is_ok()
    }

    /// Logs when writes are refused for the first time, and when they are accepted again.
    fn tell(&self, room: Room, has_room: bool) {
        if self.is_full.swap(!has_room, Ordering::AcqRel) != has_room {
            return;
        }
        if has_room {
            tracing::warn!(
                available = room.available,
                "there is room again: writes are accepted"
            );
        } else {
            let dir = self.dir.display();
            tracing::error!(
                %dir,
                "{}: writes are refused until there is room; reads and deletes continue",
                about(room)
            );
        }
    }
}

fn about(room: Room) -> String {
    if room.is_writable {
        format!("the disk is full ({} KiB are free)", room.available / 1024)
    } else {
        "the file system is read-only".to_owned()
    }
}

fn refusal(room: Room, need: u64) -> StoreError {
    StoreError::Refused(format!("{}, {} KiB are needed", about(room), need / 1024))
}
