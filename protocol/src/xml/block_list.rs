//! Block lists: the body of Put Block List, the answer of Get Block List.
//!
//! Source: *Put Block List*, *Get Block List*. Ids are Base64 as sent; sizes are in bytes.

use crate::error::{ErrorCode, StorageError};
use crate::limits::BLOCKS_COMMITTED_MAX;
use crate::xml::read::read_document;
use crate::xml::write::XmlWriter;

/// Where Put Block List looks for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSource {
    /// Among the committed blocks only.
    Committed,
    /// Among the uncommitted blocks only.
    Uncommitted,
    /// Among the uncommitted blocks, then among the committed ones.
    Latest,
}

/// One element of a Put Block List body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockListEntry {
    /// Where to look.
    pub source: BlockSource,
    /// The block's id as sent, Base64.
    pub id: String,
}

/// Reads the body of Put Block List: entries in the order in which the blob is put together.
///
/// # Errors
/// 400 `BlockListTooLong` beyond 50,000 entries, 400 `InvalidXmlDocument` for anything that is no
/// block list.
pub fn read_block_list(body: &[u8]) -> Result<Vec<BlockListEntry>, StorageError> {
    // One more than a full list and its root, so that a list too long is still told apart.
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

/// The answer of Get Block List: ids (Base64) and sizes in bytes of the lists asked for; a list
/// that was not asked for is left out.
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
    /// The start of the document.
    pub fn new() -> Self {
        let mut xml = XmlWriter::new();
        xml.open("BlockList");
        BlockListDocument { xml }
    }

    /// `CommittedBlocks`, in the order of the blob. Goes before the uncommitted ones.
    pub fn committed<'a>(&mut self, blocks: impl IntoIterator<Item = (&'a str, u64)>) {
        self.push("CommittedBlocks", blocks);
    }

    /// `UncommittedBlocks`, in the order of their ids.
    pub fn uncommitted<'a>(&mut self, blocks: impl IntoIterator<Item = (&'a str, u64)>) {
        self.push("UncommittedBlocks", blocks);
    }

    /// The document's bytes.
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
    fn reads_the_three_kinds_in_order() {
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
    fn refuses_what_is_no_block_list() {
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
    fn fifty_thousand_blocks_and_no_more() {
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
        /// A list that a client writes is read back in its order, whatever the ids are.
        #[test]
        fn block_list_is_read_in_order(
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

        /// Bytes that are not a block list are the client's fault.
        #[test]
        fn any_bytes_are_read_or_refused(body in "(<|>|/|BlockList|Latest|&|;|\\PC){0,60}") {
            let read = read_block_list(body.as_bytes());
            prop_assert!(read.map_or_else(|error| error.status() == 400, |_| true));
        }
    }
}
