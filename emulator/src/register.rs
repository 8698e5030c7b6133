//! The register: one entry per operation of the three services, implemented or not.
//!
//! Router, fault selectors, metrics, the harness's report rows and `docs/operations.md` are derived
//! from it. To add an operation, add its file and its entry here.

mod access;
mod blob;
mod data_lake;
mod entry;
mod queue;
mod table;
mod tunnel;
pub mod when;

use http::Method;
use smalt_protocol::{ErrorCode, Service, StorageError};

pub use access::{Access, Anonymous, READ_BLOB, Scope, sets_owner};
pub use entry::{Effect, Entry, Run, Running, Verb};

use crate::call::Call;
use crate::target::Resource;

/// Number of operations that Azure Storage documents for the three services.
pub const OPERATIONS: usize = 106;

/// Returns every operation of the services: Blob, then Queue, then Table.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    Service::ALL.into_iter().flat_map(entries_of)
}

/// Returns the operations of the Data Lake interface, which only hierarchical accounts have. They
/// belong to the Blob service.
pub fn data_lake() -> impl Iterator<Item = &'static Entry> {
    data_lake::ENTRIES.iter()
}

/// Finds the operation that a call addresses.
///
/// # Errors
/// The error of an invalid table address or `X-HTTP-Method`; `UnsupportedHttpVerb` or 400
/// `InvalidQueryParameterValue` if no operation matches.
pub fn find(call: &Call) -> Result<&'static Entry, StorageError> {
    if let Resource::Table(Err(error)) = &call.target.resource {
        return Err(error.clone());
    }
    tunnel::check(call)?;
    let restype = call.query("restype").unwrap_or_default();
    let comp = call.query("comp").unwrap_or_default();
    let kind = call.target.resource.kind();
    let of_resource = |e: &&Entry| {
        (e.on == kind || e.also_on == Some(kind))
            && e.comp.eq_ignore_ascii_case(comp)
            && [Some(e.restype), e.also_restype]
                .iter()
                .flatten()
                .any(|given| given.eq_ignore_ascii_case(restype))
    };
    let entries = entries_of(call.service());
    if call.method == Method::OPTIONS {
        // A preflight applies to any resource.
        let preflight = entries.iter().find(|e| e.verb == Verb::Options);
        return preflight.ok_or_else(|| ErrorCode::UnsupportedHttpVerb.into());
    }
    let entries = match call.target.data_lake {
        true if !call.settings.hierarchical_namespace => return Ok(data_lake::FLAT_NAMESPACE),
        true => data_lake::ENTRIES,
        false => entries,
    };
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

/// Returns the operation with this service and id.
pub fn by_id(service: Service, id: &str) -> Option<&'static Entry> {
    let of_data_lake = data_lake().filter(|_| service == Service::Blob);
    let mut entries = entries_of(service).iter().chain(of_data_lake);
    entries.find(|e| e.id == id)
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
    let is_of_lake = call.target.data_lake && call.method != Method::POST;
    if !is_known_verb || (other_verb && !is_of_lake) {
        return ErrorCode::UnsupportedHttpVerb.into();
    }
    if comp.is_empty() && call.target.data_lake {
        return data_lake::unmatched(call);
    }
    if comp.is_empty() {
        return match call.query("restype") {
            // Recorded: with a known `restype` the error names the missing `comp`.
            Some("service" | "container" | "account") => {
                StorageError::no_such_operation("comp", "")
            }
            Some(restype) => StorageError::no_such_operation("restype", restype),
            None => ErrorCode::UnsupportedHttpVerb.into(),
        };
    }
    StorageError::no_such_operation("comp", comp)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::AccountSettings;
    use crate::ops::blob::testing;

    /// Classifies by method, with exceptions: a dequeue hides messages; a query with a body, a key
    /// derivation and a transaction itself change nothing.
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
    fn secondary_accepts_only_reads() {
        let mut call = testing::call(&[], &[]);
        for secondary in [true, false] {
            call.target.secondary = secondary;
            for entry in all().chain(data_lake()) {
                let refusal = entry.check_endpoint(&call).err();
                let code = refusal.map(|error| error.code());
                let expected = (secondary && is_to_write(entry))
                    .then_some(ErrorCode::InsufficientAccountPermissions);
                assert_eq!(code, expected, "{entry:?}");
            }
        }
    }

    #[test]
    fn request_of_no_path_operation_is_told_what_it_lacks() {
        use ErrorCode::{InvalidQueryParameterValue, MissingRequiredQueryParameter};
        for (method, query, expected) in [
            (Method::PUT, &[][..], MissingRequiredQueryParameter),
            (Method::PATCH, &[], MissingRequiredQueryParameter),
            (
                Method::PATCH,
                &[("action", "cut")],
                InvalidQueryParameterValue,
            ),
            (
                Method::PUT,
                &[("resource", "link")],
                InvalidQueryParameterValue,
            ),
            (
                Method::GET,
                &[("resource", "filesystem")],
                InvalidQueryParameterValue,
            ),
        ] {
            let mut call = testing::call(query, &[]);
            call.method = method;
            call.target.data_lake = true;
            call.settings = Arc::new(AccountSettings {
                hierarchical_namespace: true,
                ..AccountSettings::default()
            });
            let error = find(&call).unwrap_err();
            assert_eq!(error.code(), expected, "{} {query:?}", call.method);
        }
    }

    #[test]
    fn every_operation_is_listed_once() {
        assert_eq!(all().count(), OPERATIONS);
        let with_data_lake = all().chain(data_lake());
        let ids: std::collections::BTreeSet<_> =
            with_data_lake.map(|e| (e.service.as_str(), e.id)).collect();
        assert_eq!(ids.len(), OPERATIONS + data_lake::ENTRIES.len());
    }
}
