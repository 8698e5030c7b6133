//! A disk in memory that tracks durability, and can block, refuse, fill up and crash.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::disk::{Disk, DiskFile, Entry, Room};

const SECTOR_BYTES: usize = 512;
/// Longest wait for an expected sync, in real time.
const GATE_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Writes since the last sync: offset, bytes.
    pending: Vec<(usize, Vec<u8>)>,
}

#[derive(Debug, Default)]
struct State {
    inodes: Vec<Inode>,
    live_names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    locked: BTreeSet<PathBuf>,
    syncs: u64,
    /// From this sync on every call fails, as after a crash of the machine.
    dies_at_sync: Option<u64>,
    /// Number of syncs of files in `sync_fails` that still succeed.
    passing: u64,
    /// Syncs of files with this name ending fail.
    sync_fails: Option<&'static str>,
    /// Bytes that can still be written.
    room: Option<usize>,
    /// The room that the file system reports.
    shown: Option<Room>,
    /// The error kind of failing calls and syncs.
    fails_as: Option<io::ErrorKind>,
    /// Calls of this kind on files with this name ending fail.
    call_fails: Option<(Call, &'static str)>,
    gate: Gate,
}

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Call {
    /// Opening or creating a file.
    Open,
    /// Reading a file.
    Read,
    /// Writing a file.
    Write,
    /// Removing a file.
    Remove,
}

/// Blocks syncs of files whose name ends with `name`.
#[derive(Debug, Default)]
struct Gate {
    name: Option<&'static str>,
    reached: bool,
}

/// A disk in memory with faults.
#[derive(Debug, Default)]
pub(in super::super) struct FaultDisk {
    state: Mutex<State>,
    gate: Condvar,
}

#[derive(Debug)]
struct FaultFile {
    disk: Arc<FaultDisk>,
    path: PathBuf,
    inode: usize,
}

/// A handle that is used as `Arc<dyn Disk>` and whose files refer to the disk.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Faults(pub(in super::super) Arc<FaultDisk>);

impl Faults {
    /// Makes every call fail from the `n`th sync on.
    pub(in super::super) fn die_at_sync(&self, n: u64) {
        self.0.state.lock().dies_at_sync = Some(n);
    }

    pub(in super::super) fn syncs(&self) -> u64 {
        self.0.state.lock().syncs
    }

    pub(in super::super) fn is_dead(&self) -> bool {
        self.0.state.lock().is_dead()
    }

    pub(in super::super) fn fail_syncs_of(&self, name: Option<&'static str>) {
        self.fail_syncs_after(0, name);
    }

    /// Like [`Faults::fail_syncs_of`], after this many syncs of such files have succeeded.
    pub(in super::super) fn fail_syncs_after(&self, passing: u64, name: Option<&'static str>) {
        let mut state = self.0.state.lock();
        (state.passing, state.sync_fails) = (passing, name);
    }

    /// Makes calls on files with this name ending fail.
    pub(in super::super) fn fail_calls(&self, fails: Option<(Call, &'static str)>) {
        self.0.state.lock().call_fails = fails;
    }

    /// Sets the room that the file system reports, from which a reserve is subtracted.
    pub(in super::super) fn show_room(&self, available: u64, total: u64) {
        self.0.state.lock().shown = Some(Room {
            available,
            total,
            is_writable: true,
        });
    }

    /// Sets the error kind of failing calls and syncs.
    pub(in super::super) fn fail_as(&self, kind: io::ErrorKind) {
        self.0.state.lock().fails_as = Some(kind);
    }

    pub(in super::super) fn limit_room(&self, bytes: Option<usize>) {
        self.0.state.lock().room = bytes;
    }

    /// Blocks syncs of files with this name until [`Faults::open_gate`].
    pub(in super::super) fn close_gate(&self, name: &'static str) {
        let name = Some(name);
        let reached = false;
        self.0.state.lock().gate = Gate { name, reached };
    }

    /// Waits until a sync is blocked. Fails, instead of hanging, when the store forgets to sync.
    pub(in super::super) fn wait_at_gate(&self) {
        let mut state = self.0.state.lock();
        while !state.gate.reached {
            let waited = self.0.gate.wait_for(&mut state, GATE_WAIT_MAX);
            assert!(!waited.timed_out(), "no sync came to the gate");
        }
    }

    pub(in super::super) fn open_gate(&self) {
        self.0.state.lock().gate = Gate::default();
        self.0.gate.notify_all();
    }

    /// Flips a byte of a file.
    pub(in super::super) fn damage(&self, path: &Path, at: usize) {
        let mut state = self.0.state.lock();
        let inode = state.live_names[path];
        state.inodes[inode].live[at] ^= 0x10;
        state.inodes[inode].durable[at] ^= 0x10;
    }

    /// Returns the names of files with this ending, with their lengths.
    pub(in super::super) fn files(&self, ending: &str) -> Vec<(PathBuf, usize)> {
        let state = self.0.state.lock();
        let all = state.live_names.iter();
        all.filter(|(path, _)| path.to_string_lossy().ends_with(ending))
            .map(|(path, inode)| (path.clone(), state.inodes[*inode].live.len()))
            .collect()
    }

    /// Returns the disk after a power loss: all synced data, and the unsynced writes that `choose`
    /// keeps, with the last write of each file cut at a sector boundary.
    pub(in super::super) fn after_crash(&self, mut choose: impl FnMut() -> bool) -> Faults {
        let state = self.0.state.lock();
        let mut names = state.durable_names.clone();
        for (path, inode) in &state.live_names {
            if choose() {
                names.insert(path.clone(), *inode);
            }
        }
        for path in state.durable_names.keys() {
            if !state.live_names.contains_key(path) && choose() {
                names.remove(path);
            }
        }
        let inodes = state.inodes.iter().map(|inode| {
            let mut left = inode.durable.clone();
            for (n, (offset, bytes)) in inode.pending.iter().enumerate() {
                let torn = n + 1 == inode.pending.len();
                let mut len = bytes.len();
                // Cuts off one sector for each `true` from `choose`.
                while torn && len > 0 && choose() {
                    len = (len - 1) / SECTOR_BYTES * SECTOR_BYTES;
                }
                if choose() {
                    write(&mut left, *offset, &bytes[..len]);
                }
            }
            Inode {
                live: left.clone(),
                durable: left,
                pending: Vec::new(),
            }
        });
        let image = State {
            inodes: inodes.collect(),
            live_names: names.clone(),
            durable_names: names,
            ..State::default()
        };
        Faults(Arc::new(FaultDisk {
            state: Mutex::new(image),
            gate: Condvar::new(),
        }))
    }
}

impl State {
    fn is_dead(&self) -> bool {
        self.dies_at_sync.is_some_and(|at| self.syncs >= at)
    }

    fn alive(&self) -> io::Result<()> {
        if self.is_dead() {
            return Err(io::Error::other("the machine is gone"));
        }
        Ok(())
    }

    fn call(&self, call: Call, path: &Path) -> io::Result<()> {
        self.alive()?;
        let fails =
            |(kind, ending): (Call, &str)| kind == call && path.to_string_lossy().ends_with(ending);
        if self.call_fails.is_some_and(fails) {
            return Err(self.failure());
        }
        Ok(())
    }

    fn sync(&mut self, path: &Path) -> io::Result<()> {
        self.syncs += 1;
        self.alive()?;
        if self.sync_fails.is_some_and(|name| path.ends_with(name)) {
            self.passing = self.passing.checked_sub(1).ok_or_else(|| self.failure())?;
        }
        Ok(())
    }

    fn failure(&self) -> io::Error {
        let unknown = || io::Error::other("input/output error");
        self.fails_as.map_or_else(unknown, io::Error::from)
    }

    /// Takes room, or returns it when `bytes` is negative.
    fn take_room(&mut self, bytes: i64) -> io::Result<()> {
        let Some(room) = &mut self.shown else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let left = room.available.checked_add_signed(-bytes);
        room.available = left.ok_or(io::Error::from(io::ErrorKind::StorageFull))?;
        Ok(())
    }
}

fn write(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    if file.len() < offset + bytes.len() {
        file.resize(offset + bytes.len(), 0);
    }
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl Disk for Faults {
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.state.lock();
        state.call(Call::Open, path)?;
        let inode = match state.live_names.get(path) {
            Some(inode) => *inode,
            None if create => {
                state.inodes.push(Inode::default());
                let inode = state.inodes.len() - 1;
                state.live_names.insert(path.to_owned(), inode);
                inode
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(FaultFile {
            disk: Arc::clone(&self.0),
            path: path.to_owned(),
            inode,
        }))
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn room(&self, _: &Path) -> io::Result<Option<Room>> {
        Ok(self.0.state.lock().shown)
    }

    fn set_aside(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.0.state.lock().take_room(bytes as i64)?;
        self.open(path, true)?.write_at(&bytes.to_be_bytes(), 0)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let state = self.0.state.lock();
        state.alive()?;
        let inside = state.live_names.iter().filter_map(|(path, inode)| {
            Some(Entry {
                name: path.strip_prefix(dir).ok()?.to_str()?.to_owned(),
                len: state.inodes[*inode].live.len() as u64,
            })
        });
        Ok(inside.collect())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.call(Call::Remove, path)?;
        let removed = state.live_names.remove(path);
        let removed = removed.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        // After a crash it may be empty.
        let aside = state.inodes[removed].live.first_chunk().copied();
        if let (true, Some(aside)) = (path.ends_with("reserve"), aside) {
            state.take_room(-i64::from_be_bytes(aside))?;
        }
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.alive()?;
        state.live_names.retain(|path, _| !path.starts_with(dir));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.alive()?;
        let inode = state.live_names.remove(from);
        let inode = inode.ok_or(io::Error::from(io::ErrorKind::NotFound))?;
        state.live_names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn copy(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self.0.state.lock();
        state.sync(dir)?;
        let inside = |path: &Path| path.parent() == Some(dir);
        state.durable_names.retain(|path, _| !inside(path));
        let live: Vec<_> = state
            .live_names
            .iter()
            .filter(|(path, _)| inside(path))
            .map(|(path, inode)| (path.clone(), *inode))
            .collect();
        state.durable_names.extend(live);
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        let fresh = self.0.state.lock().locked.insert(path.to_owned());
        let lock = FaultLock {
            disk: Arc::clone(&self.0),
            path: path.to_owned(),
        };
        Ok(fresh.then(|| Box::new(lock) as Box<dyn Any + Send + Sync>))
    }
}

struct FaultLock {
    disk: Arc<FaultDisk>,
    path: PathBuf,
}

impl Drop for FaultLock {
    fn drop(&mut self) {
        self.disk.state.lock().locked.remove(&self.path);
    }
}

impl DiskFile for FaultFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let state = self.disk.state.lock();
        state.call(Call::Read, &self.path)?;
        let live = &state.inodes[self.inode].live;
        let from = live.get(offset as usize..offset as usize + buffer.len());
        buffer.copy_from_slice(from.ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        state.call(Call::Write, &self.path)?;
        if let Some(room) = state.room {
            let left = room.checked_sub(bytes.len());
            state.room = Some(left.ok_or(io::Error::from(io::ErrorKind::StorageFull))?);
        }
        let inode = &mut state.inodes[self.inode];
        write(&mut inode.live, offset as usize, bytes);
        inode.pending.push((offset as usize, bytes.to_vec()));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state.lock();
        while state
            .gate
            .name
            .is_some_and(|name| self.path.ends_with(name))
        {
            state.gate.reached = true;
            self.disk.gate.notify_all();
            self.disk.gate.wait(&mut state);
        }
        state.sync(&self.path)?;
        let inode = &mut state.inodes[self.inode];
        inode.durable = inode.live.clone();
        inode.pending.clear();
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let state = self.disk.state.lock();
        state.alive()?;
        Ok(state.inodes[self.inode].live.len() as u64)
    }
}
