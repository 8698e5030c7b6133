//! What the service has to answer.

use smalt_protocol::ErrorCode;

use crate::vocabulary::tables::TableExpected;
use crate::vocabulary::{LeaseId, MessageId, Metadata, Moment, Receipt, Tag};

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// Status; zero where nothing was asked of the service.
    pub status: u16,
    /// `x-ms-error-code`.
    pub code: Option<ErrorCode>,
    /// What else the answer has to show.
    pub facts: Vec<Fact>,
}

impl Expected {
    /// Nothing was asked of the service.
    pub fn nothing() -> Self {
        Expected::ok(0)
    }

    /// A success with nothing to show yet.
    pub fn ok(status: u16) -> Self {
        Expected {
            status,
            code: None,
            facts: Vec::new(),
        }
    }

    /// A success that shows tag and time of what was changed or read.
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

    /// Leaves out what only Get Blob and Get Blob Properties show of a lease.
    #[must_use]
    pub fn without_lease(mut self) -> Self {
        let of_lease = |fact: &Fact| matches!(fact, Fact::Header(n, _) if n.contains("lease"));
        self.facts.retain(|fact| !of_lease(fact));
        self
    }

    /// Whether the operation was done.
    pub fn is_done(&self) -> bool {
        self.code.is_none()
    }
}

/// Why an operation is refused: the code and, where it is not the code's own, the status.
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

/// What an operation answers, or why it is refused.
pub type Answer = Result<Expected, Refusal>;

/// The answer, whichever it is.
pub fn settle(answer: Answer) -> Expected {
    answer.unwrap_or_else(Expected::from)
}

/// Something that an answer has to show.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// `ETag`.
    Tag(Tag),
    /// `Last-Modified`, in seconds of the Unix epoch.
    LastModified(u64),
    /// A header of this value, or none of this name.
    Header(&'static str, Option<String>),
    /// `x-ms-lease-id`.
    LeaseId(LeaseId),
    /// `x-ms-snapshot`.
    Snapshot(Moment),
    /// User metadata, all of it.
    Metadata(Metadata),
    /// The body.
    Body(Vec<u8>),
    /// What a listing shows, in order.
    Listed(Vec<Listed>),
    /// Committed and uncommitted blocks: id, length in bytes.
    Blocks(Vec<(Vec<u8>, u64)>, Vec<(Vec<u8>, u64)>),
    /// Page ranges: first and last byte of each.
    Ranges(Vec<(u64, u64)>),
    /// Containers or queues in order; with metadata where it was asked for.
    Resources(Vec<(String, Option<Metadata>)>),
    /// Index tags.
    Tags(Metadata),
    /// Messages, in order.
    Messages(Vec<Shown>),
    /// `x-ms-popreceipt` of a message.
    Receipt(Receipt),
    /// All that an answer of the Table service shows.
    Table(TableExpected),
}

/// An entry of a listing.
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    /// A blob or snapshot.
    Blob {
        /// Name.
        name: String,
        /// Time of the snapshot, if it is one.
        snapshot: Option<Moment>,
        /// Tag; none where only uncommitted blocks stand there.
        tag: Option<Tag>,
        /// Length in bytes.
        length: u64,
        /// `Deleted`: it can be undeleted.
        deleted: bool,
        /// Metadata, index tags and type; none where only uncommitted blocks stand there.
        detail: Option<(Metadata, Metadata, &'static str)>,
    },
    /// All blobs that start like this.
    Prefix(String),
}

/// A message as an answer shows it. What an answer of its kind does not show is absent.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Id.
    pub id: MessageId,
    /// Receipt.
    pub receipt: Option<Receipt>,
    /// Text.
    pub text: Option<String>,
    /// How often it was given out.
    pub dequeue_count: Option<u32>,
    /// When it was put, in seconds of the Unix epoch.
    pub inserted_s: u64,
    /// When it expires; absent: never.
    pub expires_s: Option<u64>,
    /// When it can be seen again.
    pub visible_s: Option<u64>,
}
