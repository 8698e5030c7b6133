//! A line of the register: how an operation is recognised, what it asks of the caller, how it runs.

use std::pin::Pin;

use http::Method;
use smalt_protocol::{ErrorCode, Service, StorageError};

use super::access::Access;
use crate::body::Body;
use crate::call::Call;
use crate::core::Core;
use crate::reply::Reply;
use crate::target::Kind;

/// One operation.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Service.
    pub service: Service,
    /// Id of the interface definition, unique within the service: `BlockBlob_Upload`.
    pub id: &'static str,
    /// Title of its REST document: `Put Blob`.
    pub title: &'static str,
    /// Methods.
    pub verb: Verb,
    /// Kind of resource addressed.
    pub on: Kind,
    /// `restype` of the query, empty for none.
    pub restype: &'static str,
    /// `comp` of the query, empty for none.
    pub comp: &'static str,
    /// A kind of resource that does as well.
    pub also_on: Option<Kind>,
    /// A `restype` that does as well.
    pub also_restype: Option<&'static str>,
    /// What else tells it from its neighbours.
    pub when: fn(&Call) -> bool,
    /// What the caller must hold.
    pub access: Access,
    /// How it runs.
    pub run: Run,
}

/// A line: service, id, title, method, resource, query, predicate, access, run.
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
        run,
    }
}

/// Methods of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Every method.
    Any,
    /// GET.
    Get,
    /// HEAD.
    Head,
    /// GET, or HEAD for the same without a body.
    GetOrHead,
    /// PUT.
    Put,
    /// POST.
    Post,
    /// POST, or PUT where the version's own form has it.
    PostOrPut,
    /// DELETE.
    Delete,
    /// PATCH, or its older name MERGE.
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
    /// Blob Batch: what it holds comes back to the pipeline, one request after the other.
    Batch,
    /// Entity Group Transaction: it finds the operations of its requests in the register.
    Transaction,
}

/// What an operation does to the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    Reads,
    /// It changes something.
    Writes,
}

impl Entry {
    /// Whether it is built; those that are not answer 501.
    pub const fn is_built(&self) -> bool {
        !matches!(self.run, Run::NotBuilt)
    }

    /// Whether it changes something, whatever the request: the requests of a transaction are asked
    /// one by one.
    pub const fn writes(&self) -> bool {
        matches!(self.run, Run::Built(Effect::Writes, _) | Run::Batch)
    }

    /// The same on another kind of resource as well.
    pub(super) const fn and_on(mut self, kind: Kind) -> Self {
        self.also_on = Some(kind);
        self
    }

    /// The same under another `restype` as well.
    pub(super) const fn and_restype(mut self, restype: &'static str) -> Self {
        self.also_restype = Some(restype);
        self
    }

    /// The secondary is there to be read. *Common REST API error codes* has the code and the text;
    /// production answers a write so, as reported with microsoft/AzureStorageExplorer, issue 4806.
    ///
    /// # Errors
    /// 403 `InsufficientAccountPermissions` for what writes.
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
