//! Blob Batch: up to 256 requests to delete blobs, or to move them between tiers, in one.
//!
//! Source: "Blob Batch". Each request is authorised, run and answered separately, as if it had been
//! sent alone. An error of the batch as a whole is answered, as recorded, with 202 and a single
//! part without `Content-ID`.
//!
//! ```http
//! POST /devstoreaccount1/?comp=batch
//! Content-Type: multipart/mixed; boundary=batch_1
//!
//! --batch_1
//! Content-Type: application/http
//! Content-Transfer-Encoding: binary
//! Content-ID: 0
//!
//! DELETE /devstoreaccount1/events/today HTTP/1.1
//! x-ms-date: Sat, 21 Nov 2026 11:00:00 GMT
//! Authorization: SharedKey devstoreaccount1:...
//!
//! --batch_1--
//!
//! 202 Accepted
//! Content-Type: multipart/mixed; boundary=batchresponse_4b1d5a3e-7f0c-4d5c-9a53-0b6f4b8b0a11
//! ```

mod answer;
mod multipart;

use http_body_util::BodyExt as _;
use smalt_protocol::limits::{BATCH_BODY_BYTES_MAX, BATCH_OPERATIONS_MAX};
use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::pipeline::part::{Answer, Part};
use crate::reply::{self, Common, Content, Reply, refuse};
use crate::stage;

use answer::{Multipart, Subresponse};

const OPERATIONS: [&str; 2] = ["Blob_Delete", "Blob_SetTier"];

/// Runs a batch.
///
/// # Errors
/// 400 without a boundary, 413 for the body; other errors of the batch as a whole are returned as a
/// response.
pub async fn run(core: &Core, call: &Call, body: &mut Body) -> Result<Reply, StorageError> {
    let content_type = call.required_header("content-type")?;
    let boundary = multipart::boundary(content_type)
        .ok_or_else(|| StorageError::invalid_header("Content-Type", content_type))?;
    let document = stage::document(call, body, BATCH_BODY_BYTES_MAX).await?;
    let mut answer = Multipart::new(format!("batchresponse_{}", call.fresh_id));
    match parts(core, call, &document, boundary) {
        Ok(parts) => {
            // One after the other, so that a batch is deterministic.
            for (content_id, part) in parts {
                let served = part.serve(core).await;
                push(&mut answer, content_id.as_deref(), served).await?;
            }
        }
        Err(error) => push(&mut answer, None, refused(core, call, &error)).await?,
    }
    let mut reply = Reply::new(202).header("content-type", answer.content_type());
    reply.content = Content::Bytes(answer.finish().into());
    Ok(reply)
}

/// A request with the `Content-ID` of its part.
type Identified = (Option<String>, Part);

/// Parses the requests of a batch.
///
/// # Errors
/// 400 `InvalidInput` for a batch that is malformed or empty, or has requests that a batch may not
/// contain or for a container other than its own; 400 `ExceedsMaxBatchRequestCount`; 400
/// `AllBatchSubRequestsShouldBeSameApi`.
fn parts(
    core: &Core,
    call: &Call,
    document: &[u8],
    boundary: &str,
) -> Result<Vec<Identified>, StorageError> {
    let text = std::str::from_utf8(document).map_err(|_| ErrorCode::InvalidInput)?;
    let requests = multipart::read(text, boundary, BATCH_OPERATIONS_MAX)
        .filter(|requests| !requests.is_empty())
        .ok_or(ErrorCode::InvalidInput)?;
    if requests.len() > BATCH_OPERATIONS_MAX {
        return Err(ErrorCode::ExceedsMaxBatchRequestCount.into());
    }
    let parts: Vec<Identified> = requests
        .into_iter()
        .map(|one| (one.content_id, Part::arrive(core, call, one.request)))
        .collect();
    let mut only = None;
    for (_, part) in parts.iter().filter(|(_, part)| part.has_arrived()) {
        let id = part
            .routed()
            .filter(|(_, inner)| is_within(inner, call))
            .map(|(entry, _)| entry.id)
            .filter(|id| OPERATIONS.contains(id))
            .ok_or(ErrorCode::InvalidInput)?;
        if *only.get_or_insert(id) != id {
            return Err(ErrorCode::AllBatchSubRequestsShouldBeSameApi.into());
        }
    }
    Ok(parts)
}

/// Whether a request is for the account of the batch and, if the batch has one, its container.
fn is_within(inner: &Call, outer: &Call) -> bool {
    let is_same_container = outer.container().is_empty() || inner.container() == outer.container();
    inner.account() == outer.account() && is_same_container
}

/// Returns the response to a batch that is rejected as a whole.
fn refused(core: &Core, call: &Call, error: &StorageError) -> Answer {
    let common = Common::of_refusal(call, error, core.store.now());
    let reply = refuse(error, &call.method, &common);
    Answer {
        response: reply::finish(reply, &call.method, &common),
        message: Some(error.message().to_owned()),
    }
}

async fn push(
    answer: &mut Multipart,
    content_id: Option<&str>,
    served: Answer,
) -> Result<(), StorageError> {
    let (head, body) = served.response.into_parts();
    let document = body.collect().await.map_err(StorageError::internal)?;
    let reason = head.status.canonical_reason().unwrap_or_default();
    answer.push(&Subresponse {
        content_id,
        status: head.status,
        reason: served.message.as_deref().unwrap_or(reason),
        headers: &head.headers,
        document: &document.to_bytes(),
    });
    Ok(())
}
