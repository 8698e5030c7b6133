//! The answers that the service must give.

use smalt_protocol::ErrorCode;

use crate::vocabulary::tables::TableExpected;
use crate::vocabulary::{LeaseId, MessageId, Metadata, Moment, Receipt, Tag};

/// The expected answer of one operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The HTTP status; 0 if no request was sent.
    pub status: u16,
    /// `x-ms-error-code`.
    pub code: Option<ErrorCode>,
    /// Further values that the answer must contain.
    pub facts: Vec<Fact>,
}

impl Expected {
    /// Returns the answer of an operation that sends no request.
    pub fn nothing() -> Self {
        Expected::ok(0)
    }

    /// Returns a success without facts.
    pub fn ok(status: u16) -> Self {
        Expected {
            status,
            code: None,
            facts: Vec::new(),
        }
    }

    /// Returns a success with tag and time of the changed or read resource.
    pub fn of_version(status: u16, tag: Tag, modified_s: u64) -> Self {
        Expected::ok(status)
            .with(Fact::Tag(tag))
            .with(Fact::LastModified(modified_s))
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, fact: Fact) -> Self {
        self.facts.push(fact);
        self
    }

    /// Adds facts.
    #[must_use]
    pub fn with_all(mut self, facts: impl IntoIterator<Item = Fact>) -> Self {
        self.facts.extend(facts);
        self
    }

    /// Removes the lease headers that only Get Blob and Get Blob Properties return.
    #[must_use]
    pub fn without_lease(mut self) -> Self {
        let of_lease = |fact: &Fact| matches!(fact, Fact::Header(n, _) if n.contains("lease"));
        self.facts.retain(|fact| !of_lease(fact));
        self
    }

    /// Returns whether the operation succeeded.
    pub fn is_done(&self) -> bool {
        self.code.is_none()
    }
}

/// An error: its code and, if it is not the code's usual one, its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal(pub ErrorCode, pub Option<u16>);

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Refusal(code, None)
    }
}

impl From<Refusal> for Expected {
    fn from(Refusal(code, status): Refusal) -> Self {
        Expected {
            status: status.unwrap_or_else(|| code.status()),
            code: Some(code),
            facts: Vec::new(),
        }
    }
}

impl From<TableExpected> for Expected {
    fn from(expected: TableExpected) -> Self {
        Expected {
            status: expected.status,
            code: expected.code,
            facts: vec![Fact::Table(expected)],
        }
    }
}

/// The answer of an operation, or its error.
pub type Answer = Result<Expected, Refusal>;

/// Converts an error to an [`Expected`] answer.
pub fn settle(answer: Answer) -> Expected {
    answer.unwrap_or_else(Expected::from)
}

/// A value that an answer must contain.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// `ETag`.
    Tag(Tag),
    /// `Last-Modified`, in seconds of the Unix epoch.
    LastModified(u64),
    /// A header with this value; `None` if it must be absent.
    Header(&'static str, Option<String>),
    /// `x-ms-lease-id`.
    LeaseId(LeaseId),
    /// `x-ms-snapshot`.
    Snapshot(Moment),
    /// All user metadata.
    Metadata(Metadata),
    /// The body.
    Body(Vec<u8>),
    /// The entries of a listing, in order.
    Listed(Vec<Listed>),
    /// The entries of Path - List, in order: name, whether it is a directory, ETag, length.
    Paths(Vec<(String, bool, Tag, u64)>),
    /// Committed and uncommitted blocks: id, length in bytes.
    Blocks(Vec<(Vec<u8>, u64)>, Vec<(Vec<u8>, u64)>),
    /// Page ranges: first and last byte of each.
    Ranges(Vec<(u64, u64)>),
    /// Containers or queues in order; with metadata if requested.
    Resources(Vec<(String, Option<Metadata>)>),
    /// Index tags.
    Tags(Metadata),
    /// Messages, in order.
    Messages(Vec<Shown>),
    /// `x-ms-popreceipt` of a message.
    Receipt(Receipt),
    /// The whole answer of the Table service.
    Table(TableExpected),
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    /// A blob or snapshot.
    Blob {
        /// The blob's name.
        name: String,
        /// The snapshot's time; `None` for a blob.
        snapshot: Option<Moment>,
        /// The ETag; `None` if there are only uncommitted blocks.
        tag: Option<Tag>,
        /// Length in bytes.
        length: u64,
        /// `Deleted`: the blob is soft-deleted.
        deleted: bool,
        /// Metadata, index tags and type; `None` if there are only uncommitted blocks.
        detail: Option<(Metadata, Metadata, &'static str)>,
    },
    /// A common prefix of blob names.
    Prefix(String),
}

/// A message in an answer. Fields that this kind of answer does not return are `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The message id.
    pub id: MessageId,
    /// The pop receipt.
    pub receipt: Option<Receipt>,
    /// The message text.
    pub text: Option<String>,
    /// The dequeue count.
    pub dequeue_count: Option<u32>,
    /// The insertion time, in seconds of the Unix epoch.
    pub inserted_s: u64,
    /// The expiration time, in seconds of the Unix epoch; `None` if the message never expires.
    pub expires_s: Option<u64>,
    /// The time of next visibility, in seconds of the Unix epoch.
    pub visible_s: Option<u64>,
}
