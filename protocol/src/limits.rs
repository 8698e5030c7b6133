//! Every limit of the service, with its source.
//!
//! Sources are pages of Microsoft's REST reference (learn.microsoft.com/rest/api/storageservices)
//! unless a line says otherwise. Names contain the unit (bytes, characters, seconds).

use std::ops::RangeInclusive;

use crate::version::ApiVersion;

/// One KiB, in bytes.
pub const KIB: u64 = 1024;
/// One MiB, in bytes.
pub const MIB: u64 = 1024 * KIB;
/// One GiB, in bytes.
pub const GIB: u64 = 1024 * MIB;
/// One TiB, in bytes.
pub const TIB: u64 = 1024 * GIB;

// Names.

/// Characters of a container's name. *Naming and Referencing Containers, Blobs, and Metadata*.
pub const CONTAINER_NAME_CHARS: RangeInclusive<usize> = 3..=63;
/// Characters of a queue's name. *Naming Queues and Metadata*.
pub const QUEUE_NAME_CHARS: RangeInclusive<usize> = 3..=63;
/// Characters of a table's name. *Understanding the Table Service Data Model*.
pub const TABLE_NAME_CHARS: RangeInclusive<usize> = 3..=63;
/// Characters of an account's name. *Storage account overview*.
pub const ACCOUNT_NAME_CHARS: RangeInclusive<usize> = 3..=24;
/// Characters (UTF-16 units) of a blob's name. *Naming and Referencing Containers, Blobs, and
/// Metadata*.
pub const BLOB_NAME_CHARS: RangeInclusive<usize> = 1..=1024;
/// Path segments of a blob's name. Same page.
pub const BLOB_NAME_SEGMENTS_MAX: usize = 254;
/// Segments of a new path in a hierarchical account: 63 with those of the account's host name and
/// of the container. Same page.
pub const PATH_SEGMENTS_MAX: usize = 61;

// Requests.

/// Total length of the names and values of a resource's metadata, without the header prefix.
/// *Setting and Retrieving Properties and Metadata for Blob Resources*.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;
/// Value of `x-ms-client-request-id`. *Versioning for the Azure Storage services*.
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;
/// Maximum difference between a signed date and the service's time. *Authorize with Shared Key*.
pub const CLOCK_SKEW_S_MAX: u64 = 15 * 60;
/// Longest lifetime of a user delegation key: seven days from the request. *Get User Delegation
/// Key*.
pub const USER_DELEGATION_KEY_S_MAX: u64 = 7 * 24 * 3_600;
/// Longest lifetime of a SAS of the first form (versions before 2012-02-12) that names no stored
/// policy. *Create a service SAS*.
pub const SAS_WITHOUT_POLICY_S_MAX: u64 = 3_600;
/// URL of a copy source. *Copy Blob*.
pub const COPY_SOURCE_URL_BYTES_MAX: usize = 2 * 1024;
/// Maximum nesting of an XML body: smalt's own limit, several times the need of any document.
pub const XML_DEPTH_MAX: usize = 32;
/// An XML body other than a block list (service properties, policies, tags, key information):
/// smalt's own limit, several times the need of any such document.
pub const XML_BODY_BYTES_MAX: u64 = MIB;

// Listing.

/// Entries of one page of a listing of containers, blobs or queues. *List Blobs*.
pub const LIST_RESULTS_MAX: u32 = 5000;
/// Entities of one page of a table query. *Query Timeout and Pagination*.
pub const TABLE_QUERY_RESULTS_MAX: u32 = 1000;
/// Total size of the entities of one page, including property names. *Query Timeout and
/// Pagination*.
pub const TABLE_PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

// Block, append and page blobs.

/// Committed blocks of a block blob and blocks of an append blob. *Put Block List*, *Append Block*.
pub const BLOCKS_COMMITTED_MAX: usize = 50_000;
/// Uncommitted blocks of a blob. *Put Block*.
pub const BLOCKS_UNCOMMITTED_MAX: usize = 100_000;
/// A block id, after Base64 decoding. *Put Block*.
pub const BLOCK_ID_BYTES_MAX: usize = 64;
/// Days after which the uncommitted blocks of an unused blob are dropped. *Put Block*.
pub const BLOCKS_UNCOMMITTED_DAYS: u64 = 7;
/// The XML body of Put Block List: 50,000 entries of the longest element, and some room.
pub const BLOCK_LIST_BODY_BYTES_MAX: u64 = 16 * MIB;
/// The size of a page. *Put Page*.
pub const PAGE_BYTES: u64 = 512;
/// The pages that one Put Page writes. *Put Page*.
pub const PUT_PAGE_BYTES_MAX: u64 = 4 * MIB;
/// The size of a page blob. *Put Blob*; recordings reject one byte more.
pub const PAGE_BLOB_BYTES_MAX: u64 = 8 * TIB;
/// The longest range of a read that may request an MD5 or CRC64. *Get Blob*.
pub const RANGE_MD5_BYTES_MAX: u64 = 4 * MIB;
/// The source of a synchronous copy. *Copy Blob From URL*.
pub const COPY_SYNC_BYTES_MAX: u64 = 256 * MIB;
/// Tags of a blob. *Set Blob Tags*.
pub const TAGS_MAX: usize = 10;
/// Characters of a tag's key. *Set Blob Tags*.
pub const TAG_KEY_CHARS: RangeInclusive<usize> = 1..=128;
/// Characters of a tag's value. *Set Blob Tags*.
pub const TAG_VALUE_CHARS: RangeInclusive<usize> = 0..=256;
/// Operations of one blob batch. *Blob Batch*.
pub const BATCH_OPERATIONS_MAX: usize = 256;
/// The body of one batch, of blobs or of entities. *Blob Batch*, *Performing entity group
/// transactions*.
pub const BATCH_BODY_BYTES_MAX: u64 = 4 * MIB;
/// Days of a retention policy. *Set Blob Service Properties*; the messages of recorded refusals.
pub const RETENTION_DAYS: RangeInclusive<i64> = 1..=365;
/// Rules of CORS per service. *Cross-Origin Resource Sharing*.
pub const CORS_RULES_MAX: usize = 5;

/// Returns the limit of the body of Put Blob. *Put Blob*, remarks on sizes by version.
pub fn put_blob_bytes_max(version: ApiVersion) -> u64 {
    by_version(version, 64 * MIB, 256 * MIB, 5000 * MIB)
}

/// Entries of an access list, and of a default list. *Access control lists in Azure Data Lake
/// Storage*.
pub const ACL_ENTRIES_MAX: usize = 32;
/// Paths that one setAccessControlRecursive changes at most. "Path - Update": `maxRecords`.
pub const ACL_RECORDS_MAX: u64 = 2_000;

/// Returns the limit of the body of Put Block. *Put Block*, remarks on sizes by version.
pub fn put_block_bytes_max(version: ApiVersion) -> u64 {
    by_version(version, 4 * MIB, 100 * MIB, 4000 * MIB)
}

/// Returns the limit of the body of Append Block. *Append Block*: 100 MiB since 2022-11-02.
pub fn append_block_bytes_max(version: ApiVersion) -> u64 {
    if version >= ApiVersion::V2022_11_02 {
        100 * MIB
    } else {
        4 * MIB
    }
}

fn by_version(version: ApiVersion, first: u64, since_2016: u64, since_2019: u64) -> u64 {
    if version < ApiVersion::V2016_05_31 {
        first
    } else if version < ApiVersion::V2019_12_12 {
        since_2016
    } else {
        since_2019
    }
}

// Leases.

/// Seconds of a lease of fixed duration. *Lease Blob*.
pub const LEASE_DURATION_S: RangeInclusive<i64> = 15..=60;
/// The duration value of an infinite lease. *Lease Blob*.
pub const LEASE_DURATION_INFINITE: i64 = -1;
/// Seconds of a break period. *Lease Blob*.
pub const LEASE_BREAK_PERIOD_S: RangeInclusive<i64> = 0..=60;

// Queues.

/// Text of a message, in bytes of UTF-8. *Put Message*.
pub const MESSAGE_TEXT_BYTES_MAX: usize = 64 * 1024;
/// Text of a message before 2011-08-18. *Put Message*.
pub const MESSAGE_TEXT_BYTES_MAX_BEFORE_2011: usize = 8 * 1024;
/// The XML body of Put Message and Update Message: the frame and a text with every character
/// escaped.
pub const MESSAGE_BODY_BYTES_MAX: u64 = 512 * KIB;
/// Messages of one Get Messages or Peek Messages. *Get Messages*.
pub const DEQUEUE_COUNT: RangeInclusive<i64> = 1..=32;
/// Number of messages that Get Messages returns by default. *Get Messages*.
pub const DEQUEUE_COUNT_DEFAULT: i64 = 1;
/// Visibility timeout of Get Messages. *Get Messages*.
pub const VISIBILITY_GET_S: RangeInclusive<i64> = 1..=WEEK_S;
/// Visibility timeout of Get Messages before 2011-08-18. *Get Messages*.
pub const VISIBILITY_GET_S_BEFORE_2011: RangeInclusive<i64> = 1..=2 * 60 * 60;
/// Default visibility timeout of Get Messages. *Get Messages*.
pub const VISIBILITY_GET_S_DEFAULT: i64 = 30;
/// Visibility timeout of Put Message and Update Message. *Put Message*, *Update Message*.
pub const VISIBILITY_PUT_S: RangeInclusive<i64> = 0..=WEEK_S;
/// Default time to live of a message. *Put Message*.
pub const MESSAGE_TTL_S_DEFAULT: i64 = WEEK_S;
/// Time to live of a message before 2017-07-29. *Put Message*.
pub const MESSAGE_TTL_S_BEFORE_2017: RangeInclusive<i64> = 1..=WEEK_S;
/// Time to live of a message since 2017-07-29: any positive 32-bit number; -1 is also allowed.
/// *Put Message*; the interface definition, `messagettl`.
pub const MESSAGE_TTL_S: RangeInclusive<i64> = 1..=i32::MAX as i64;
/// The time to live of a message that never expires. *Put Message*.
pub const MESSAGE_TTL_INFINITE: i64 = -1;
const WEEK_S: i64 = 7 * 24 * 60 * 60;

// Policies and keys.

/// Stored access policies of a resource. *Set Container ACL*.
pub const STORED_POLICIES_MAX: usize = 5;
/// Characters of a stored policy's id. *Set Container ACL*; the messages of recorded refusals.
pub const STORED_POLICY_ID_CHARS_MAX: usize = 64;
// Tables.

/// Properties of an entity, not counting the three system properties; the messages of recorded
/// refusals.
pub const ENTITY_PROPERTIES_MAX: usize = 252;
/// Characters of a property's name; the messages of recorded refusals.
pub const PROPERTY_NAME_CHARS_MAX: usize = 255;
/// The size of an entity. *Understanding the Table Service Data Model*.
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;
/// A string or binary property. Same page.
pub const PROPERTY_VALUE_BYTES_MAX: usize = 64 * 1024;
/// A partition key or row key, in characters. Same page: 1 KiB of UTF-16.
pub const KEY_CHARS_MAX: usize = 512;
/// Operations of an entity group transaction. *Performing entity group transactions*.
pub const ENTITY_GROUP_OPERATIONS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_limits_grow_with_the_version() {
        for (version, blob, block, append) in [
            (ApiVersion::V2015_12_11, 64, 4, 4),
            (ApiVersion::V2016_05_31, 256, 100, 4),
            (ApiVersion::V2019_10_10, 256, 100, 4),
            (ApiVersion::V2019_12_12, 5000, 4000, 4),
            (ApiVersion::V2022_11_02, 5000, 4000, 100),
            (ApiVersion::LATEST, 5000, 4000, 100),
        ] {
            assert_eq!(put_blob_bytes_max(version), blob * MIB, "{version}");
            assert_eq!(put_block_bytes_max(version), block * MIB, "{version}");
            assert_eq!(append_block_bytes_max(version), append * MIB, "{version}");
        }
    }

    #[test]
    fn a_full_block_list_fits_the_body_limit() {
        // The `<Uncommitted>` element with a 64-byte id in Base64.
        let entry = "<Uncommitted></Uncommitted>".len() + BLOCK_ID_BYTES_MAX.div_ceil(3) * 4;
        let most = (BLOCKS_COMMITTED_MAX * entry) as u64;
        assert!(most < BLOCK_LIST_BODY_BYTES_MAX);
    }
}
