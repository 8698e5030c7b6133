//! The content of the three blob types. Sources: "Append Block", "Append Blob Seal", "Put Page",
//! "Get Page Ranges", "Set Blob Properties".

use std::collections::BTreeMap;

use smalt_protocol::ErrorCode;

use crate::expected::{Answer, Expected, Fact, Refusal};
use crate::vocabulary::{PAGE_BYTES, Position, Property, Sequence};

/// A committed block: its id, if it has one, and its bytes.
pub(crate) type Block = (Option<Vec<u8>>, Vec<u8>);

/// The content of a blob, by blob type.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Bytes {
    /// A block blob. One written by a single Put Blob has one block without an id.
    Blocks(Vec<Block>),
    /// An append blob.
    Appended { blocks: Vec<Vec<u8>>, sealed: bool },
    /// A page blob: the written pages, each a repetition of one byte.
    Pages {
        pages: u64,
        number: u64,
        written: BTreeMap<u64, u8>,
    },
}

type Facts = Result<Vec<Fact>, Refusal>;

impl Bytes {
    /// Returns the content of a new append blob.
    pub(crate) fn appended() -> Self {
        Bytes::Appended {
            blocks: Vec::new(),
            sealed: false,
        }
    }

    /// Returns the content of a new page blob.
    pub(crate) fn pages(pages: u64, number: u64) -> Self {
        Bytes::Pages {
            pages,
            number,
            written: BTreeMap::new(),
        }
    }

    /// Returns the blob type as on the wire.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Bytes::Blocks(_) => "BlockBlob",
            Bytes::Appended { .. } => "AppendBlob",
            Bytes::Pages { .. } => "PageBlob",
        }
    }

    /// Returns all bytes; pages of a page blob that were never written are zero.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Bytes::Blocks(blocks) => blocks.iter().flat_map(|(_, b)| b).copied().collect(),
            Bytes::Appended { blocks, .. } => blocks.concat(),
            Bytes::Pages { pages, written, .. } => {
                let fill = |page| written.get(&page).copied().unwrap_or_default();
                let page = |page| std::iter::repeat_n(fill(page), PAGE_BYTES as usize);
                (0..*pages).flat_map(page).collect()
            }
        }
    }

    /// Returns the length in bytes.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Bytes::Blocks(blocks) => blocks.iter().map(|(_, b)| b.len() as u64).sum(),
            Bytes::Appended { blocks, .. } => blocks.iter().map(|b| b.len() as u64).sum(),
            Bytes::Pages { pages, .. } => pages * PAGE_BYTES,
        }
    }

    /// Returns the facts of a read that depend on the blob type.
    pub(crate) fn shown(&self) -> Vec<Fact> {
        let kind = Fact::Header("x-ms-blob-type", Some(self.kind().to_owned()));
        let mut facts = vec![kind];
        match self {
            Bytes::Blocks(_) => {}
            Bytes::Appended { blocks, sealed } => {
                let count = Some(blocks.len().to_string());
                facts.push(Fact::Header("x-ms-blob-committed-block-count", count));
                let sealed = sealed.then(|| "true".to_owned());
                facts.push(Fact::Header("x-ms-blob-sealed", sealed));
            }
            Bytes::Pages { .. } => facts.extend(self.number()),
        }
        facts
    }

    /// Returns the sequence number of a page blob as facts.
    pub(crate) fn number(&self) -> Vec<Fact> {
        match self {
            Bytes::Pages { number, .. } => {
                let number = Some(number.to_string());
                vec![Fact::Header("x-ms-blob-sequence-number", number)]
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn append(&mut self, block: Vec<u8>, position: Option<Position>) -> Facts {
        let length = self.length();
        let Bytes::Appended { blocks, sealed } = self else {
            return Err(ErrorCode::InvalidBlobType.into());
        };
        if *sealed {
            return Err(ErrorCode::BlobIsSealed.into());
        }
        check_position(position, length, block.len() as u64)?;
        blocks.push(block);
        let count = Some(blocks.len().to_string());
        Ok(vec![
            Fact::Header("x-ms-blob-append-offset", Some(length.to_string())),
            Fact::Header("x-ms-blob-committed-block-count", count),
        ])
    }

    /// Seals an append blob; sealing it again changes nothing.
    pub(crate) fn seal(&mut self, position: Option<Position>) -> Facts {
        let length = self.length();
        let Bytes::Appended { sealed, .. } = self else {
            return Err(ErrorCode::InvalidBlobType.into());
        };
        check_position(position, length, 0)?;
        *sealed = true;
        let told = Some("true".to_owned());
        Ok(vec![Fact::Header("x-ms-blob-sealed", told)])
    }

    pub(crate) fn write(
        &mut self,
        first: u64,
        count: u64,
        fill: Option<u8>,
        sequence: Option<Sequence>,
    ) -> Facts {
        let Bytes::Pages {
            pages,
            number,
            written,
        } = self
        else {
            return Err(ErrorCode::InvalidBlobType.into());
        };
        let holds = match sequence {
            None => true,
            Some(Sequence::Most(most)) => *number <= most,
            Some(Sequence::Below(end)) => *number < end,
            Some(Sequence::Is(wanted)) => *number == wanted,
        };
        if !holds {
            return Err(ErrorCode::SequenceNumberConditionNotMet.into());
        }
        if first + count > *pages {
            return Err(ErrorCode::InvalidPageRange.into());
        }
        for page in first..first + count {
            match fill {
                Some(byte) => written.insert(page, byte),
                None => written.remove(&page),
            };
        }
        Ok(self.number())
    }

    /// Sets a property that only page blobs have.
    pub(crate) fn set(&mut self, property: Property) -> Result<(), Refusal> {
        let Bytes::Pages {
            pages,
            number,
            written,
        } = self
        else {
            return Err(ErrorCode::InvalidBlobType.into());
        };
        match property {
            Property::Content(_) => {}
            // "If the specified value is less than the current size of the blob, all pages above
            // the specified value are cleared."
            Property::Pages(length) => {
                *pages = length;
                written.retain(|page, _| *page < length);
            }
            Property::NumberMax(other) => *number = other.max(*number),
            Property::NumberUpdate(new) => *number = new,
            Property::NumberIncrement if *number == i64::MAX as u64 => {
                return Err(ErrorCode::SequenceNumberIncrementTooLarge.into());
            }
            Property::NumberIncrement => *number += 1,
        }
        Ok(())
    }

    /// Get Page Ranges: adjacent ranges are merged.
    pub(crate) fn page_ranges(&self, answer: Expected) -> Answer {
        let Bytes::Pages { written, .. } = self else {
            return Err(ErrorCode::InvalidBlobType.into());
        };
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for page in written.keys() {
            let (first, end) = (page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == first => *last = end - 1,
                _ => ranges.push((first, end - 1)),
            }
        }
        let length = Some(self.length().to_string());
        let length = Fact::Header("x-ms-blob-content-length", length);
        Ok(answer
            .without_lease()
            .with(length)
            .with(Fact::Ranges(ranges)))
    }
}

fn check_position(position: Option<Position>, length: u64, added: u64) -> Result<(), Refusal> {
    match position {
        Some(Position::At(at)) if at != length => {
            Err(ErrorCode::AppendPositionConditionNotMet.into())
        }
        Some(Position::Most(most)) if length + added > most => {
            Err(ErrorCode::MaxBlobSizeConditionNotMet.into())
        }
        _ => Ok(()),
    }
}
