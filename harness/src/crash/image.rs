//! What a power failure leaves of a journal: everything that was synced, and of the rest what
//! chance or a rule lets survive.
//!
//! The rules of the disk are the weakest that POSIX allows:
//! - a synced file has its contents and its length, not its name;
//! - a synced directory has the names in it, not what is in the files;
//! - `sync_file_range` promises nothing;
//! - writes that were not synced survive in any order, whole or in any of their sectors of 512
//!   bytes; a hole before one that survived reads as zeros.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;

use super::content::below;
use super::journal::{Change, Record};

const SECTOR_BYTES: u64 = 512;

/// What survives of unsynced changes.
#[derive(Clone, Debug)]
pub enum Survival {
    /// Nothing.
    Nothing,
    /// Everything.
    Everything,
    /// Names, and bytes within the synced length: files did not grow.
    NoGrowth,
    /// The last half of the writes: the disk reordered them.
    Latest,
    /// A random part, with some writes torn.
    Chance(Box<ChaCha8Rng>),
}

/// An unsynced change of a file.
#[derive(Clone, Debug)]
enum Unsynced {
    Write(u64, Vec<u8>),
    Truncate(u64),
}

#[derive(Clone, Debug, Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Unsynced>,
}

/// A file or directory to which a name refers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Dir,
    File(usize),
}

type Names = BTreeMap<PathBuf, Node>;

/// Files and directories during a journal: as the process sees them, and as they certainly are on
/// disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    inodes: Vec<Inode>,
    live: Names,
    durable: Names,
    /// Names set or removed since their directory was synced.
    unsynced: Vec<(PathBuf, Option<Node>)>,
}

/// Files and directories after a power failure.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// Paths of the directories.
    pub dirs: BTreeSet<PathBuf>,
    /// Contents of the files, by path.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Disk {
    /// Applies a record.
    pub fn apply(&mut self, record: &Record) {
        let path = &record.path;
        match &record.change {
            Change::Create => {
                self.inodes.push(Inode::default());
                self.set_name(path, Some(Node::File(self.inodes.len() - 1)));
            }
            Change::MakeDir => self.set_name(path, Some(Node::Dir)),
            Change::Unlink | Change::RemoveDir => self.set_name(path, None),
            Change::Rename(to) => {
                let node = self.live.get(path).copied();
                self.set_name(path, None);
                self.set_name(to, node);
            }
            Change::Write(at, bytes) => self.change(path, Unsynced::Write(*at, bytes.clone())),
            Change::Truncate(length) => self.change(path, Unsynced::Truncate(*length)),
            Change::Sync => self.sync(path),
            Change::SyncRange(..) => {}
        }
    }

    /// Whether something could be lost without this sync.
    pub fn matters(&self, path: &Path) -> bool {
        match self.live.get(path) {
            Some(Node::File(inode)) => {
                let inode = self.inodes.get(*inode);
                inode.is_some_and(|inode| !inode.unsynced.is_empty())
            }
            _ => self.unsynced.iter().any(|(name, _)| is_in(name, path)),
        }
    }

    fn set_name(&mut self, path: &Path, node: Option<Node>) {
        match node {
            Some(node) => self.live.insert(path.to_owned(), node),
            None => self.live.remove(path),
        };
        self.unsynced.push((path.to_owned(), node));
    }

    fn change(&mut self, path: &Path, change: Unsynced) {
        if let Some(Node::File(inode)) = self.live.get(path)
            && let Some(inode) = self.inodes.get_mut(*inode)
        {
            apply(&mut inode.live, &change);
            inode.unsynced.push(change);
        }
    }

    fn sync(&mut self, path: &Path) {
        if let Some(Node::File(inode)) = self.live.get(path) {
            if let Some(inode) = self.inodes.get_mut(*inode) {
                inode.unsynced.clear();
                inode.durable.clone_from(&inode.live);
            }
            return;
        }
        let (synced, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unsynced)
            .into_iter()
            .partition(|(name, _)| is_in(name, path));
        self.unsynced = kept;
        for (name, node) in synced {
            set(&mut self.durable, &name, node);
        }
    }

    /// Returns what exists after a power failure.
    pub fn image(&self, survival: &mut Survival) -> Image {
        let mut names = self.durable.clone();
        let count = self.unsynced.len();
        for (at, (name, node)) in self.unsynced.iter().enumerate() {
            if survival.keeps(at, count) {
                set(&mut names, name, *node);
            }
        }
        let mut image = Image::default();
        for (name, node) in &names {
            // Nothing exists below a missing directory.
            let is_below = |dir: &Path| dir.as_os_str().is_empty() || image.dirs.contains(dir);
            if !name.parent().is_none_or(is_below) {
                continue;
            }
            match node {
                Node::Dir => drop(image.dirs.insert(name.clone())),
                Node::File(inode) => {
                    let found = self.inodes.get(*inode);
                    let content = found.map(|inode| inode.after(survival));
                    image
                        .files
                        .insert(name.clone(), content.unwrap_or_default());
                }
            }
        }
        image
    }
}

fn is_in(name: &Path, dir: &Path) -> bool {
    name.parent() == Some(dir)
}

fn set(names: &mut Names, name: &Path, node: Option<Node>) {
    match node {
        Some(node) => names.insert(name.to_owned(), node),
        None => names.remove(name),
    };
}

impl Inode {
    fn after(&self, survival: &mut Survival) -> Vec<u8> {
        let mut left = self.durable.clone();
        let count = self.unsynced.len();
        for (at, change) in self.unsynced.iter().enumerate() {
            if matches!(survival, Survival::NoGrowth) {
                within(&mut left, change, self.durable.len());
            } else if survival.keeps(at, count) {
                survival.tear(&mut left, change);
            }
        }
        left
    }
}

fn apply(content: &mut Vec<u8>, change: &Unsynced) {
    match change {
        Unsynced::Write(at, bytes) => {
            let from = usize::try_from(*at).unwrap_or_default();
            let to = from + bytes.len();
            if content.len() < to {
                content.resize(to, 0);
            }
            if let Some(place) = content.get_mut(from..to) {
                place.copy_from_slice(bytes);
            }
        }
        Unsynced::Truncate(length) => {
            content.resize(usize::try_from(*length).unwrap_or_default(), 0);
        }
    }
}

/// Applies the part of a change within a length.
fn within(content: &mut Vec<u8>, change: &Unsynced, length: usize) {
    if let Unsynced::Write(at, bytes) = change {
        let from = usize::try_from(*at).unwrap_or_default();
        let room = length.saturating_sub(from).min(bytes.len());
        if room > 0 {
            let part = bytes.get(..room).unwrap_or_default().to_vec();
            apply(content, &Unsynced::Write(*at, part));
        }
    }
}

impl Survival {
    /// Whether the change at this index, of `count`, survives.
    fn keeps(&mut self, at: usize, count: usize) -> bool {
        match self {
            Survival::Nothing => false,
            Survival::Everything | Survival::NoGrowth => true,
            Survival::Latest => at >= count / 2,
            Survival::Chance(random) => below(random, 2) == 0,
        }
    }

    /// Applies a change, at random only in some of its sectors.
    fn tear(&mut self, content: &mut Vec<u8>, change: &Unsynced) {
        let (Survival::Chance(random), Unsynced::Write(at, bytes)) = (self, change) else {
            return apply(content, change);
        };
        match below(random, 4) {
            // Up to the edge of a sector.
            0 => {
                let sectors = bytes.len() as u64 / SECTOR_BYTES;
                let kept = below(random, sectors + 1) * SECTOR_BYTES;
                let kept = usize::try_from(kept).unwrap_or_default();
                let part = bytes.get(..kept).unwrap_or_default().to_vec();
                apply(content, &Unsynced::Write(*at, part));
            }
            // Any of its sectors.
            1 => {
                let mut from = 0;
                while from < bytes.len() {
                    let place = *at + from as u64;
                    let room = usize::try_from(SECTOR_BYTES - place % SECTOR_BYTES);
                    let to = (from + room.unwrap_or(1)).min(bytes.len());
                    if below(random, 2) == 0 {
                        let part = bytes.get(from..to).unwrap_or_default().to_vec();
                        apply(content, &Unsynced::Write(place, part));
                    }
                    from = to;
                }
            }
            _ => apply(content, change),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::content::stream;

    fn disk(records: &[(&str, Change)]) -> Disk {
        let mut disk = Disk::default();
        for (path, change) in records {
            disk.apply(&Record {
                path: PathBuf::from(path),
                change: change.clone(),
            });
        }
        disk
    }

    fn write(at: u64, bytes: &[u8]) -> Change {
        Change::Write(at, bytes.to_vec())
    }

    #[test]
    fn only_synced_changes_certainly_survive() {
        let disk = disk(&[
            ("d", Change::MakeDir),
            ("", Change::Sync),
            ("d/a", Change::Create),
            ("d/a", write(0, b"one")),
            ("d/a", Change::Sync),
            ("d", Change::Sync),
            ("d/a", write(3, b"two")),
            ("d/a", Change::SyncRange(3, 3)),
            ("d/b", Change::Create),
            ("d/b", write(0, b"b")),
            ("d/b", Change::Sync),
        ]);
        let image = disk.image(&mut Survival::Nothing);
        assert_eq!(image.files.len(), 1, "a synced file has no name yet");
        assert_eq!(image.files[Path::new("d/a")], b"one");
        let image = disk.image(&mut Survival::Everything);
        assert_eq!(image.files[Path::new("d/a")], b"onetwo");
        assert_eq!(image.files[Path::new("d/b")], b"b");
        assert!(disk.matters(Path::new("d/a")) && disk.matters(Path::new("d")));
        assert!(!disk.matters(Path::new("d/b")) && !disk.matters(Path::new("")));
    }

    #[test]
    fn a_renamed_file_is_the_old_or_the_new_one() {
        let disk = disk(&[
            ("a", Change::Create),
            ("a", write(0, b"old")),
            ("a", Change::Sync),
            ("", Change::Sync),
            ("a.new", Change::Create),
            ("a.new", write(0, b"new")),
            ("a.new", Change::Sync),
            ("a.new", Change::Rename("a".into())),
        ]);
        let found = |survival: &mut Survival| disk.image(survival).files[Path::new("a")].clone();
        assert_eq!(found(&mut Survival::Nothing), b"old");
        assert_eq!(found(&mut Survival::Everything), b"new");
    }

    #[test]
    fn a_file_without_its_directory_is_lost() {
        let disk = disk(&[
            ("d", Change::MakeDir),
            ("d/a", Change::Create),
            ("d/a", write(0, b"a")),
            ("d/a", Change::Sync),
            ("d", Change::Sync),
        ]);
        assert!(disk.image(&mut Survival::Nothing).files.is_empty());
        assert_eq!(disk.image(&mut Survival::Everything).files.len(), 1);
    }

    #[test]
    fn growth_order_and_tears() {
        let old = [1; 2048];
        let disk = disk(&[
            ("a", Change::Create),
            ("", Change::Sync),
            ("a", write(0, &old)),
            ("a", Change::Sync),
            ("a", write(1024, &[2; 2048])),
            ("a", write(4096, &[3; 512])),
        ]);
        let found = |survival: &mut Survival| disk.image(survival).files[Path::new("a")].clone();
        let grown = found(&mut Survival::NoGrowth);
        assert_eq!((grown.len(), grown[1023], grown[2047]), (2048, 1, 2));
        let latest = found(&mut Survival::Latest);
        assert_eq!(
            (latest.len(), latest[1024], latest[4000], latest[4096]),
            (4608, 1, 0, 3)
        );
        let kinds: BTreeSet<Vec<u8>> = (0..200)
            .map(|seed| found(&mut Survival::Chance(Box::new(stream(seed, 0, 0)))))
            .collect();
        assert!(kinds.len() > 10, "{}", kinds.len());
        // Sectors are not torn.
        for image in kinds {
            let of = |place: &[u8]| place.iter().all(|byte| *byte == place[0]);
            assert!(image.chunks(512).all(of));
        }
    }
}
