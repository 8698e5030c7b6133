//! The stages of a request: arrive, route, authorise, parse, stage, check and apply, render.
//!
//! ```text
//! bytes -> http (or in process) -> arrive -> route -> authorise -> parse -> stage body
//!       -> [ check -> apply ] one commit -> render -> bytes
//! ```

pub mod part;
mod run;

use http::request::Parts;
use http::{Request, Response};
use smalt_protocol::{ErrorCode, StorageError, Timestamp};
use uuid::Uuid;

use crate::analytics::log;
use crate::arrival::{self, Socket};
use crate::auth;
use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::cors;
use crate::faults::{ConnectionLost, Faulted, Plan};
use crate::ops::dfs::rename;
use crate::ops::{batch, table::transaction};
use crate::register::{self, Entry, Run};
use crate::reply::{self, Common, Form, Reply, refuse};
use crate::rules::acl::Need;

pub use run::{read, write};

/// Serves one request.
pub async fn serve(
    core: &Core,
    request: Request<Body>,
    socket: Socket,
) -> Result<Response<Body>, ConnectionLost> {
    let (mut head, mut body) = request.into_parts();
    let method = head.method.clone();
    let request_id = core.ids.next();
    let noted = core.observer.note(&head, &mut body).await;
    let arrived = arrival::check_framing(core, &head, &socket)
        .and_then(|()| arrival::arrive(core, &mut head, &body, &socket, request_id));
    let mut call = match arrived {
        Ok(call) => call,
        Err(error) => {
            let common = common_of(&head, &socket, request_id, core.store.now());
            let reply = refuse(&error, &method, &common);
            return Ok(reply::finish(reply, &method, &common));
        }
    };
    let entry =
        register::find(&call).and_then(|entry| cors::admit(core, &call, entry).map(|()| entry));
    let plan = entry
        .as_ref()
        .ok()
        .and_then(|entry| core.faults.plan(entry.id, &call));
    let faulted = match &plan {
        Some(plan) => plan.before().await,
        None => Faulted::No,
    };
    let outcome = match (faulted, &entry) {
        (Faulted::Lost, _) => return Err(ConnectionLost),
        (Faulted::Refused(error), _) => Err(error),
        (Faulted::No, Ok(entry)) => authorise_and_run(core, &mut call, entry, &mut body).await,
        (Faulted::No, Err(error)) => Err(error.clone()),
    };
    let now = core.store.now();
    let common = match &outcome {
        Ok(_) => Common::of(&call, now),
        Err(error) => Common::of_refusal(&call, error, now),
    };
    let reply = outcome.unwrap_or_else(|error| refuse(&error, &method, &common));
    let entry = entry.ok();
    if let Some(entry) = entry {
        core.metrics
            .count(entry.service, entry.id, reply.status.as_u16());
    }
    let mut response = reply::finish(reply, &method, &common);
    obey_properties(core, &call, entry, &mut response);
    if let Some(noted) = noted {
        let delivered = plan.as_ref().is_none_or(Plan::delivers);
        let operation = entry.map(|entry| entry.id);
        response = noted.answered((now, operation), delivered, response).await;
    }
    match plan {
        Some(plan) => plan.after(response),
        None => Ok(response),
    }
}

/// Returns the common headers of the response to a request that cannot be parsed.
fn common_of<'a>(head: &Parts, socket: &Socket, id: Uuid, now: Timestamp) -> Common<'a> {
    let mut common = Common::bare(arrival::service(head, socket), id, now);
    if arrival::is_data_lake(head, socket) {
        common.form = Form::DataLake;
    }
    common
}

/// Does with a response what the properties of its service say: CORS and logging.
fn obey_properties(core: &Core, call: &Call, entry: Option<&Entry>, response: &mut Response<Body>) {
    let (store, service) = (&core.store, call.service());
    match core.properties.load(store, call.account(), service) {
        Ok(Some(properties)) => {
            cors::share(&properties.cors, call, response);
            if let Some(entry) = entry {
                log::log(core, call, entry, response, &properties.logging);
            }
        }
        Ok(None) => {}
        Err(error) => {
            let request_id = call.request_id;
            tracing::error!(%request_id, %error, "cannot read the properties of the service");
        }
    }
}

/// Runs the operation of a routed call if its caller is authorised.
async fn authorise_and_run(
    core: &Core,
    call: &mut Call,
    entry: &'static Entry,
    body: &mut Body,
) -> Result<Reply, StorageError> {
    call.identity = auth::authorise(core, call, &entry.access)?;
    call.operation = entry.id;
    call.raises = entry.raises;
    call.need = auth::of_lists(call, entry)?;
    if call.need == Need::Rename {
        rename::check_source(core, call)?;
    }
    entry.check_endpoint(call)?;
    check_timeout(call)?;
    auth::bring_scope(call)?;
    match entry.run {
        Run::Built(_, run) => run(core, call, body).await,
        Run::Batch => Box::pin(batch::run(core, call, body)).await,
        Run::Transaction => Box::pin(transaction::run(core, call, body)).await,
        Run::NotBuilt => Err(StorageError::new(ErrorCode::NotImplemented)
            .with_message(format!("smalt does not implement {} yet.", entry.title))
            .with_element("Operation", entry.id)),
    }
}

/// Rejects a `timeout` that is not a number of seconds. A valid value has no effect, because the
/// emulator answers sooner. "Setting timeouts for Blob service operations".
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
