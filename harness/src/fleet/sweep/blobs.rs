//! The blobs of a run and their fates, all of which follow from a number.

use smalt_protocol::Timestamp;
use smalt_sleeve::port::{BlobId, Metadata};

/// Number of a blob.
pub type Number = u64;

/// Container of the blobs that are moved.
pub const DEAD_CONTAINER: &str = "fleet-dead";
/// Prefix of the containers' names.
const CONTAINER: &str = "fleet-";
/// Prefix of a blob's name: a space must be encoded in every URL.
const BLOB: &str = "blob ";
/// Least length of the content in bytes; some blobs have a little more.
const CONTENT_BYTES: usize = 64;
/// Percentage of the blobs that are due.
const DUE_PERCENT: u64 = 10;
/// Percentage of the due blobs that must move; the others are deleted.
const MOVED_PERCENT: u64 = 25;
/// Least time in seconds since a due blob expired.
const DUE_FOR_S: u64 = 3_600;
/// Least time in seconds until the others expire: longer than any run.
const LATER_S: u64 = 30 * 24 * 3_600;

/// What must happen to a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It has no time to live, and stays.
    Untagged,
    /// It is not due, and stays.
    Later,
    /// It is due, and is deleted.
    Deleted,
    /// It is due, and moves to the container of the dead blobs.
    Moved,
}

impl Fate {
    /// Whether a sweep must remove it from its place.
    pub fn is_due(self) -> bool {
        matches!(self, Fate::Deleted | Fate::Moved)
    }
}

/// All blobs of a run.
#[derive(Clone, Debug)]
pub struct Blobs {
    /// Number of blobs.
    pub count: u64,
    /// Number of containers that share them.
    pub containers: u64,
    /// Seed that determines the fates.
    pub seed: u64,
    /// Time at which they are put.
    pub now: Timestamp,
}

/// Spreads a number over all bits (the last steps of `SplitMix64`).
const fn spread(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl Blobs {
    /// Returns what must happen to a blob.
    pub fn fate(&self, number: Number) -> Fate {
        let drawn = spread(number ^ spread(self.seed.wrapping_add(1)));
        let (due, moved, kept) = (drawn % 100, (drawn >> 16) % 100, (drawn >> 32) % 2);
        match (due < DUE_PERCENT, moved < MOVED_PERCENT, kept) {
            (true, true, _) => Fate::Moved,
            (true, false, _) => Fate::Deleted,
            (false, _, 0) => Fate::Untagged,
            (false, _, _) => Fate::Later,
        }
    }

    /// Returns the names of the containers.
    pub fn containers(&self) -> impl Iterator<Item = String> {
        (0..self.containers).map(container)
    }

    /// Returns the place of a blob.
    pub fn place(&self, number: Number) -> BlobId {
        let name = format!("{}/{BLOB}{number:09}", number % 7);
        BlobId::new(container(number % self.containers), name)
    }

    /// Returns the number of the blob at a place, if it is one of this run.
    pub fn number(&self, place: &BlobId) -> Option<Number> {
        let (_, digits) = place.name.split_once(BLOB)?;
        let number = digits.parse().ok()?;
        (number < self.count && self.place(number) == *place).then_some(number)
    }

    /// Returns the blob's `DeadBlobContainer`: the container of the dead blobs, and a folder there.
    fn dead(&self, number: Number) -> String {
        format!("{DEAD_CONTAINER}/{}/", self.place(number).container)
    }

    /// Returns the destination of a blob.
    pub fn dead_place(&self, number: Number) -> BlobId {
        let own = self.place(number);
        BlobId::new(DEAD_CONTAINER, format!("{}/{}", own.container, own.name))
    }

    /// Returns the number of the blob whose copy has this name.
    pub fn dead_number(&self, name: &str) -> Option<Number> {
        let (container, name) = name.split_once('/')?;
        self.number(&BlobId::new(container, name))
    }

    /// Returns the content of a blob.
    pub fn content(&self, number: Number) -> String {
        let mut text = format!("{number} ");
        let bytes = CONTENT_BYTES + usize::try_from(number % 16).unwrap_or(0);
        while text.len() < bytes {
            text.push_str(&format!("{:016x}", spread(number ^ text.len() as u64)));
        }
        text
    }

    /// Returns the metadata of a blob: a note of its owner's, and what the sweeper reads.
    pub fn metadata(&self, number: Number) -> Metadata {
        let mut metadata = Metadata::new();
        let mut say = |name: &str, value: String| metadata.insert(name.to_owned(), value);
        say("Note", format!("kept by {number}"));
        match self.fate(number) {
            Fate::Untagged => {}
            Fate::Later if number.is_multiple_of(2) => _ = say("TimeToLive", "P30D".to_owned()),
            Fate::Later => _ = say("TimeToLive", self.now.plus_s(LATER_S).iso_s()),
            Fate::Deleted | Fate::Moved => {
                let ago = std::time::Duration::from_secs(DUE_FOR_S + number % 1_000);
                say("TimeToLive", self.now.minus(ago).iso_s());
            }
        }
        if self.fate(number) == Fate::Moved {
            say("DeadBlobContainer", self.dead(number));
        }
        metadata
    }
}

fn container(number: u64) -> String {
    format!("{CONTAINER}{number:03}")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns this many blobs in four containers, a tenth of them due.
    pub(crate) fn blobs(count: u64) -> Blobs {
        Blobs {
            count,
            containers: 4,
            seed: 7,
            now: Timestamp::from_unix_s(1_800_000_000),
        }
    }

    #[test]
    fn as_many_are_due_as_were_asked_for() {
        let blobs = blobs(100_000);
        let of = |fate| (0..blobs.count).filter(|n| blobs.fate(*n) == fate).count();
        let (deleted, moved) = (of(Fate::Deleted), of(Fate::Moved));
        assert!((9_500..10_500).contains(&(deleted + moved)), "{deleted}");
        assert!((2_200..2_800).contains(&moved), "{moved}");
        assert!(of(Fate::Untagged) > 40_000 && of(Fate::Later) > 40_000);
    }

    #[test]
    fn a_place_names_its_blob() {
        let blobs = blobs(1_000);
        for number in [0, 1, 63, 999] {
            assert_eq!(blobs.number(&blobs.place(number)), Some(number));
            let dead = blobs.dead_place(number);
            assert_eq!(blobs.dead_number(&dead.name), Some(number));
        }
        let mut foreign = blobs.place(5);
        foreign.container = container(3);
        assert_eq!(blobs.number(&foreign), None);
        assert_eq!(blobs.number(&blobs.place(1_000)), None);
        assert_eq!(blobs.dead_number("fleet-000/readme"), None);
    }

    #[test]
    fn due_blobs_have_expired_and_contents_differ() {
        let blobs = blobs(1_000);
        for number in 0..blobs.count {
            let said = blobs.metadata(number);
            let (fate, ttl) = (blobs.fate(number), said.get("TimeToLive"));
            assert_eq!(fate == Fate::Untagged, ttl.is_none());
            assert_eq!(fate == Fate::Moved, said.contains_key("DeadBlobContainer"));
            assert_ne!(blobs.content(number), blobs.content(number + 1));
        }
    }
}
