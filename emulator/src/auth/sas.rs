//! Shared access signatures of an account, of one resource, or of a user.
//!
//! Sources: "Create a service SAS", "Create an account SAS", "Create a user delegation SAS",
//! "Define a stored access policy"; recordings for the order of refusals.

use smalt_protocol::signing::AccountKey;
use smalt_protocol::signing::permissions::Permissions;
use smalt_protocol::signing::sas::{Sas, SasKind, SasTarget, check_window, refused};
use smalt_protocol::xml::SignedIdentifier;
use smalt_protocol::{ApiVersion, ErrorCode, Service, StorageError, Timestamp, limits};
use uuid::Uuid;

use super::delegation::{self, DelegationSecret};
use super::identity::{Identity, Principal, TOKEN_ONLY};
use super::needs;
use super::proofs::Given;
use super::terms::Terms;
use crate::call::Call;
use crate::config::Account;
use crate::core::Core;
use crate::keys;
use crate::records::{ContainerRecord, QueueRecord, Record, TableRecord};
use crate::register::Access;

/// Checks a SAS: signature, window, address, protocol, and whether it permits the operation.
/// `principal` is the user of a token that the request has as well.
pub fn authorise(
    core: &Core,
    call: &Call,
    account: &Account,
    access: &Access,
    mut given: Given,
    principal: Option<&Principal>,
) -> Result<Identity, StorageError> {
    if let Given::New(sas) = &mut given {
        sas.bind(|name| text_header(call, name), |name| call.query(name));
    }
    let sas = given.sas();
    check_resource(call, sas)?;
    check_user(sas, principal)?;
    let target = sas_target(call, sas);
    if !given.is_proven_for(&target) {
        check_signature(call, account, sas, &target)?;
        core.proofs.add(call, sas, &target);
    } else if sas.kind() == SasKind::UserDelegation {
        sas.check_key_window(call.arrival)?;
    }
    let terms = match stored_policy(core, call, sas)? {
        Some(policy) => Terms::with(sas, &policy)?,
        None => given.terms(),
    };
    check_window(terms.start, terms.expiry, call.arrival)?;
    check_length(sas, &terms, call.arrival)?;
    // Requests in process have no address, so the address check does not apply to them.
    if let Some(peer) = call.peer {
        sas.check_ip(peer)?;
    }
    sas.check_protocol(call.secure)?;
    check_reach(call, access, sas, terms.permissions)?;
    check_roles(call, access, sas)?;
    Ok(Identity::Sas(terms.permissions))
}

fn text_header<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    call.headers.get(name)?.to_str().ok()
}

/// Checks that a SAS for a part of the Blob service names the kind of its resource, and one for a
/// table the table.
fn check_resource(call: &Call, sas: &Sas) -> Result<(), StorageError> {
    if sas.kind() == SasKind::Account {
        return Ok(());
    }
    match call.service() {
        Service::Blob => {}
        Service::Queue => return Ok(()),
        Service::Table if sas.get("tn").is_empty() => {
            return Err(refused("tn is mandatory. Cannot be empty"));
        }
        Service::Table => return Ok(()),
    }
    match sas.get("sr") {
        "c" | "b" | "bs" | "bv" => Ok(()),
        "d" => check_depth(call, sas),
        "" => Err(refused("sr is mandatory. Cannot be empty")),
        _ => Err(refused("Signature fields not well formed.")),
    }
}

/// Checks `sdd`, the depth of the directory: the requested path must have at least as many
/// segments.
fn check_depth(call: &Call, sas: &Sas) -> Result<(), StorageError> {
    let below = below_directory(call);
    let segments = below.split('/').filter(|part| !part.is_empty()).count();
    let depth = sas.get("sdd").parse::<usize>().ok();
    if depth.is_some_and(|depth| depth <= segments) {
        Ok(())
    } else {
        Err(refused("Signed Directory Depth Invalid"))
    }
}

/// Checks `sduoid` and `skdutid`, which restrict the signature to one user of one tenant, with a
/// token. "Create a user delegation SAS", since 2025-07-05.
fn check_user(sas: &Sas, principal: Option<&Principal>) -> Result<(), StorageError> {
    let is = |field: &str, id: Uuid| {
        let named = sas.get(field);
        named.is_empty() || Uuid::parse_str(named).is_ok_and(|named| named == id)
    };
    let user = sas.get("sduoid");
    let fits =
        principal.is_some_and(|user| is("sduoid", user.object_id) && is("skdutid", user.tenant_id));
    if user.is_empty() || fits {
        Ok(())
    } else {
        Err(refused(
            "The token of the user whom sduoid names is required.",
        ))
    }
}

fn sas_target<'a>(call: &'a Call, sas: &'a Sas) -> SasTarget<'a> {
    let name = match call.service() {
        Service::Blob => call.container(),
        Service::Queue => call.queue(),
        // Listing tables and `$batch` have no table in their path.
        Service::Table => sas.get("tn"),
    };
    let parameter = match sas.get("sr") {
        "bs" => call.query("snapshot"),
        "bv" => call.query("versionid"),
        _ => None,
    };
    SasTarget {
        service: call.service(),
        account: call.account(),
        name,
        blob: match sas.get("sr") {
            "b" | "bs" | "bv" => Some(call.blob()),
            "d" => Some(below_directory(call)),
            _ => None,
        },
        snapshot: parameter.unwrap_or_default(),
    }
}

/// Returns the path that must be in the SAS's directory: the blob, the directory part of a
/// listing's prefix, or the directory that Path - List names. Other requests concern the whole
/// container and return an empty path.
fn below_directory(call: &Call) -> &str {
    if !call.blob().is_empty() {
        return call.blob();
    }
    // Other requests to a file system itself may name a directory, but do not mean it.
    if call.target.data_lake && call.method == http::Method::GET {
        return call
            .query("directory")
            .unwrap_or_default()
            .trim_matches('/');
    }
    let comp = call.query("comp").unwrap_or_default();
    let prefix = call
        .query("prefix")
        .filter(|_| comp.eq_ignore_ascii_case("list"));
    prefix
        .and_then(|prefix| prefix.rsplit_once('/'))
        .map_or("", |(directory, _)| directory)
}

fn check_signature(
    call: &Call,
    account: &Account,
    sas: &Sas,
    target: &SasTarget<'_>,
) -> Result<(), StorageError> {
    let delegated;
    let keys = match sas.kind() {
        SasKind::UserDelegation => {
            delegated = delegation_keys(call, account, sas)?;
            &delegated
        }
        SasKind::Account | SasKind::Service => &account.keys,
    };
    let mut refusal = None;
    for key in keys {
        match sas.verify(target, key.as_bytes()) {
            Ok(()) => return Ok(()),
            Err(error) => refusal = Some(error),
        }
    }
    Err(refusal.unwrap_or_else(|| refused("The account has no key.")))
}

/// Derives the key that a user delegation SAS names from each of the account's keys.
fn delegation_keys(
    call: &Call,
    account: &Account,
    sas: &Sas,
) -> Result<Vec<AccountKey>, StorageError> {
    let mut letter = [0; 4];
    if sas.get("sks") != call.service().letter().encode_utf8(&mut letter) {
        return Err(refused("Signature fields not well formed."));
    }
    sas.check_key_window(call.arrival)?;
    let terms = delegation::Terms::of(sas)?;
    let made = account.keys.iter().filter_map(|key| {
        let secret = DelegationSecret::of(call.account(), key);
        AccountKey::parse(&secret.key(&terms))
    });
    Ok(made.collect())
}

/// "Create a service SAS": before 2012-02-12 a SAS without a stored policy is valid for at most one
/// hour.
fn check_length(sas: &Sas, terms: &Terms, now: Timestamp) -> Result<(), StorageError> {
    let first_form = sas.version().is_none() && sas.policy_id().is_none();
    let (start, Some(expiry)) = (terms.start.unwrap_or(now), terms.expiry) else {
        return Ok(());
    };
    if !first_form || expiry.since(start).as_secs() <= limits::SAS_WITHOUT_POLICY_S_MAX {
        return Ok(());
    }
    Err(refused(&format!(
        "Access without signed identifier cannot have time window more than 1 hour: \
         Start [{}] - Expiry [{}]",
        start.rfc1123(),
        expiry.rfc1123(),
    )))
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
            ContainerRecord::load(view, &keys::container(call.account(), call.container())).map(
                |found| {
                    found
                        .filter(|container| container.deleted_at.is_none())
                        .map(|container| container.policies)
                },
            )
        }
        Service::Queue => QueueRecord::load(view, &keys::queue(call.account(), call.queue()))
            .map(|found| found.map(|q| q.policies)),
        Service::Table => {
            let table = call.query("tn").unwrap_or_default().to_ascii_lowercase();
            TableRecord::load(view, &keys::table(call.account(), &table)).map(|found| {
                found
                    .filter(|table| table.deleted_at.is_none())
                    .map(|table| table.policies)
            })
        }
    })?;
    let policy = policies
        .unwrap_or_default()
        .into_iter()
        .find(|policy| policy.id == id);
    policy
        .map(Some)
        .ok_or_else(|| refused("Access policy not found."))
}

/// Checks whether the SAS permits the operation: service, resource type, permission, in this order.
fn check_reach(
    call: &Call,
    access: &Access,
    sas: &Sas,
    permissions: Permissions,
) -> Result<(), StorageError> {
    if access.token_only {
        return Err(refused(TOKEN_ONLY));
    }
    if sas.kind() == SasKind::Account {
        if !sas.get("ss").contains(call.service().letter()) {
            return Err(ErrorCode::AuthorizationServiceMismatch.into());
        }
        if access.account_sas.is_empty() {
            return Err(unauthorised(call, ErrorCode::AuthorizationFailure));
        }
        if !access.any_scope && !sas.get("srt").contains(access.scope.letter()) {
            return Err(ErrorCode::AuthorizationResourceTypeMismatch.into());
        }
    }
    let declared = match sas.kind() {
        SasKind::Account => access.account_sas,
        SasKind::Service | SasKind::UserDelegation => access.service_sas,
    };
    check_letters(call, access, declared, permissions)
}

/// Checks that the roles of the user who signed with a user delegation key suffice. Where `suoid`
/// names a user, access control lists decide. "Create a user delegation SAS".
fn check_roles(call: &Call, access: &Access, sas: &Sas) -> Result<(), StorageError> {
    let has_lists = call.has_access_lists() && !sas.get("suoid").is_empty();
    if sas.kind() != SasKind::UserDelegation || has_lists {
        return Ok(());
    }
    let signer = Uuid::parse_str(sas.get("skoid")).unwrap_or_default();
    needs::check_roles(call, access, signer)
}

/// Checks whether the permissions of a SAS suffice for an operation with the letters `declared`.
pub fn check_letters(
    call: &Call,
    access: &Access,
    declared: &str,
    permissions: Permissions,
) -> Result<(), StorageError> {
    if declared.is_empty() {
        return Err(unauthorised(call, ErrorCode::AuthorizationFailure));
    }
    if needs::are_met(call, access, declared, permissions) {
        Ok(())
    } else {
        Err(unauthorised(
            call,
            ErrorCode::AuthorizationPermissionMismatch,
        ))
    }
}

/// "Shared access signature error codes": before 2015-04-05 a refused resource appears as missing.
fn unauthorised(call: &Call, code: ErrorCode) -> StorageError {
    if call.version < ApiVersion::V2015_04_05 {
        ErrorCode::ResourceNotFound.into()
    } else {
        code.into()
    }
}
