//! Maps keys to the kinds of records.

use super::{
    BLOB, BLOCK, BLOCK_LIST, BLOCK_LIST_REFS, CONTAINER, DELETED_BLOB, DELETED_CONTAINER,
    DIRECTORY_LAST, ENTITY, ENTITY_PART, EVENT, EXPIRING, EXPIRY, GARBAGE, MESSAGE, MESSAGE_COUNT,
    PAGE_GARBAGE, PAGE_NODE, PAGE_NODE_LAST, PAGE_NODE_REFS, QUEUE, SERVICE, SNAPSHOT,
    SUBSCRIPTION, TABLE, TAG, UNCOMMITTED, VERSION, VISIBLE, WAITING,
};

macro_rules! kinds {
    ($($name:ident = $prefix:ident,)*) => {
        /// A kind of record; each prefix of a key has one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the table of keys describes each kind")]
        pub enum Kind { $($name,)* }

        /// Returns the kind of record of a key; `None` for an unknown prefix.
        pub fn kind(key: &[u8]) -> Option<Kind> {
            match *key.first()? {
                $($prefix => Some(Kind::$name),)*
                _ => None,
            }
        }

        /// Returns where the records of a kind start; [`after`](super::after) gives their end.
        pub fn all_of(kind: Kind) -> Vec<u8> {
            match kind { $(Kind::$name => vec![$prefix],)* }
        }
    };
}

kinds! {
    Container = CONTAINER,
    Blob = BLOB,
    Snapshot = SNAPSHOT,
    Block = BLOCK,
    Uncommitted = UNCOMMITTED,
    BlockList = BLOCK_LIST,
    BlockListRefs = BLOCK_LIST_REFS,
    Version = VERSION,
    DeletedBlob = DELETED_BLOB,
    DeletedContainer = DELETED_CONTAINER,
    PageNode = PAGE_NODE,
    PageNodeRefs = PAGE_NODE_REFS,
    PageNodeLast = PAGE_NODE_LAST,
    PageGarbage = PAGE_GARBAGE,
    Tag = TAG,
    DirectoryLast = DIRECTORY_LAST,
    Queue = QUEUE,
    Message = MESSAGE,
    Visible = VISIBLE,
    Expiry = EXPIRY,
    MessageCount = MESSAGE_COUNT,
    Table = TABLE,
    Entity = ENTITY,
    EntityPart = ENTITY_PART,
    Service = SERVICE,
    Garbage = GARBAGE,
    Expiring = EXPIRING,
    Subscription = SUBSCRIPTION,
    Event = EVENT,
    Waiting = WAITING,
}

/// Returns account and name from the key of a container, queue, table or service, decoded lossily.
pub fn owner(key: &[u8]) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut parts = key.get(1..).unwrap_or_default().split(|byte| *byte == 0);
    let mut next = || text(parts.next().unwrap_or_default());
    (next(), next())
}

/// Returns the tag name from a key of the tag index.
pub fn tag_name(key: &[u8]) -> String {
    let mut parts = key.get(9..).unwrap_or_default().split(|byte| *byte == 0);
    String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned()
}
