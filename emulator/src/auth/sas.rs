//! Shared access signatures of an account or of one resource.

use smalt_protocol::signing::permissions::Permissions;
use smalt_protocol::signing::sas::{Sas, SasKind, SasTarget, check_window, refused};
use smalt_protocol::xml::SignedIdentifier;
use smalt_protocol::{ErrorCode, Service, StorageError, Timestamp};

use super::Identity;
use crate::call::Call;
use crate::config::Account;
use crate::core::Core;
use crate::keys;
use crate::records::{ContainerRecord, QueueRecord, Record};
use crate::register::{Access, Entry};
use crate::target::Resource;

/// Checks a SAS: signature, window, address, protocol, and whether it reaches the operation.
pub fn authorise(
    core: &Core,
    call: &Call,
    account: &Account,
    entry: &Entry,
    sas: &Sas,
) -> Result<Identity, StorageError> {
    check_resource(call, sas)?;
    let target = sas_target(call, sas);
    check_signature(account, sas, &target)?;
    let policy = stored_policy(core, call, sas)?;
    let terms = Terms::of(sas, policy.as_ref())?;
    check_window(terms.start, terms.expiry, call.arrival)?;
    // In process there is no address: what has none is not kept out by one.
    if let Some(peer) = call.peer {
        sas.check_ip(peer)?;
    }
    sas.check_protocol(call.secure)?;
    check_reach(call, &entry.access, sas, terms.permissions)?;
    Ok(Identity::Sas(terms.permissions))
}

/// What a SAS grants, together with its stored policy.
struct Terms {
    permissions: Permissions,
    start: Option<Timestamp>,
    expiry: Option<Timestamp>,
}

impl Terms {
    /// A field stands in the SAS or in the policy, not in both; permissions and expiry must stand
    /// somewhere ("Define a stored access policy").
    fn of(sas: &Sas, policy: Option<&SignedIdentifier>) -> Result<Self, StorageError> {
        let Some(policy) = policy else {
            return Ok(Terms {
                permissions: sas.permissions(),
                start: sas.start(),
                expiry: sas.expiry(),
            });
        };
        let permissions = one_of(
            "sp",
            Some(sas.get("sp")).filter(|sp| !sp.is_empty()),
            policy.permissions.as_deref(),
        )?;
        let permissions = permissions.ok_or_else(|| refused("sp is mandatory. Cannot be empty"))?;
        let expiry = one_of("se", sas.expiry(), policy.expiry)?;
        Ok(Terms {
            permissions: Permissions::parse(permissions)
                .ok_or_else(|| refused("Signature fields not well formed."))?,
            start: one_of("st", sas.start(), policy.start)?,
            expiry: Some(expiry.ok_or_else(|| refused("se is mandatory. Cannot be empty"))?),
        })
    }
}

fn one_of<T>(
    field: &str,
    in_sas: Option<T>,
    in_policy: Option<T>,
) -> Result<Option<T>, StorageError> {
    if in_sas.is_some() && in_policy.is_some() {
        return Err(refused(&format!(
            "{field} cannot be set in both the SAS and its policy."
        )));
    }
    Ok(in_sas.or(in_policy))
}

/// A service SAS names the kind of resource that it opens.
fn check_resource(call: &Call, sas: &Sas) -> Result<(), StorageError> {
    if sas.kind() == SasKind::Account || call.service() != Service::Blob {
        return Ok(());
    }
    let is_blob = matches!(call.target.resource, Resource::Blob(..));
    match sas.get("sr") {
        "c" => Ok(()),
        "b" | "bs" | "bv" if is_blob => Ok(()),
        "b" | "bs" | "bv" => Err(ErrorCode::AuthorizationResourceTypeMismatch.into()),
        "" => Err(refused("sr is mandatory. Cannot be empty")),
        _ => Err(refused("Signature fields not well formed.")),
    }
}

fn sas_target<'a>(call: &'a Call, sas: &Sas) -> SasTarget<'a> {
    let snapshot = call.query("snapshot").or_else(|| call.query("versionid"));
    let of_blob = ["b", "bs", "bv"].contains(&sas.get("sr"));
    let name = match call.service() {
        Service::Blob => call.container(),
        Service::Queue => call.queue(),
        Service::Table => call.table(),
    };
    SasTarget {
        service: call.service(),
        account: call.account(),
        name,
        blob: of_blob.then(|| call.blob()),
        snapshot: if ["bs", "bv"].contains(&sas.get("sr")) {
            snapshot.unwrap_or_default()
        } else {
            ""
        },
    }
}

fn check_signature(
    account: &Account,
    sas: &Sas,
    target: &SasTarget<'_>,
) -> Result<(), StorageError> {
    if sas.kind() == SasKind::UserDelegation {
        return Err(refused("User delegation keys are not issued here."));
    }
    let mut refusal = refused("The account has no key.");
    for key in &account.keys {
        match sas.verify(target, key.as_bytes()) {
            Ok(()) => return Ok(()),
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

fn stored_policy(
    core: &Core,
    call: &Call,
    sas: &Sas,
) -> Result<Option<SignedIdentifier>, StorageError> {
    let Some(id) = sas.policy_id() else {
        return Ok(None);
    };
    let policies = core.store.read(|view| match call.service() {
        Service::Blob => {
            ContainerRecord::load(view, &keys::container(call.account(), call.container()))
                .map(|found| found.map(|c| c.policies))
        }
        Service::Queue => QueueRecord::load(view, &keys::queue(call.account(), call.queue()))
            .map(|found| found.map(|q| q.policies)),
        Service::Table => Ok(None),
    })?;
    let policy = policies
        .unwrap_or_default()
        .into_iter()
        .find(|policy| policy.id == id);
    policy
        .map(Some)
        .ok_or_else(|| refused("Access policy not found."))
}

/// Whether the SAS reaches the operation: service, resource type, permission, in this order.
fn check_reach(
    call: &Call,
    access: &Access,
    sas: &Sas,
    permissions: Permissions,
) -> Result<(), StorageError> {
    let letters = match sas.kind() {
        SasKind::Account => {
            if !sas.get("ss").contains(call.service().letter()) {
                return Err(ErrorCode::AuthorizationServiceMismatch.into());
            }
            if access.account_sas.is_empty() {
                return Err(ErrorCode::AuthorizationFailure.into());
            }
            if !sas.get("srt").contains(access.scope.letter()) {
                return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
            }
            access.account_sas
        }
        SasKind::Service | SasKind::UserDelegation => access.service_sas,
    };
    if letters.is_empty() {
        return Err(ErrorCode::AuthorizationFailure.into());
    }
    if permissions.contains_any(letters) {
        Ok(())
    } else {
        Err(ErrorCode::AuthorizationPermissionMismatch.into())
    }
}
