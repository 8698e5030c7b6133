//! The register: one line per operation of the three services, built or not.
//!
//! Router, fault selectors, metrics, the harness's report rows and `docs/operations.md` derive from
//! it. Adding an operation is its file and its line here.

mod access;
mod blob;
mod data_lake;
mod queue;
mod table;
mod tunnel;
pub mod when;

use http::Method;
use smalt_protocol::{ErrorCode, Service, StorageError};

pub use access::{Access, Anonymous, Scope};

use crate::call::Call;
use crate::pipeline::{Effect, Run};
use crate::target::{Kind, Resource};

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
    /// What else tells it from its neighbours.
    pub when: fn(&Call) -> bool,
    /// What the caller must hold.
    pub access: Access,
    /// How it runs.
    pub run: Run,
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
    fn is(self, method: &Method) -> bool {
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

const PREFLIGHT: &str = "Preflight";
/// Recorded: without a container in its path it misses a header first.
const RESTORE: &str = "Container_Restore";
/// Microsoft's SDK for JavaScript takes the account in the path of an emulator for a container.
const BATCH: &str = "Service_SubmitBatch";

/// Number of operations that Azure Storage documents for the three services.
pub const OPERATIONS: usize = 106;

/// Every operation, blob first.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    [blob::ENTRIES, queue::ENTRIES, table::ENTRIES]
        .into_iter()
        .flatten()
}

/// The operation that a call is for.
pub fn find(call: &Call) -> Result<&'static Entry, StorageError> {
    if let Resource::Table(Err(error)) = &call.target.resource {
        return Err(error.clone());
    }
    tunnel::check(call)?;
    let restype = call.query("restype").unwrap_or_default();
    let comp = call.query("comp").unwrap_or_default();
    let kind = call.target.resource.kind();
    let of_resource = |e: &&Entry| {
        (e.on == kind || (e.id == RESTORE && kind == Kind::Service))
            && e.comp.eq_ignore_ascii_case(comp)
            && (e.restype.eq_ignore_ascii_case(restype)
                || (e.id == BATCH && restype.eq_ignore_ascii_case("container")))
    };
    let entries = entries_of(call.service());
    if call.method == Method::OPTIONS {
        // A preflight asks about whatever resource its path names.
        return by_id(call.service(), PREFLIGHT)
            .ok_or_else(|| ErrorCode::UnsupportedHttpVerb.into());
    }
    if call.target.data_lake {
        return Ok(data_lake::FLAT_NAMESPACE);
    }
    let found = entries
        .iter()
        .filter(of_resource)
        .find(|e| e.verb.is(&call.method) && (e.when)(call));
    if let Some(entry) = found {
        return Ok(entry);
    }
    Err(unmatched(
        call,
        entries.iter().any(|e| of_resource(&e)),
        comp,
    ))
}

/// The operation of this service and id.
pub fn by_id(service: Service, id: &str) -> Option<&'static Entry> {
    entries_of(service).iter().find(|e| e.id == id)
}

fn entries_of(service: Service) -> &'static [Entry] {
    match service {
        Service::Blob => blob::ENTRIES,
        Service::Queue => queue::ENTRIES,
        Service::Table => table::ENTRIES,
    }
}

fn unmatched(call: &Call, other_verb: bool, comp: &str) -> StorageError {
    let is_known_verb = [
        "GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE",
    ]
    .contains(&call.method.as_str());
    if !is_known_verb || other_verb {
        return ErrorCode::UnsupportedHttpVerb.into();
    }
    if comp.is_empty() {
        return match call.query("restype") {
            // Recorded: `restype` is known, and it is the missing `comp` that is named.
            Some("service" | "container" | "account") => {
                StorageError::no_such_operation("comp", "")
            }
            Some(restype) => StorageError::no_such_operation("restype", restype),
            None => ErrorCode::UnsupportedHttpVerb.into(),
        };
    }
    StorageError::no_such_operation("comp", comp)
}

impl Entry {
    /// Whether it is built; those that are not answer 501.
    pub const fn is_built(&self) -> bool {
        matches!(self.run, Run::Built(..))
    }

    /// Whether it changes something, whatever the request.
    pub const fn writes(&self) -> bool {
        matches!(self.run, Run::Built(Effect::Writes, _))
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.service.as_str(), self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::blob::testing;
    use crate::pipeline::check_endpoint;

    /// By method, and what is otherwise than its method says: a dequeue hides messages; a query
    /// with a body, a key that is derived and the requests of a transaction change nothing by
    /// themselves.
    fn is_to_write(entry: &Entry) -> bool {
        match entry.id {
            "Messages_Dequeue" => true,
            "Blob_Query" | "Service_GetUserDelegationKey" | "Table_SubmitTransaction" => false,
            _ => !matches!(
                entry.verb,
                Verb::Get | Verb::Head | Verb::GetOrHead | Verb::Options
            ),
        }
    }

    #[test]
    fn the_secondary_takes_reads_only() {
        let mut call = testing::call(&[], &[]);
        for secondary in [true, false] {
            call.target.secondary = secondary;
            for entry in all() {
                let refusal = check_endpoint(&call, entry).err();
                let code = refusal.map(|error| error.code());
                let expected = (secondary && is_to_write(entry))
                    .then_some(ErrorCode::InsufficientAccountPermissions);
                assert_eq!(code, expected, "{entry:?}");
            }
        }
    }

    #[test]
    fn every_operation_stands_once() {
        assert_eq!(all().count(), OPERATIONS);
        let ids: std::collections::BTreeSet<_> =
            all().map(|e| (e.service.as_str(), e.id)).collect();
        assert_eq!(ids.len(), OPERATIONS);
    }
}
