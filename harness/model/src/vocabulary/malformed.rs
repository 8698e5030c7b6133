//! Malformed requests.

/// A malformed request, which fails regardless of the account's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Create Container with a name in upper case.
    ContainerName,
    /// Get Blob Properties with a lease id that is not a GUID.
    LeaseId,
    /// Get Blob with a malformed date.
    Date,
    /// Delete Blob with both `If-Match` and `If-None-Match`.
    TwoConditions,
    /// Lease Blob with a duration of five seconds.
    LeaseDuration,
    /// Lease Blob with an unknown action.
    LeaseAction,
    /// Put Block with an id that is not Base64.
    BlockId,
    /// Put Blob without `x-ms-blob-type`.
    BlobType,
    /// List Blobs with `maxresults=0`.
    PageOfNone,
    /// Get Messages for 33 messages.
    TooManyMessages,
    /// Get Messages with a visibility timeout of more than a week.
    VisibilityTimeout,
    /// Put Message with a time to live of 0.
    TimeToLive,
    /// Put Page of half a page.
    PageRange,
    /// Put Blob of a page blob whose length is not a multiple of a page.
    PageBlobLength,
}

impl Malformed {
    /// Every kind, in the order of declaration.
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

    /// Returns its name among the operations.
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
