//! Finds the parts of a store in a directory.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use crate::disk::Disk;

pub(in super::super) const ENGINE_PREFIX: &str = "sled-";
pub(in super::super) const COPY_PREFIX: &str = "damaged-";

/// Parts of a store, except `format` and `lock`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Found {
    /// The numbers of the engine directories.
    pub(in super::super) engines: BTreeSet<u64>,
    /// Names of copies of damaged engines.
    pub(in super::super) copies: BTreeSet<String>,
    /// Number of segments.
    pub(in super::super) segments: usize,
}

impl Found {
    pub(in super::super) fn look(disk: &dyn Disk, dir: &Path) -> io::Result<Self> {
        let mut found = Found::default();
        for entry in disk.list(dir)? {
            let name = entry.name.split('/').next().unwrap_or_default();
            let index = name.strip_prefix(ENGINE_PREFIX);
            found
                .engines
                .extend(index.and_then(|n| n.parse::<u64>().ok()));
            if name.starts_with(COPY_PREFIX) && !name.ends_with(".part") {
                found.copies.insert(name.to_owned());
            }
        }
        let is_segment = |name: &str| name.ends_with(".seg");
        let extents = disk.list(&dir.join("extents"))?;
        found.segments = extents.iter().filter(|e| is_segment(&e.name)).count();
        Ok(found)
    }

    pub(in super::super) fn is_empty(&self) -> bool {
        *self == Found::default()
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.engines.iter().map(|n| format!("{ENGINE_PREFIX}{n}")));
        parts.extend(self.copies.iter().cloned());
        match self.segments {
            0 => {}
            1 => parts.push("1 segment of payloads".to_owned()),
            n => parts.push(format!("{n} segments of payloads")),
        }
        match parts.is_empty() {
            true => f.write_str("nothing else"),
            false => f.write_str(&parts.join(", ")),
        }
    }
}
