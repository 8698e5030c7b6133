//! Keys of hierarchical namespaces.
//!
//! A container of a hierarchical account is a tree. The generation of the container is the id of
//! its root directory, and each directory has an id of its own; the top bit tells these from the
//! generations of flat containers. The contents of a directory are keyed by its id and the last
//! segment of their path, and never by the path itself: renaming a directory moves one record.

use super::{DIRECTORY_LAST, Generation};

const HIERARCHICAL: Generation = 1 << 63;

/// The id of a directory that does not exist: nothing is ever stored under it.
pub const MISSING: Generation = Generation::MAX;
/// Stands for a directory in whose place there is a file: nothing is ever stored under it.
pub const BLOCKED: Generation = Generation::MAX - 1;

/// Returns the id of a directory: of a root, made of the tick of the container's creation, or of
/// another, made of the next [`directory_last`], which is far below any tick.
pub const fn directory(number: u64) -> Generation {
    number | HIERARCHICAL
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

#[cfg(test)]
mod tests {
    use super::super::{blob, blob_name};
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
}
