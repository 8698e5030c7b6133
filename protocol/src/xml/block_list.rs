//! Block lists: the body of Put Block List, the answer of Get Block List.
//!
//! Source: *Put Block List*, *Get Block List*. Ids are Base64 as sent; sizes are in bytes.

use crate::error::{ErrorCode, StorageError};
use crate::limits::BLOCKS_COMMITTED_MAX;
use crate::xml::read::read_document;
use crate::xml::write::XmlWriter;

/// The list in which Put Block List looks for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// `Committed`: only the committed blocks.
    Committed,
    /// `Uncommitted`: only the uncommitted blocks.
    Uncommitted,
    /// `Latest`: the uncommitted blocks, then the committed ones.
    Latest,
}

/// One element of a Put Block List body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockListEntry {
    /// The list in which the block is looked up.
    pub source: BlockSource,
    /// The block's id as sent, Base64.
    pub id: String,
}

/// Parses the body of Put Block List: its entries in the order of the blob.
///
/// # Errors
/// 400 `BlockListTooLong` beyond 50,000 entries, 400 `InvalidXmlDocument` for anything but a block
/// list.
pub fn read_block_list(body: &[u8]) -> Result<Vec<BlockListEntry>, StorageError> {
    // The root and one entry more than a full list, so that a list that is too long is detected.
    let root = read_document(body, BLOCKS_COMMITTED_MAX + 2)?;
    if root.name != "BlockList" {
        return Err(root.unexpected());
    }
    if root.children.len() > BLOCKS_COMMITTED_MAX {
        return Err(ErrorCode::BlockListTooLong.into());
    }
    let mut entries = Vec::with_capacity(root.children.len());
    for child in &root.children {
        let source = match child.name {
            "Committed" => BlockSource::Committed,
            "Uncommitted" => BlockSource::Uncommitted,
            "Latest" => BlockSource::Latest,
            _ => return Err(child.unexpected()),
        };
        if let Some(inner) = child.children.first() {
            return Err(inner.unexpected());
        }
        entries.push(BlockListEntry {
            source,
            id: child.trimmed().to_owned(),
        });
    }
    Ok(entries)
}

/// The answer of Get Block List: the ids (Base64) and sizes in bytes of the requested lists.
#[derive(Debug)]
pub struct BlockListDocument {
    xml: XmlWriter,
}

impl Default for BlockListDocument {
    fn default() -> Self {
        Self::new()
    }
}

impl BlockListDocument {
    /// Starts the document.
    pub fn new() -> Self {
        let mut xml = XmlWriter::new();
        xml.open("BlockList");
        BlockListDocument { xml }
    }

    /// Writes `CommittedBlocks`, in the order of the blob. Must precede the uncommitted blocks.
    pub fn committed<'a>(&mut self, blocks: impl IntoIterator<Item = (&'a str, u64)>) {
        self.push("CommittedBlocks", blocks);
    }

    /// Writes `UncommittedBlocks`, in the order of their ids.
    pub fn uncommitted<'a>(&mut self, blocks: impl IntoIterator<Item = (&'a str, u64)>) {
        self.push("UncommittedBlocks", blocks);
    }

    /// Returns the document.
    pub fn finish(mut self) -> Vec<u8> {
        self.xml.close("BlockList");
        self.xml.finish()
    }

    fn push<'a>(&mut self, list: &str, blocks: impl IntoIterator<Item = (&'a str, u64)>) {
        let mut blocks = blocks.into_iter().peekable();
        if blocks.peek().is_none() {
            return self.xml.empty(list);
        }
        self.xml.open(list);
        for (id, size) in blocks {
            self.xml.open("Block");
            self.xml.element("Name", id);
            self.xml.element("Size", &size.to_string());
            self.xml.close("Block");
        }
        self.xml.close(list);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::xml::write::tests::body_of;

    #[test]
    fn parses_the_three_kinds_in_order() {
        let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<BlockList>\n <Latest>MQ==</Latest>\
                    <Uncommitted> Mg== </Uncommitted><Committed>MQ==</Committed></BlockList>";
        let read = read_block_list(body.as_bytes()).unwrap();
        let flat: Vec<_> = read
            .iter()
            .map(|entry| (entry.source, entry.id.as_str()))
            .collect();
        assert_eq!(
            flat,
            [
                (BlockSource::Latest, "MQ=="),
                (BlockSource::Uncommitted, "Mg=="),
                (BlockSource::Committed, "MQ=="),
            ]
        );
        assert_eq!(read_block_list(b"<BlockList />"), Ok(vec![]));
    }

    #[test]
    fn rejects_malformed_block_lists() {
        for body in [
            "",
            "<List/>",
            "<BlockList><Newest>MQ==</Newest></BlockList>",
            "<BlockList><Latest><Id>MQ==</Id></Latest></BlockList>",
            "<BlockList><Latest>MQ==</Latest>",
        ] {
            let error = read_block_list(body.as_bytes()).unwrap_err();
            assert_eq!(
                (error.status(), error.code()),
                (400, ErrorCode::InvalidXmlDocument)
            );
        }
    }

    #[test]
    fn accepts_at_most_fifty_thousand_blocks() {
        let list = |blocks: usize| {
            format!(
                "<BlockList>{}</BlockList>",
                "<Latest>MQ==</Latest>".repeat(blocks)
            )
        };
        let full = read_block_list(list(BLOCKS_COMMITTED_MAX).as_bytes()).unwrap();
        assert_eq!(full.len(), BLOCKS_COMMITTED_MAX);
        let error = read_block_list(list(BLOCKS_COMMITTED_MAX + 1).as_bytes()).unwrap_err();
        assert_eq!(
            (error.status(), error.code()),
            (400, ErrorCode::BlockListTooLong)
        );
        assert!(read_block_list(list(2 * BLOCKS_COMMITTED_MAX).as_bytes()).is_err());
    }

    #[test]
    fn renders_as_recorded() {
        let mut both = BlockListDocument::new();
        both.committed([]);
        both.uncommitted([("MQ==", 4096), ("Mg==", 4097)]);
        assert_eq!(
            body_of(both.finish()),
            "<BlockList><CommittedBlocks /><UncommittedBlocks><Block><Name>MQ==</Name>\
             <Size>4096</Size></Block><Block><Name>Mg==</Name><Size>4097</Size></Block>\
             </UncommittedBlocks></BlockList>"
        );
        let mut committed = BlockListDocument::new();
        committed.committed([("MQ==", 10)]);
        assert_eq!(
            body_of(committed.finish()),
            "<BlockList><CommittedBlocks><Block><Name>MQ==</Name><Size>10</Size></Block>\
             </CommittedBlocks></BlockList>"
        );
    }

    proptest! {
        #[test]
        fn block_list_is_parsed_in_order(
            entries in prop::collection::vec((0usize..3, "[ -~]{0,64}"), 0..50),
        ) {
            let kinds = [
                ("Committed", BlockSource::Committed),
                ("Uncommitted", BlockSource::Uncommitted),
                ("Latest", BlockSource::Latest),
            ];
            let mut xml = XmlWriter::new();
            xml.open("BlockList");
            for (kind, id) in &entries {
                xml.element(kinds[*kind].0, id);
            }
            xml.close("BlockList");
            let read = read_block_list(&xml.finish()).unwrap();
            let expected = entries.iter().map(|(kind, id)| BlockListEntry {
                source: kinds[*kind].1,
                id: id.trim().to_owned(),
            });
            prop_assert_eq!(read, expected.collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_parsed_or_rejected(body in "(<|>|/|BlockList|Latest|&|;|\\PC){0,60}") {
            let read = read_block_list(body.as_bytes());
            prop_assert!(read.map_or_else(|error| error.status() == 400, |_| true));
        }
    }
}
