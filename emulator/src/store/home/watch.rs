//! Whether the directory can take a write: it is still the one that was opened, and its file system
//! has room.
//!
//! The metadata engine does not survive a write that finds no room: it must be opened again. So
//! writes are refused before that, when less is left than [`Marks::keep`]. What frees room goes on
//! below that mark, and a file of [`Marks::reserve`] bytes is kept for the case that somebody else
//! fills the disk to the last byte: it is given up then, and taken again when there is room.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::super::config::Mode;
use super::super::error::{StoreError, StoreResult};
use crate::disk::{Disk, Identity, Room};

/// The reserve's file.
pub(in super::super) const RESERVE: &str = "reserve";
/// Bytes of the reserve on a large file system.
pub(in super::super) const RESERVE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Bytes of the reserve on a small one: eight segments of the engine, of 256 KiB each.
const RESERVE_BYTES_MIN: u64 = 2 * 1024 * 1024;
/// In between, the reserve is this part of the file system.
const RESERVE_PART: u64 = 16;
/// What even a delete leaves free: two segments of the engine.
const FLOOR_BYTES: u64 = 512 * 1024;

/// Bytes written between two looks at the disk in the mode `fast`, where a look takes as long as a
/// small commit. Less than what even a delete leaves free.
const SLACK_BYTES: u64 = FLOOR_BYTES / 2;

/// What a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It adds something, and is refused when there is little room.
    Grows,
    /// It frees room, or hands out what is to be deleted next: it may use the reserve.
    Frees,
}

/// How much room is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    /// Bytes of the reserve.
    reserve: u64,
    /// Bytes besides it below which writes are refused. They cover what others write between the
    /// look at the disk and the engine's own write.
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

    /// Bytes that a write leaves free. As long as the reserve is not there, its room is.
    fn least(self, is_aside: bool) -> u64 {
        self.keep + if is_aside { 0 } else { self.reserve }
    }

    /// Whether there is room for a write of `need` bytes. Every write is taken for one of some
    /// size: else small ones would come through where others are refused, now and then.
    fn suffice(self, room: Room, is_aside: bool, promised: u64, need: u64) -> bool {
        let least = self.least(is_aside).saturating_add(promised);
        room.is_writable && room.available >= least.saturating_add(need.max(FLOOR_BYTES))
    }
}

/// Looks at the directory and its file system.
pub(in super::super) struct Watch {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// Files without which the store is lost, as they were when they were opened.
    known: RwLock<Vec<(PathBuf, Option<Identity>)>>,
    /// Whether the reserve exists.
    is_aside: Mutex<bool>,
    is_full: AtomicBool,
    /// Bytes that may be written between two looks, and those since the last.
    slack: u64,
    unseen: AtomicU64,
}

impl Watch {
    /// Begins to watch a directory. A reserve that a killed process left goes first: opening the
    /// engine may need its room.
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

    /// Notes what a file is now, in place of what was noted of files of the same name.
    pub(super) fn note(&self, path: PathBuf) -> io::Result<()> {
        let found = self.disk.identity(&path)?;
        let mut known = self.known.write();
        known.retain(|(other, _)| other.file_name() != path.file_name());
        known.push((path, found));
        Ok(())
    }

    /// Fails when a noted file was removed, moved or replaced. Writes to it succeed even then, and
    /// so do syncs.
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

    /// Refuses a write of about `need` bytes when there is no room for it. `promised` bytes are to
    /// be written besides, by uploads under way.
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

    /// Whether writes that add something are refused. Looks again only when they were last time.
    pub(super) fn is_full(&self, promised: u64) -> bool {
        self.is_full.load(Ordering::Acquire) && self.look(promised).is_some()
    }

    /// Why nothing that adds something is written at present. Takes the reserve again when there
    /// is room for it.
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

    /// Leaves nothing behind.
    pub(super) fn end(&self) {
        if self.check_is_there().is_ok() {
            self.give_up_reserve();
        }
    }

    /// Bytes that can still be taken, where the system tells.
    pub(super) fn available(&self) -> Option<u64> {
        self.room().map(|room| room.available)
    }

    /// A file system that cannot be asked is not known to be full: a write will tell.
    fn room(&self) -> Option<Room> {
        self.unseen.store(0, Ordering::Release);
        self.disk.room(&self.dir).ok().flatten()
    }

    fn reserve(&self) -> PathBuf {
        self.dir.join(RESERVE)
    }

    /// Where the system cannot, its room is left free instead.
    fn take_reserve(&self, bytes: u64) -> bool {
        let path = self.reserve();
        let made = self.disk.set_aside(&path, bytes).is_ok();
        if !made {
            // A shorter one is none; a failure to remove it changes nothing.
            let _ = self.disk.remove(&path);
        }
        made
    }

    fn give_up_reserve(&self) -> bool {
        let mut is_aside = self.is_aside.lock();
        std::mem::take(&mut *is_aside) && self.disk.remove(&self.reserve()).is_ok()
    }

    /// Logs when writes begin to be refused, and when they are taken again.
    fn tell(&self, room: Room, has_room: bool) {
        if self.is_full.swap(!has_room, Ordering::AcqRel) != has_room {
            return;
        }
        if has_room {
            tracing::warn!(
                available = room.available,
                "there is room again: writes are taken"
            );
        } else {
            let dir = self.dir.display();
            tracing::error!(
                %dir,
                "{}: writes are refused until there is room; reads and deletes go on",
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
