//! Requests that break a rule of syntax.

/// A request that breaks a rule of syntax: refused whatever is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Create Container with a name in capitals.
    ContainerName,
    /// Get Blob Properties with a lease id that is no GUID.
    LeaseId,
    /// Get Blob with a date that is none.
    Date,
    /// Delete Blob with `If-Match` and `If-None-Match` at once.
    TwoConditions,
    /// Lease Blob for five seconds.
    LeaseDuration,
    /// Lease Blob with an action that is none.
    LeaseAction,
    /// Put Block with an id that is no Base64.
    BlockId,
    /// Put Blob without `x-ms-blob-type`.
    BlobType,
    /// List Blobs with pages of no blob.
    PageOfNone,
    /// Get Messages, 33 of them.
    TooManyMessages,
    /// Get Messages for longer than a week.
    VisibilityTimeout,
    /// Put Message that lives for no time.
    TimeToLive,
    /// Put Page of half a page.
    PageRange,
    /// Put Blob, of a page blob that ends within a page.
    PageBlobLength,
}

impl Malformed {
    /// All of them.
    pub const ALL: [Malformed; 14] = [
        Malformed::ContainerName,
        Malformed::LeaseId,
        Malformed::Date,
        Malformed::TwoConditions,
        Malformed::LeaseDuration,
        Malformed::LeaseAction,
        Malformed::BlockId,
        Malformed::BlobType,
        Malformed::PageOfNone,
        Malformed::TooManyMessages,
        Malformed::VisibilityTimeout,
        Malformed::TimeToLive,
        Malformed::PageRange,
        Malformed::PageBlobLength,
    ];

    /// What it is called among operations.
    pub fn operation(self) -> &'static str {
        match self {
            Malformed::ContainerName => "malformed container name",
            Malformed::LeaseId => "malformed lease id",
            Malformed::Date => "malformed date",
            Malformed::TwoConditions => "malformed two conditions",
            Malformed::LeaseDuration => "malformed lease duration",
            Malformed::LeaseAction => "malformed lease action",
            Malformed::BlockId => "malformed block id",
            Malformed::BlobType => "malformed blob type",
            Malformed::PageOfNone => "malformed page of none",
            Malformed::TooManyMessages => "malformed too many messages",
            Malformed::VisibilityTimeout => "malformed visibility timeout",
            Malformed::TimeToLive => "malformed time to live",
            Malformed::PageRange => "malformed page range",
            Malformed::PageBlobLength => "malformed page blob length",
        }
    }
}
