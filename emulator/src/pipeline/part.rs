//! A request inside a batch, which is processed like every request, but without a connection.
//!
//! Account, host, peer and version are those of the batch; credentials and operation are its own.
//! Fault rules and CORS apply to the batch only.

use http::{Method, Request, Response, Uri};
use smalt_protocol::{ErrorCode, StorageError};
use uuid::Uuid;

use super::authorise_and_run;
use crate::arrival::{self, Socket};
use crate::body::{self, Body};
use crate::call::Call;
use crate::core::Core;
use crate::register::{self, Entry};
use crate::reply::{self, Common, refuse};

/// A parsed and routed request of a batch that has not run yet.
pub struct Part {
    method: Method,
    request_id: Uuid,
    arrived: Result<Call, StorageError>,
    entry: Option<&'static Entry>,
}

/// The response to a request of a batch.
pub struct Answer {
    /// Status, headers and body, as on the wire.
    pub response: Response<Body>,
    /// The message of a refusal, for the status line of the part; `None` on success.
    pub message: Option<String>,
}

impl Part {
    /// Parses a request of the batch `outer`. Its URI has a path and a query only.
    pub fn arrive(core: &Core, outer: &Call, request: Request<()>) -> Self {
        let request_id = core.ids.next();
        let method = request.method().clone();
        let arrived = arrive(core, outer, request, request_id);
        let entry = arrived
            .as_ref()
            .ok()
            .and_then(|call| register::find(call).ok());
        Part {
            method,
            request_id,
            arrived,
            entry,
        }
    }

    /// Returns the operation and its call; `None` when the request could not be parsed or routed.
    pub fn routed(&self) -> Option<(&'static Entry, &Call)> {
        self.entry.zip(self.arrived.as_ref().ok())
    }

    /// Returns whether the request could be parsed.
    pub fn has_arrived(&self) -> bool {
        self.arrived.is_ok()
    }

    /// Runs the request.
    pub async fn serve(mut self, core: &Core) -> Answer {
        let outcome = match (&mut self.arrived, self.entry) {
            (Ok(call), Some(entry)) => {
                authorise_and_run(core, call, entry, &mut body::empty()).await
            }
            (Ok(_), None) => Err(ErrorCode::InvalidInput.into()),
            (Err(error), _) => Err(error.clone()),
        };
        let now = core.store.now();
        let common = match (&self.arrived, &outcome) {
            (Ok(call), Ok(_)) => Common::of(call, now),
            (Ok(call), Err(error)) => Common::of_refusal(call, error, now),
            (Err(_), _) => Common::bare(smalt_protocol::Service::Blob, self.request_id, now),
        };
        let message = outcome.as_ref().err().map(|e| e.message().to_owned());
        let reply = outcome.unwrap_or_else(|error| refuse(&error, &self.method, &common));
        if let Some(entry) = self.entry {
            core.metrics
                .count(entry.service, entry.id, reply.status.as_u16());
        }
        Answer {
            response: reply::finish(reply, &self.method, &common),
            message,
        }
    }
}

fn arrive(
    core: &Core,
    outer: &Call,
    request: Request<()>,
    request_id: Uuid,
) -> Result<Call, StorageError> {
    let (mut head, ()) = request.into_parts();
    let uri = format!("{}{}", outer.origin, head.uri);
    head.uri = Uri::try_from(uri).map_err(|_| ErrorCode::InvalidUri)?;
    let socket = Socket {
        service: Some(outer.service()),
        peer: outer.peer,
        secure: outer.secure,
        ..Socket::default()
    };
    let mut call = arrival::arrive(core, &mut head, &body::empty(), &socket, request_id)?;
    // Blob Batch: "All subrequests are run with the top-level batch request version".
    call.version = outer.version;
    call.version_given = outer.version_given;
    call.version_known = outer.version_known;
    Ok(call)
}
