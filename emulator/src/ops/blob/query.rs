//! Query Blob Contents: runs SQL over a block blob and streams the result.
//!
//! Sources: "Query Blob Contents", "Query acceleration SQL language reference"; recordings for
//! headers and frames.
//!
//! ```http
//! POST /devstoreaccount1/events/2026/11/21.csv?comp=query
//! <QueryRequest><QueryType>SQL</QueryType>
//! <Expression>SELECT _2 FROM BlobStorage WHERE _1 &gt; 250</Expression></QueryRequest>
//!
//! 200 OK
//! Content-Type: avro/binary
//! Transfer-Encoding: chunked
//! ```

mod answer;

use bytes::Bytes;
use http_body_util::BodyExt;
use smalt_protocol::limits::XML_BODY_BYTES_MAX;
use smalt_protocol::{ApiVersion, ErrorCode, StorageError, Timestamp};

use super::content::{self, Located};
use super::guard::{self, Guard};
use super::properties::PATH_TYPES;
use crate::call::Call;
use crate::lane::Room;
use crate::operation::{Read, Takes, Weight};
use crate::ops::dfs;
use crate::ops::lookup::{BlobAddress, BlobPart};
use crate::query::{QueryRequest, Runner};
use crate::records::{BlobKind, BlobRecord};
use crate::reply::{Content, Reply};
use crate::rules::encryption::{Encryption, Requested};
use crate::store::{Store, View};
use answer::{Answer, Query};

/// `x-ms-server-encrypted`: recordings of 2020-02-10 and earlier lack it.
const ENCRYPTED: ApiVersion = ApiVersion::V2020_08_04;

/// The Query Blob Contents operation.
pub struct QueryBlob {
    address: BlobAddress,
    guard: Guard,
    encryption: Requested,
    request: Option<QueryRequest>,
    room: Option<Room>,
}

/// A blob, the location of its bytes, and the time of the look-up.
pub struct Found {
    blob: BlobRecord,
    located: Located,
    now: Timestamp,
}

impl Read for QueryBlob {
    type Output = Found;

    const WEIGHT: Weight = Weight::Large;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(QueryBlob {
            address: BlobAddress::of(call)?,
            guard: Guard::of_read(call)?,
            encryption: Requested::of(&call.headers)?,
            request: None,
            room: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(XML_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.request = Some(QueryRequest::parse(&document)?);
        Ok(())
    }

    fn enter(&mut self, room: Room) {
        self.room = Some(room);
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Found, StorageError> {
        let blob = self.address.find(view, now)?.blob;
        self.guard.check_read(&blob, self.address.is_base())?;
        self.encryption.check_read(blob.encryption.as_ref())?;
        if blob.kind != BlobKind::Block {
            return Err(ErrorCode::InvalidBlobType.into());
        }
        guard::check_online(&blob)?;
        let located = content::locate(view, blob.content, 0..blob.length)?;
        Ok(Found { blob, located, now })
    }

    fn render(self, found: Found, call: &Call, store: &Store) -> Result<Reply, StorageError> {
        let Found { blob, located, now } = found;
        let request = self.request.ok_or(ErrorCode::InvalidXmlDocument)?;
        let runner = Runner::new(request, blob.length, call.version, call.fresh_id, now)?;
        let mut query = Query::new(runner, located.into_chunks(store), self.room);
        // Read the header before responding: a query of unknown column names is rejected.
        query.read_header()?;
        let reply = describe(&blob, self.address.part, call.version);
        let body = Answer::new(query, call.lane.clone()).boxed_unsync();
        Ok(reply.content(Content::Chunked(body)))
    }
}

/// Returns the headers of the response: fewer than Get Blob's, because its content is not the
/// blob's.
fn describe(blob: &BlobRecord, part: BlobPart, version: ApiVersion) -> Reply {
    let mut reply = Reply::new(200)
        .version(blob.etag, blob.last_modified)
        .header("content-type", "avro/binary")
        .header("accept-ranges", "bytes")
        .header("x-ms-blob-type", blob.kind.as_str())
        .header("x-ms-creation-time", blob.created.rfc1123());
    // Recorded: a file of a hierarchical account has its type in the place of a lease.
    if blob.posix.is_some() && version >= PATH_TYPES {
        reply = reply.header("x-ms-resource-type", dfs::resource_type(blob.directory));
    } else if part == BlobPart::Base {
        reply = reply
            .header("x-ms-lease-status", blob.lease.status_str())
            .header("x-ms-lease-state", blob.lease.state_str())
            .maybe("x-ms-lease-duration", blob.lease.duration_str());
    }
    // Recorded: a snapshot has neither lease nor version headers.
    if let (Some(id), false) = (blob.version_id, matches!(part, BlobPart::Snapshot(_))) {
        let is_current = (!blob.is_previous).then_some("true");
        reply = reply
            .header("x-ms-version-id", id.iso_ticks())
            .maybe("x-ms-is-current-version", is_current);
    }
    if version >= ENCRYPTED {
        reply = reply.header("x-ms-server-encrypted", "true");
    }
    if let Some((name, value)) = blob.encryption.as_ref().map(Encryption::header) {
        reply = reply.header(name, value);
    }
    reply.metadata(&blob.metadata)
}
