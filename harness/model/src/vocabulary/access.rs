//! Stored access policies, and reads that a service SAS authorizes.

/// An operation on the access to a container, queue or table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AccessOperation {
    /// Set Container ACL, Set Queue ACL or Set Table ACL: one stored policy, or none.
    Set(Option<Terms>),
    /// List Blobs, Peek Messages or Query Entities with a service SAS.
    Read {
        /// Whether the SAS names the stored policy.
        by_policy: bool,
        /// The fields of the SAS itself.
        own: Terms,
    },
}

/// The fields that a SAS and its stored policy share. Each may be in one of them only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The first valid moment, in seconds of the Unix epoch.
    pub start_s: Option<u64>,
    /// The first moment that is too late, in seconds of the Unix epoch.
    pub expiry_s: Option<u64>,
    /// The permission.
    pub right: Option<Right>,
}

/// A permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Right {
    /// The one that the read needs.
    Read,
    /// Another one.
    Other,
}
