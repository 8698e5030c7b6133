//! One request's life: arrive, route, authorise, parse, stage, check and apply, render.
//!
//! ```text
//! bytes -> http (or in process) -> arrive -> route -> authorise -> parse -> stage body
//!       -> [ check -> apply ] one commit -> render -> bytes
//! ```

pub mod part;

use std::pin::Pin;

use bytes::Bytes;
use http::{Method, Request, Response};
use smalt_protocol::{ErrorCode, StorageError};

use crate::arrival::{self, Socket};
use crate::auth;
use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::cors;
use crate::faults::{Faulted, Plan};
use crate::operation::{Read, Takes, Weight, Write};
use crate::ops::blob::source;
use crate::register::{self, Entry};
use crate::reply::{self, Common, Reply};
use crate::stage;
use crate::store::{Purpose, Stamp};

/// A request in flight.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Reply, StorageError>> + Send + 'a>>;

/// Runs an operation.
pub type Runner = for<'a> fn(&'a Core, &'a Call, &'a mut Body) -> Running<'a>;

/// How an operation of the register runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// Named, and answered with 501.
    NotBuilt,
    /// Built.
    Built(Effect, Runner),
}

/// What an operation does to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    Reads,
    /// It changes something.
    Writes,
    /// What the requests inside of it do: they are asked one by one.
    OfItsRequests,
}

/// Runs an operation that changes nothing.
pub const fn read<O: Read>() -> Run {
    Run::Built(Effect::Reads, |core, call, body| {
        Box::pin(run_read::<O>(core, call, body))
    })
}

/// Runs an operation that changes state.
pub const fn write<O: Write>() -> Run {
    Run::Built(Effect::Writes, |core, call, body| {
        Box::pin(run_write::<O>(core, call, body))
    })
}

/// A document up to this length is read at once: ours, a millisecond's work.
const SHORT_DOCUMENT_BYTES_MAX: usize = 64 * 1024;

/// No answer: a fault rule cut the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was cut by a fault rule")]
pub struct ConnectionLost;

/// Serves one request.
pub async fn serve(
    core: &Core,
    request: Request<Body>,
    socket: Socket,
) -> Result<Response<Body>, ConnectionLost> {
    let (head, mut body) = request.into_parts();
    let method = head.method.clone();
    let request_id = core.ids.next();
    let service = arrival::service(&head, &socket);
    let noted = core.observer.note(&head, &mut body).await;
    let arrived = arrival::check_framing(core, &head, &socket)
        .and_then(|()| arrival::arrive(core, head, &body, &socket, request_id));
    let mut call = match arrived {
        Ok(call) => call,
        Err(error) => {
            let common = Common::bare(service, request_id, core.store.now());
            let reply = refuse(&error, &method, &common);
            return Ok(reply::finish(reply, &method, &common));
        }
    };
    let entry =
        register::find(&call).and_then(|entry| cors::admit(core, &call, entry).map(|()| entry));
    let plan = entry
        .as_ref()
        .ok()
        .and_then(|entry| core.faults.plan(entry, &call));
    let faulted = match &plan {
        Some(plan) => plan.before().await,
        None => Faulted::No,
    };
    let outcome = match (faulted, &entry) {
        (Faulted::Lost, _) => return Err(ConnectionLost),
        (Faulted::Refused(error), _) => Err(error),
        (Faulted::No, Ok(entry)) => run(core, &mut call, entry, &mut body).await,
        (Faulted::No, Err(error)) => Err(error.clone()),
    };
    let now = core.store.now();
    let common = match &outcome {
        Ok(_) => Common::of(&call, now),
        Err(error) => Common::of_refusal(&call, error, now),
    };
    let reply = outcome.unwrap_or_else(|error| refuse(&error, &method, &common));
    if let Ok(entry) = entry {
        core.metrics.count(entry, reply.status.as_u16());
    }
    let mut response = reply::finish(reply, &method, &common);
    if let Err(error) = cors::share(core, &call, &mut response) {
        tracing::error!(%request_id, %error, "the rules of CORS cannot be read");
    }
    if let Some(noted) = noted {
        let delivered = plan.as_ref().is_none_or(Plan::delivers);
        let operation = entry.ok().map(|entry| entry.id);
        response = noted.answered((now, operation), delivered, response).await;
    }
    match plan {
        Some(plan) => plan.after(response),
        None => Ok(response),
    }
}

async fn run(
    core: &Core,
    call: &mut Call,
    entry: &'static Entry,
    body: &mut Body,
) -> Result<Reply, StorageError> {
    call.identity = auth::authorise(core, call, entry)?;
    check_endpoint(call, entry)?;
    check_timeout(call)?;
    auth::bring_scope(call)?;
    match entry.run {
        Run::Built(_, run) => run(core, call, body).await,
        Run::NotBuilt => Err(StorageError::new(ErrorCode::NotImplemented)
            .with_message(format!("smalt does not implement {} yet.", entry.title))
            .with_element("Operation", entry.id)),
    }
}

/// The secondary is there to be read. *Common REST API error codes* has the code and the text;
/// production answers a write so, as reported with microsoft/AzureStorageExplorer, issue 4806.
///
/// # Errors
/// 403 `InsufficientAccountPermissions` for what writes.
pub fn check_endpoint(call: &Call, entry: &Entry) -> Result<(), StorageError> {
    if !call.target.secondary || !entry.writes() {
        return Ok(());
    }
    let code = ErrorCode::InsufficientAccountPermissions;
    Err(StorageError::new(code).with_message("Write operations are not allowed."))
}

/// `timeout` is how long the service may take, in seconds. Nothing here takes long; only what is no
/// number is refused. "Setting timeouts for Blob service operations".
fn check_timeout(call: &Call) -> Result<(), StorageError> {
    const NAME: &str = "timeout";
    let Some(text) = call.query(NAME).filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    match text.parse::<i64>() {
        Ok(seconds) if seconds >= 0 => Ok(()),
        Ok(_) => Err(StorageError::query_out_of_range(
            NAME,
            text,
            0,
            i32::MAX.into(),
        )),
        Err(_) => Err(StorageError::invalid_query(NAME, text, "")),
    }
}

/// Logs and renders a refusal. What a client got wrong is no trouble of the service's.
pub fn refuse(error: &StorageError, method: &Method, common: &Common<'_>) -> Reply {
    if let Some(cause) = error.cause() {
        let (request_id, status) = (common.request_id, error.status());
        if status < 500 {
            tracing::debug!(%request_id, status, cause, "a request is refused");
        } else {
            tracing::error!(%request_id, status, cause, "a request failed");
        }
    }
    let reply = reply::refusal(error, common);
    if method == Method::HEAD {
        reply::without_entity(reply)
    } else {
        reply
    }
}

async fn run_read<O: Read>(
    core: &Core,
    call: &Call,
    body: &mut Body,
) -> Result<Reply, StorageError> {
    let mut operation = O::parse(call)?;
    if let Takes::Document { most } = operation.takes() {
        let document = stage::document(call, body, most).await?;
        // Not before: a client that sends slowly keeps nobody else out.
        if O::WEIGHT == Weight::Large && call.lane.is_apart() {
            operation.enter(core.rooms.enter().await?);
        }
        read_document(call, document, |document| operation.document(document)).await?;
    }
    if O::WEIGHT != Weight::Light {
        let work = || {
            let now = core.store.now();
            let output = core.store.read(|view| operation.read(view, now))?;
            operation.render(output, call, &core.store)
        };
        return call.lane.run(work).await;
    }
    let now = core.store.now();
    let output = core.store.read(|view| operation.read(view, now))?;
    if let Some(note) = operation.note(&output, now)
        && let Err(error) = core.store.commit(note).await
    {
        tracing::warn!(request_id = %call.request_id, %error, "a read is not noted");
    }
    operation.render(output, call, &core.store)
}

/// Reads a document: a long one takes its turn.
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
    if let Some(asked) = operation.source() {
        check_early(core, &operation)?;
        let source = source::open(core, call, asked).await?;
        operation.sourced(source)?;
    }
    match operation.takes() {
        Takes::Nothing => {}
        Takes::Document { most } => {
            let document = stage::document(call, body, most).await?;
            read_document(call, document, |document| operation.document(document)).await?;
            if let Some(spilled) = operation.spill() {
                let length = spilled.len() as u64;
                let mut spilled = crate::body::full(spilled);
                operation.payload(stage::payload(&core.store, &mut spilled, length).await?)?;
            }
        }
        Takes::Payload { most } => {
            let length = stage::payload_length(call, most)?;
            check_early(core, &operation)?;
            operation.payload(stage::payload(&core.store, body, length).await?)?;
        }
    }
    let commit = core
        .store
        .commit_for(purpose(&call.method), move |tx, stamp| {
            let checked = operation.check(tx, stamp)?;
            operation.apply(checked, tx, stamp)
        });
    O::render(commit.await?, call)
}

/// Deletes free room, and messages that are taken are deleted next.
fn purpose(method: &Method) -> Purpose {
    match *method {
        Method::DELETE | Method::GET => Purpose::Frees,
        _ => Purpose::Grows,
    }
}

/// Refuses what is doomed already, before anything is streamed in.
fn check_early<O: Write>(core: &Core, operation: &O) -> Result<(), StorageError> {
    let now = core.store.now();
    core.store
        .read(|view| operation.check(view, &Stamp { now, tick: now }).map(drop))
}
