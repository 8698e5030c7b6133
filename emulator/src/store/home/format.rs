//! The file `format`, which distinguishes a store from another directory, and a complete store from
//! a part of one.
//!
//! It is the first file that a store creates and the last one that a change of the engine writes.
//! So when there are parts of a store and no `format`, something was lost.

/// The newest format that this release reads, and the one that it writes.
pub(in super::super) const FORMAT: u32 = 2;
/// The number of the first engine directory.
pub(super) const FIRST_INDEX: u64 = 1;

/// The last line for a store that is being created.
const BEGINNING: &str = "beginning";

/// The content of the file `format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Format {
    pub(in super::super) version: u32,
    pub(in super::super) index: u64,
    /// A tick that the engine has reached; an engine at a lower one has lost acknowledged commits.
    pub(in super::super) tick: u64,
    /// Whether the store is being created, so that nothing was acknowledged.
    pub(in super::super) is_beginning: bool,
}

impl Format {
    /// Returns the format of a store that is being created.
    pub(super) const fn beginning() -> Self {
        Format {
            version: FORMAT,
            index: FIRST_INDEX,
            tick: 0,
            is_beginning: true,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "smalt store\nformat {}\nindex {}\ntick {}\n",
            self.version, self.index, self.tick
        );
        if self.is_beginning {
            text += BEGINNING;
            text.push('\n');
        }
        text
    }

    /// Parses the file of this or a newer release, which may have more lines.
    pub(in super::super) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != "smalt store" {
            return None;
        }
        let version = lines.next()?.strip_prefix("format ")?.parse().ok()?;
        let mut format = Format {
            version,
            is_beginning: false,
            ..Self::beginning()
        };
        if version > FORMAT {
            return Some(format);
        }
        format.index = lines.next()?.strip_prefix("index ")?.parse().ok()?;
        format.tick = lines.next()?.strip_prefix("tick ")?.parse().ok()?;
        format.is_beginning = lines.next() == Some(BEGINNING);
        Some(format)
    }
}
