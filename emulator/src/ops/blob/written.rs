//! The hash in the response to a write.
//!
//! Source: recordings. Before 2019-02-02 it is the MD5 of the bytes; since then their CRC64, unless
//! the request gave an MD5, which is then returned.

use smalt_protocol::ApiVersion;

use super::headers;
use crate::records::BlobRecord;
use crate::reply::Reply;

/// Since this version, the response has the CRC64. "Version 2019-02-02".
pub const ANSWERS_CRC64: ApiVersion = ApiVersion::V2019_02_02;

/// The hashes of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashes {
    /// MD5 of the bytes; `None` when nobody needs it.
    pub md5: Option<[u8; 16]>,
    /// CRC64 of the bytes.
    pub crc64: [u8; 8],
    /// Whether the request gave an MD5.
    pub by_md5: bool,
}

/// A written blob, and the hashes of the bytes in the request.
pub struct Written {
    /// The blob after the write.
    pub blob: BlobRecord,
    /// The hashes of the bytes in the request.
    pub hashes: Hashes,
}

impl Hashes {
    /// Adds the hash that this version returns.
    pub fn answer(&self, reply: Reply, version: ApiVersion) -> Reply {
        match self.md5 {
            Some(md5) if Self::is_md5(version, self.by_md5) => {
                reply.header("content-md5", headers::encode(&md5))
            }
            _ => reply.header("x-ms-content-crc64", headers::encode(&self.crc64)),
        }
    }

    /// Whether this version returns the MD5.
    pub fn is_md5(version: ApiVersion, by_md5: bool) -> bool {
        version < ANSWERS_CRC64 || by_md5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_hash_depends_on_version_and_request() {
        for (version, by_md5, expected) in [
            (ApiVersion::V2018_11_09, false, "content-md5"),
            (ApiVersion::V2019_02_02, false, "x-ms-content-crc64"),
            (ApiVersion::V2019_02_02, true, "content-md5"),
        ] {
            let hashes = Hashes {
                md5: Some([1; 16]),
                crc64: [2; 8],
                by_md5,
            };
            let reply = hashes.answer(Reply::new(201), version);
            let names: Vec<_> = reply.headers.keys().map(http::HeaderName::as_str).collect();
            assert_eq!(names, [expected], "{version} {by_md5}");
        }
    }
}
