//! The output directory. Names come from clients and from a store that may be damaged; each becomes
//! one plain file name.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};

/// Maximum bytes of a name: file systems allow 255, and a number may follow.
const NAME_BYTES_MAX: usize = 200;

/// File names that Windows reserves for devices, with any extension.
const DEVICES: [&str; 22] = [
    "con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8",
    "com9", "lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9",
];

pub(super) struct Out {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The used paths in lower case: some file systems ignore case.
    taken: BTreeSet<String>,
}

/// A file that is written sequentially.
pub(super) struct File {
    file: Arc<dyn DiskFile>,
    at: u64,
}

impl Out {
    /// Starts in a new or empty directory.
    pub(super) fn new(disk: &Arc<dyn Disk>, dir: &Path) -> io::Result<Self> {
        disk.create_private_dir(dir)?;
        if !disk.list(dir)?.is_empty() {
            return Err(io::Error::other("the directory is not empty"));
        }
        Ok(Out {
            disk: Arc::clone(disk),
            dir: dir.to_owned(),
            taken: BTreeSet::new(),
        })
    }

    /// Creates a file in these folders and returns it with its path relative to the directory.
    pub(super) fn file(&mut self, folders: &[&str], name: &str) -> io::Result<(String, File)> {
        let mut path = String::new();
        for folder in folders {
            path += &escaped(folder);
            path.push('/');
        }
        if !path.is_empty() {
            self.disk.create_dir(&self.dir.join(&path))?;
        }
        path += &escaped(name);
        let mut free = path.clone();
        let mut number = 1;
        while !self.taken.insert(free.to_lowercase()) {
            number += 1;
            // Escaped names contain no `~`.
            free = format!("{path}~{number}");
        }
        let file = self.disk.open(&self.dir.join(&free), true)?;
        Ok((free, File { file, at: 0 }))
    }
}

impl File {
    /// Appends bytes. Zeros take no space: a page blob of terabytes is mostly zeros.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.iter().any(|byte| *byte != 0) {
            self.file.write_at(bytes, self.at)?;
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    pub(super) fn line(&mut self, value: &serde_json::Value) -> io::Result<()> {
        self.write(format!("{value}\n").as_bytes())
    }

    /// Appends the last bytes and syncs the file.
    pub(super) fn end(mut self, bytes: &[u8]) -> io::Result<()> {
        self.write(bytes)?;
        if self.file.len()? < self.at {
            self.file.write_at(&[0], self.at - 1)?;
        }
        self.file.sync_data()
    }
}

/// Escapes a name to one plain file name: letters, digits, `-`, `_` and inner dots stay, every
/// other byte becomes `%` and two hex digits. A name that is too long is cut.
pub(super) fn escaped(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    let stem = name.split('.').next().unwrap_or_default();
    let is_device = DEVICES.contains(&stem.to_ascii_lowercase().as_str());
    for (at, byte) in name.bytes().enumerate() {
        let is_edge = at == 0 || at + 1 == name.len();
        let is_plain = match byte {
            b'.' => !is_edge,
            b'-' | b'_' => true,
            byte => byte.is_ascii_alphanumeric() && !(is_device && at == 0),
        };
        let next = match is_plain {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        if plain.len() + next.len() > NAME_BYTES_MAX {
            break;
        }
        plain += &next;
    }
    // A cut name may end in a dot of its middle.
    plain.truncate(plain.trim_end_matches('.').len());
    if plain.is_empty() {
        plain.push('%');
    }
    plain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::{SystemDisk, files_below};

    #[test]
    fn names_stay_readable_where_possible() {
        for (name, plain) in [
            ("a.txt", "a.txt"),
            ("dir/a b.txt", "dir%2Fa%20b.txt"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"),
            ("..", "%2E%2E"),
            (".", "%2E"),
            ("", "%"),
            ("CON", "%43ON"),
            ("nul.txt", "%6Eul.txt"),
            ("C:\\x", "C%3A%5Cx"),
            ("x.", "x%2E"),
            ("a~2", "a%7E2"),
            ("ä", "%C3%A4"),
        ] {
            assert_eq!(escaped(name), plain, "{name}");
        }
        let cut = "x".repeat(NAME_BYTES_MAX - 1);
        assert_eq!(escaped(&format!("{cut}..é")), cut);
    }

    #[test]
    fn colliding_names_get_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(SystemDisk);
        let mut out = Out::new(&disk, &dir.path().join("out")).unwrap();
        let long = "x".repeat(1_024);
        let names = ["a", "A", "a", &long, &long].map(|name| out.file(&["b"], name).unwrap().0);
        assert_eq!(names[..3], ["b/a", "b/A~2", "b/a~3"]);
        assert!(names[4].ends_with("x~2") && names[4].len() < 255);
        assert_eq!(files_below(&dir.path().join("out/b")).unwrap().len(), 5);
        assert!(Out::new(&disk, &dir.path().join("out")).is_err());
    }

    proptest! {
        /// Every name becomes one plain component of a path.
        #[test]
        fn a_name_never_leaves_its_folder(name in any::<String>()) {
            let plain = escaped(&name);
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "%-_.".contains(c);
            prop_assert!(plain.chars().all(is_plain));
            prop_assert!((1..=NAME_BYTES_MAX).contains(&plain.len()));
            prop_assert!(!plain.starts_with('.') && !plain.ends_with('.'));
        }
    }
}
