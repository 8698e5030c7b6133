//! Keys of hierarchical namespaces.
//!
//! A container of a hierarchical account is a tree. The generation of the container is the id of
//! its root directory, and each directory has an id of its own; the top bit tells these from the
//! generations of flat containers. The contents of a directory are keyed by its id and the last
//! segment of their path, and never by the path itself: renaming a directory moves one record. A
//! path can be deleted several times: each deletion has a key.

use smalt_protocol::Timestamp;

use super::{DIRECTORY_LAST, Generation, blob_name, deleted_blob, generation, snapshot_name};

const HIERARCHICAL: Generation = 1 << 63;

/// The id of a directory that does not exist: nothing is ever stored under it.
pub const MISSING: Generation = Generation::MAX;
/// Stands for a directory in whose place there is a file: nothing is ever stored under it.
pub const BLOCKED: Generation = Generation::MAX - 1;

/// Stands for the directory of a path with more segments than a new one may have: nothing is ever
/// stored under it.
pub const TOO_DEEP: Generation = Generation::MAX - 2;

/// Returns the id of a directory: of a root, made of the tick of the container's creation, or of
/// another, made of the next [`directory_last`], which is far below any tick.
pub const fn directory(number: u64) -> Generation {
    number | HIERARCHICAL
}

/// Returns the number that [`directory`] made an id of.
pub const fn number(id: Generation) -> u64 {
    id & !HIERARCHICAL
}

/// Whether a generation is that of a hierarchical container, or the id of a directory.
pub const fn is_hierarchical(generation: Generation) -> bool {
    generation & HIERARCHICAL != 0
}

/// Returns the key of the number of the last directory.
pub fn directory_last() -> Vec<u8> {
    vec![DIRECTORY_LAST]
}

/// Returns the part of a blob's name that its keys contain: the last segment of a path in a
/// directory, the whole name in a flat container.
pub(super) fn part(generation: Generation, name: &str) -> &[u8] {
    let part = if is_hierarchical(generation) {
        leaf(name)
    } else {
        name
    };
    part.as_bytes()
}

/// Returns the last segment of a path, which may end in slashes.
pub fn leaf(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the key of a path of a hierarchical container that was deleted at `tick` and can be
/// restored. A path can be deleted several times, and each deletion undone.
pub fn deleted_path(generation: Generation, name: &str, tick: Timestamp) -> Vec<u8> {
    let mut key = deleted_paths(generation, name);
    key.extend_from_slice(&tick.ticks().to_be_bytes());
    key
}

/// Returns where the deletions of a path start; [`after`](super::after) gives their end.
pub fn deleted_paths(generation: Generation, name: &str) -> Vec<u8> {
    let mut key = deleted_blob(generation, name);
    key.push(0);
    key
}

/// Returns the name from the key of a deleted blob; of a path also the tick of its deletion.
pub fn deleted_name(key: &[u8]) -> (String, Option<Timestamp>) {
    if is_hierarchical(generation(key)) {
        let (name, tick) = snapshot_name(key);
        return (name, Some(tick));
    }
    (blob_name(key), None)
}

#[cfg(test)]
mod tests {
    use super::super::blob;
    use super::*;

    #[test]
    fn keys_of_a_directory_have_the_last_segment_only() {
        let root = directory(7);
        assert!(is_hierarchical(root) && !is_hierarchical(7));
        for (path, name) in [("a", "a"), ("a/b", "b"), ("a/b/", "b"), ("", "")] {
            assert_eq!(blob_name(&blob(root, path)), name, "{path}");
            assert_eq!(blob_name(&blob(7, path)), path, "{path}");
        }
    }

    #[test]
    fn each_deletion_of_a_path_has_a_key() {
        let tick = Timestamp::from_ticks(0x00ff_0000_0001);
        let key = deleted_path(directory(7), "a/b", tick);
        assert_eq!(deleted_name(&key), ("b".to_owned(), Some(tick)));
        assert_eq!(
            deleted_name(&deleted_blob(7, "a/b")),
            ("a/b".to_owned(), None)
        );
    }
}
