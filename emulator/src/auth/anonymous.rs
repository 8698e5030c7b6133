//! Requests without credentials, which a container's public access may allow.
//!
//! Source: "Configure anonymous read access", whose table reserves uncommitted blocks for the
//! owner; recordings for the 404 that hides private resources. No document opens tags to anonymous
//! readers.

use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use super::identity::{CHALLENGE, Identity};
use super::needs;
use crate::call::Call;
use crate::core::Core;
use crate::keys;
use crate::records::{ContainerRecord, PublicAccess, Record};
use crate::register::{Access, Anonymous};

/// Allows an anonymous request that the container's public access covers.
pub fn authorise(core: &Core, call: &Call, access: &Access) -> Result<Identity, StorageError> {
    let needed = access.anonymous;
    let wants_more = needs::besides(call).next().is_some() || wants_uncommitted(call);
    if needed == Anonymous::No || wants_more || call.container().is_empty() {
        return Err(refused(call));
    }
    if !call.settings.public_access {
        // "Remediate anonymous read access": the account's setting overrides the container's.
        return Err(ErrorCode::PublicAccessNotPermitted.into());
    }
    let key = keys::container(call.account(), call.container());
    let container = core.store.read(|view| ContainerRecord::load(view, &key))?;
    let opened = container
        .filter(|container| container.deleted_at.is_none())
        .map_or(PublicAccess::Private, |container| container.public_access);
    match (needed, opened) {
        (Anonymous::Blob, PublicAccess::Blob | PublicAccess::Container)
        | (Anonymous::Container, PublicAccess::Container) => Ok(Identity::Anonymous),
        _ => Err(refused(call)),
    }
}

/// Returns whether Get Block List or List Blobs asks for uncommitted data.
fn wants_uncommitted(call: &Call) -> bool {
    let blocks = call.query("blocklisttype").unwrap_or("committed");
    let mut listed = call.query_list("include");
    !blocks.eq_ignore_ascii_case("committed")
        || listed.any(|part| part.eq_ignore_ascii_case("uncommittedblobs"))
}

/// Recorded: 404 `ResourceNotFound`, which hides private resources, without a version or before
/// 2019-12-12; 401 with a challenge since then.
fn refused(call: &Call) -> StorageError {
    if !call.version_given || call.version < ApiVersion::V2019_12_12 {
        return ErrorCode::ResourceNotFound.into();
    }
    StorageError::new(ErrorCode::NoAuthenticationInformation)
        .with_header("www-authenticate", CHALLENGE)
}
