//! Runs a call: parse, stage the body, check and apply in one commit, render the reply.

use bytes::Bytes;
use http::Method;
use smalt_protocol::StorageError;

use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::events::outbox::{self, Cause, Raised};
use crate::operation::{Read, Takes, Weight, Write};
use crate::ops::blob::source;
use crate::ops::dfs::gate::{self, Gate};
use crate::register::{Effect, Run};
use crate::reply::Reply;
use crate::stage;
use crate::store::{Purpose, Stamp};

/// Returns the runner of an operation that only reads.
pub const fn read<O: Read>() -> Run {
    Run::Built(Effect::Reads, |core, call, body| {
        Box::pin(run_read::<O>(core, call, body))
    })
}

/// Returns the runner of an operation that changes state.
pub const fn write<O: Write>() -> Run {
    Run::Built(Effect::Writes, |core, call, body| {
        Box::pin(run_write::<O>(core, call, body))
    })
}

/// A document up to this length is parsed at once, which takes about a millisecond; smalt's own
/// choice.
const SHORT_DOCUMENT_BYTES_MAX: usize = 64 * 1024;

async fn run_read<O: Read>(
    core: &Core,
    call: &Call,
    body: &mut Body,
) -> Result<Reply, StorageError> {
    let mut operation = O::parse(call)?;
    let gate = Gate::of(call)?;
    if let Takes::Document(most) = operation.takes() {
        let document = stage::document(call, body, most).await?;
        // After the document has arrived, so that a slow client does not keep a room from others.
        if O::WEIGHT == Weight::Large && call.lane.is_apart() {
            operation.enter(core.rooms.enter().await?);
        }
        read_document(call, document, |document| operation.document(document)).await?;
    }
    if O::WEIGHT != Weight::Light {
        let work = || {
            let now = core.store.now();
            let output = core.store.read(|view| {
                gate::check(gate.as_ref(), view, now)?;
                operation.read(view, now)
            })?;
            operation.render(output, call, &core.store)
        };
        return call.lane.run(work).await;
    }
    let now = core.store.now();
    let output = core.store.read(|view| {
        gate::check(gate.as_ref(), view, now)?;
        operation.read(view, now)
    })?;
    if let Some(note) = operation.note(&output, now)
        && let Err(error) = core.store.commit(note).await
    {
        tracing::warn!(request_id = %call.request_id, %error, "cannot record a last access time");
    }
    operation.render(output, call, &core.store)
}

/// Parses a document; a long one waits for its turn in the lane.
async fn read_document(
    call: &Call,
    document: Bytes,
    read: impl FnOnce(Bytes) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    if document.len() > SHORT_DOCUMENT_BYTES_MAX {
        call.lane.run(|| read(document)).await
    } else {
        read(document)
    }
}

async fn run_write<O: Write>(
    core: &Core,
    call: &Call,
    body: &mut Body,
) -> Result<Reply, StorageError> {
    let mut operation = O::parse(call)?;
    let gate = Gate::of(call)?;
    if let Some(asked) = operation.source() {
        check_early(core, &operation, gate.as_ref())?;
        let source = source::open(core, call, asked).await?;
        operation.sourced(source)?;
    }
    match operation.takes() {
        Takes::Nothing => {}
        Takes::Document(most) => {
            let document = stage::document(call, body, most).await?;
            read_document(call, document, |document| operation.document(document)).await?;
            if let Some(spilled) = operation.spill() {
                let length = spilled.len() as u64;
                let mut spilled = crate::body::full(spilled);
                operation
                    .payload(stage::payload(&core.store, &mut spilled, length, false).await?)?;
            }
        }
        Takes::Payload { most, md5 } => {
            let length = stage::payload_length(call, most)?;
            check_early(core, &operation, gate.as_ref())?;
            operation.payload(stage::payload(&core.store, body, length, md5).await?)?;
        }
    }
    let epoch = core.events.epoch(&core.store);
    let may_be_subscribed = core.events.may_be_subscribed(epoch);
    let cause = may_be_subscribed.then(|| Cause::of(call)).flatten();
    let commit = core
        .store
        .commit_for(purpose(&call.method), move |tx, stamp| {
            gate::check(gate.as_ref(), tx, stamp.now)?;
            let checked = operation.check(tx, stamp)?;
            outbox::watch(cause.as_ref(), tx, stamp, |tx| {
                operation.apply(checked, tx, stamp)
            })
        });
    let (output, raised) = commit.await?;
    match raised {
        Raised::Unsubscribed => core.events.note_none(epoch),
        Raised::No => {}
        Raised::Yes => core.events.wake(),
    }
    O::render(output, call)
}

/// Deletes free room, and so does getting messages, which are usually deleted next.
fn purpose(method: &Method) -> Purpose {
    match *method {
        Method::DELETE | Method::GET => Purpose::Frees,
        _ => Purpose::Grows,
    }
}

/// Rejects a request that cannot succeed before its body is read.
fn check_early<O: Write>(
    core: &Core,
    operation: &O,
    gate: Option<&Gate>,
) -> Result<(), StorageError> {
    let now = core.store.now();
    core.store.read(|view| {
        gate::check(gate, view, now)?;
        operation.check(view, &Stamp { now, tick: now }).map(drop)
    })
}
