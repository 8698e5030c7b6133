//! Entity group transaction: up to 100 changes of entities of one partition, which succeed or fail
//! together; or one query.
//!
//! Source: "Performing entity group transactions"; recordings for the response. The inner requests
//! have no credentials: the sender of the transaction is authorised for each. An error names its
//! request by its index, if there are several.
//!
//! ```http
//! POST /devstoreaccount1/$batch
//! Content-Type: multipart/mixed; boundary=batch_1
//!
//! --batch_1
//! Content-Type: multipart/mixed; boundary=changeset_1
//!
//! --changeset_1
//! Content-Type: application/http
//! Content-Transfer-Encoding: binary
//!
//! DELETE /devstoreaccount1/Customers(PartitionKey='Berlin',RowKey='17') HTTP/1.1
//! If-Match: *
//!
//! --changeset_1--
//! --batch_1--
//!
//! 202 Accepted
//! Content-Type: multipart/mixed; boundary=batchresponse_4b1d5a3e-7f0c-4d5c-9a53-0b6f4b8b0a11
//! ```

mod answer;
mod request;

use std::collections::BTreeSet;

use smalt_protocol::limits::BATCH_BODY_BYTES_MAX;
use smalt_protocol::table::batch::{self, Batch, Request};
use smalt_protocol::{ErrorCode, StorageError};

use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::operation::Write as _;
use crate::ops::table::change::{Change, WrittenEntity};
use crate::ops::table::write::WriteEntity;
use crate::reply::Reply;
use crate::stage;

use answer::Answer;
use request::Part;

/// The error of a request, with its index.
type Refusal = (usize, StorageError);

/// Runs a transaction.
///
/// # Errors
/// 400 for a malformed transaction; the error of an inner request is returned as a response.
pub async fn run(core: &Core, call: &Call, body: &mut Body) -> Result<Reply, StorageError> {
    let content_type = call.required_header("content-type")?.to_owned();
    let document = stage::document(call, body, BATCH_BODY_BYTES_MAX).await?;
    match batch::read(&content_type, &document)? {
        Batch::Query(request) => query(core, call, request).await,
        Batch::Changes(requests) => changes(core, call, requests).await,
        Batch::Overfull(requests) => refuse_overfull(core, call, requests),
    }
}

async fn query(core: &Core, call: &Call, request: Request) -> Result<Reply, StorageError> {
    let mut answer = Answer::of_query(call);
    let part = Part::of(core, call, request)?;
    let served = part.run(core).await;
    answer.push(served)?;
    Ok(answer.finish())
}

async fn changes(core: &Core, call: &Call, requests: Vec<Request>) -> Result<Reply, StorageError> {
    let count = requests.len();
    let mut parts = Vec::with_capacity(count);
    for request in requests {
        parts.push(Part::of(core, call, request)?);
    }
    let outcome = match parse(&parts) {
        Ok(changes) => commit(core, changes).await?,
        Err(refusal) => Err(refusal),
    };
    let mut answer = Answer::of_changes(call);
    match outcome {
        Ok(written) => {
            for (part, written) in parts.iter().zip(&written) {
                answer.push(part.answer(written, core.store.now()))?;
            }
        }
        Err((place, error)) => {
            let error = batch::indexed(error, place, count);
            if let Some(part) = parts.get(place) {
                answer.push(part.refusal(&error, core.store.now()))?;
            }
        }
    }
    Ok(answer.finish())
}

/// Rejects a change set that is too large, with the index of the last change allowed.
fn refuse_overfull(
    core: &Core,
    call: &Call,
    mut requests: Vec<Request>,
) -> Result<Reply, StorageError> {
    let (place, error) = batch::overfull();
    let mut answer = Answer::of_changes(call);
    if let Some(last) = requests.pop() {
        let error = batch::indexed(error, place, place + 1);
        let part = Part::of(core, call, last)?;
        answer.push(part.refusal(&error, core.store.now()))?;
    }
    Ok(answer.finish())
}

/// Parses the changes and makes all checks that do not need the state.
fn parse(parts: &[Part]) -> Result<Vec<Change>, Refusal> {
    let mut changes: Vec<Change> = Vec::with_capacity(parts.len());
    let mut rows = BTreeSet::new();
    for (place, part) in parts.iter().enumerate() {
        let refused = |error| (place, error);
        let change = part.change().map_err(refused)?;
        if let Some(first) = changes.first() {
            if first.table != change.table {
                return Err(refused(ErrorCode::InvalidInput.into()));
            }
            if first.partition_key != change.partition_key {
                let code = ErrorCode::CommandsInBatchActOnDifferentPartitions;
                return Err(refused(code.into()));
            }
        }
        if !rows.insert(change.row_key.clone()) {
            return Err(refused(ErrorCode::InvalidDuplicateRow.into()));
        }
        changes.push(change);
    }
    Ok(changes)
}

/// Checks all changes and, if none fails, applies them. Each is for another entity, so none depends
/// on another.
async fn commit(
    core: &Core,
    changes: Vec<Change>,
) -> Result<Result<Vec<WrittenEntity>, Refusal>, StorageError> {
    let commit = core.store.commit(move |tx, stamp| {
        let mut checked = Vec::with_capacity(changes.len());
        for (place, change) in changes.iter().enumerate() {
            match change.check(tx, stamp) {
                Ok(found) => checked.push(found),
                Err(error) => return Ok(Err((place, error))),
            }
        }
        let applied = changes.into_iter().zip(checked);
        let written = applied.map(|(change, found)| change.apply(found, tx));
        written.collect::<Result<Vec<_>, _>>().map(Ok)
    });
    commit.await
}

impl Part {
    fn change(&self) -> Result<Change, StorageError> {
        let (call, entry) = self.routed()?;
        if !request::CHANGES.contains(&entry.id) {
            return Err(ErrorCode::InvalidInput.into());
        }
        entry.check_endpoint(call)?;
        crate::auth::permit(call, &entry.access)?;
        WriteEntity::parse(call)?.change(self.body())
    }
}
