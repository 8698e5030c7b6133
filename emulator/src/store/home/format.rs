//! The file `format`: what tells a store from a directory, and a whole store from a part of one.
//!
//! It is the first file that a store makes and the last one that a change of the engine writes. So
//! where there is anything of a store and no `format`, something was lost.

/// The newest format that this release reads, and the one that it writes.
pub(in super::super) const FORMAT: u32 = 1;
/// The number of the first engine directory.
pub(super) const FIRST_INDEX: u64 = 1;

/// The last line of a store that is being made.
const BEGINNING: &str = "beginning";

/// What the file `format` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Format {
    pub(in super::super) version: u32,
    pub(in super::super) index: u64,
    /// The engine was seen at this tick: with less it has lost acknowledged commits.
    pub(in super::super) tick: u64,
    /// The store is being made and nothing was acknowledged.
    pub(in super::super) is_beginning: bool,
}

impl Format {
    /// That of a store that is being made.
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

    /// Reads what this or a newer release wrote: a newer one may have added lines.
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
