//! An entry of the register: how to recognise an operation, the access it requires, and how it
//! runs.

use std::pin::Pin;

use http::Method;
use smalt_protocol::{ErrorCode, Service, StorageError};

use super::access::Access;
use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::reply::Reply;
use crate::rules::events::Raises;
use crate::target::Kind;

/// An operation of a service.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The service that offers the operation.
    pub service: Service,
    /// Id in the interface definition, unique within the service: `BlockBlob_Upload`.
    pub id: &'static str,
    /// Title of the REST reference page: `Put Blob`.
    pub title: &'static str,
    /// HTTP methods of the operation.
    pub verb: Verb,
    /// Kind of resource addressed.
    pub on: Kind,
    /// Query parameter `restype`; empty if absent.
    pub restype: &'static str,
    /// Query parameter `comp`; empty if absent.
    pub comp: &'static str,
    /// Another accepted kind of resource.
    pub also_on: Option<Kind>,
    /// Another accepted `restype`.
    pub also_restype: Option<&'static str>,
    /// Distinguishes the operation from others with the same method, resource and query.
    pub when: fn(&Call) -> bool,
    /// Access that the operation requires.
    pub access: Access,
    /// The event that the operation can raise.
    pub raises: Option<Raises>,
    /// How the operation runs.
    pub run: Run,
}

/// Creates an entry. `query` holds `restype` and `comp`.
#[expect(clippy::too_many_arguments, reason = "a table's columns")]
pub(super) const fn op(
    service: Service,
    id: &'static str,
    title: &'static str,
    verb: Verb,
    on: Kind,
    query: (&'static str, &'static str),
    when: fn(&Call) -> bool,
    access: Access,
    run: Run,
) -> Entry {
    let (restype, comp) = query;
    Entry {
        service,
        id,
        title,
        verb,
        on,
        restype,
        comp,
        also_on: None,
        also_restype: None,
        when,
        access,
        raises: None,
        run,
    }
}

/// HTTP methods of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Any method.
    Any,
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// GET, or HEAD for the same response without a body.
    GetOrHead,
    /// PUT.
    Put,
    /// POST.
    Post,
    /// POST, or PUT in the API versions before 2009-09-19.
    PostOrPut,
    /// DELETE.
    Delete,
    /// PATCH or MERGE, its older name.
    Patch,
    /// OPTIONS.
    Options,
}

impl Verb {
    pub(super) fn is(self, method: &Method) -> bool {
        match self {
            Verb::Any => true,
            Verb::Get => method == Method::GET,
            Verb::Head => method == Method::HEAD,
            Verb::GetOrHead => method == Method::GET || method == Method::HEAD,
            Verb::Put => method == Method::PUT,
            Verb::Post => method == Method::POST,
            Verb::PostOrPut => method == Method::POST || method == Method::PUT,
            Verb::Delete => method == Method::DELETE,
            Verb::Patch => method == Method::PATCH || method.as_str() == "MERGE",
            Verb::Options => method == Method::OPTIONS,
        }
    }
}

/// The future of a running operation.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Reply, StorageError>> + Send + 'a>>;

/// A function that runs an operation.
pub type Runner = for<'a> fn(&'a Core, &'a Call, &'a mut Body) -> Running<'a>;

/// How an operation of the register runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// Not implemented: responds with 501.
    NotBuilt,
    /// Implemented by a function.
    Built(Effect, Runner),
    /// Blob Batch: the pipeline runs each request it contains in turn.
    Batch,
    /// Entity Group Transaction: finds the operations of its requests in the register.
    Transaction,
}

/// Whether an operation changes the stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    Reads,
    /// May change the state.
    Writes,
}

impl Entry {
    /// Returns `true` if the operation changes nothing.
    pub const fn only_reads(&self) -> bool {
        matches!(self.run, Run::Built(Effect::Reads, _))
    }

    /// Returns `true` if the operation is implemented; others respond with 501.
    pub const fn is_built(&self) -> bool {
        !matches!(self.run, Run::NotBuilt)
    }

    /// Returns `true` if the operation may change the state. `false` for a transaction, whose
    /// requests are checked one by one.
    pub const fn writes(&self) -> bool {
        matches!(self.run, Run::Built(Effect::Writes, _) | Run::Batch)
    }

    pub(super) const fn and_on(mut self, kind: Kind) -> Self {
        self.also_on = Some(kind);
        self
    }

    pub(super) const fn raises(mut self, event: Raises) -> Self {
        self.raises = Some(event);
        self
    }

    pub(super) const fn and_restype(mut self, restype: &'static str) -> Self {
        self.also_restype = Some(restype);
        self
    }

    /// Rejects writes to the secondary endpoint, which is read-only. *Common REST API error codes*
    /// has the code and the message; production responds so to a write, as reported in
    /// microsoft/AzureStorageExplorer, issue 4806.
    ///
    /// # Errors
    /// 403 `InsufficientAccountPermissions` for an operation that writes.
    pub fn check_endpoint(&self, call: &Call) -> Result<(), StorageError> {
        if !call.target.secondary || !self.writes() {
            return Ok(());
        }
        let code = ErrorCode::InsufficientAccountPermissions;
        Err(StorageError::new(code).with_message("Write operations are not allowed."))
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.service.as_str(), self.id)
    }
}
