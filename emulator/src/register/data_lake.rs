//! Operations of the Data Lake Storage interface.

use http::Method;
use smalt_protocol::{Service, StorageError};

use super::access::{Access, ownership};
use super::entry::{Entry, Verb, op};
use super::when::always;
use crate::call::Call;
use crate::events::outbox::FLUSH;
use crate::ops::{blob, container, dfs, service};
use crate::pipeline::{read, write};
use crate::rules::events::Raises;
use crate::target::Kind;

const DFS: Service = Service::Blob;

/// Handles every Data Lake Storage request to an account with a flat namespace. Azure documents no
/// such operation, so it is not part of [`super::all`].
#[rustfmt::skip]
pub(super) const FLAT_NAMESPACE: &Entry = &op(
    DFS, "DataLake_FlatNamespace", "Data Lake Storage on a flat namespace", Verb::Any,
    Kind::Service, ("", ""), always, Access::object("racwdlxymeop").with_any_scope(),
    read::<service::data_lake::RefuseFlatNamespace>(),
);

/// The operations on an account with a hierarchical namespace. The first entry that matches is
/// used.
#[rustfmt::skip]
pub(super) const ENTRIES: &[Entry] = &[
    op(DFS, "Filesystem_List", "Filesystem - List", Verb::Get, Kind::Service, ("", ""), account, Access::service("l"), read::<dfs::filesystem::ListFilesystems>()),
    op(DFS, "Filesystem_Create", "Filesystem - Create", Verb::Put, Kind::Container, ("", ""), filesystem, Access::container("cw"), write::<dfs::filesystem::CreateFilesystem>()),
    op(DFS, "Filesystem_SetProperties", "Filesystem - Set Properties", Verb::Patch, Kind::Container, ("", ""), filesystem, Access::container("w"), write::<container::set_metadata::SetContainerMetadata>()),
    op(DFS, "Filesystem_GetProperties", "Filesystem - Get Properties", Verb::Head, Kind::Container, ("", ""), filesystem, Access::container("r"), read::<dfs::filesystem::GetFilesystemProperties>()),
    op(DFS, "Filesystem_Delete", "Filesystem - Delete", Verb::Delete, Kind::Container, ("", ""), filesystem, Access::container("d"), write::<container::delete::DeleteContainer>()),
    op(DFS, "Path_List", "Path - List", Verb::Get, Kind::Container, ("", ""), filesystem, Access::container("l").with_service_sas("l"), read::<dfs::list::ListPaths>()),
    op(DFS, "Path_Undelete", "Path - Undelete", Verb::Put, Kind::Blob, ("", "undelete"), always, Access::object("w"), write::<blob::undelete::UndeleteBlob>()),
    op(DFS, "Path_SetExpiry", "Path - Set Expiry", Verb::Put, Kind::Blob, ("", "expiry"), always, Access::object("w"), write::<blob::expiry::SetBlobExpiry>()),
    op(DFS, "Path_Rename", "Path - Create (rename)", Verb::Put, Kind::Blob, ("", ""), renames, Access::object("cwm"), write::<dfs::rename::RenamePath>()).raises(Raises::Renamed("RenameFile")).and_on(Kind::Container),
    op(DFS, "Path_Create", "Path - Create", Verb::Put, Kind::Blob, ("", ""), creates, Access::object("cw"), write::<dfs::create::CreatePath>()).raises(Raises::Created("CreateFile")),
    op(DFS, "Path_Append", "Path - Update (append)", Verb::Patch, Kind::Blob, ("", ""), appends, Access::object("aw"), write::<dfs::append::AppendPath>()).raises(Raises::Created(FLUSH)),
    op(DFS, "Path_Flush", "Path - Update (flush)", Verb::Patch, Kind::Blob, ("", ""), flushes, Access::object("w"), write::<dfs::flush::FlushPath>()).raises(Raises::Created(FLUSH)),
    op(DFS, "Path_SetProperties", "Path - Update (setProperties)", Verb::Patch, Kind::Blob, ("", ""), sets_properties, Access::object("w"), write::<dfs::set_properties::SetPathProperties>()),
    op(DFS, "Path_SetAccessControl", "Path - Update (setAccessControl)", Verb::Patch, Kind::Blob, ("", ""), sets_access, Access::object("p").refined(ownership), write::<dfs::access::SetAccessControl>()).and_on(Kind::Container),
    op(DFS, "Path_SetAccessControlRecursive", "Path - Update (setAccessControlRecursive)", Verb::Patch, Kind::Blob, ("", ""), sets_access_below, Access::object("p"), write::<dfs::recursive::SetAccessControlRecursive>()).and_on(Kind::Container),
    op(DFS, "Path_Lease", "Path - Lease", Verb::Post, Kind::Blob, ("", ""), path, Access::object("w"), write::<blob::lease::LeaseBlob>()),
    op(DFS, "Path_Read", "Path - Read", Verb::Get, Kind::Blob, ("", ""), path, Access::object("r"), read::<blob::get::GetBlob>()),
    op(DFS, "Path_GetAccessControl", "Path - Get Properties (getAccessControl)", Verb::Head, Kind::Blob, ("", ""), gets_access, Access::object("er"), read::<dfs::status::GetPathStatus>()).and_on(Kind::Container),
    op(DFS, "Path_GetProperties", "Path - Get Properties", Verb::Head, Kind::Blob, ("", ""), always, Access::object("er"), read::<dfs::status::GetPathStatus>()).and_on(Kind::Container),
    op(DFS, "Path_Delete", "Path - Delete", Verb::Delete, Kind::Blob, ("", ""), path, Access::object("d"), write::<dfs::delete::DeletePath>()).raises(Raises::Deleted("DeleteFile")),
];

fn asks(call: &Call, parameter: &str, value: &str) -> bool {
    call.query(parameter)
        .is_some_and(|given| given.eq_ignore_ascii_case(value))
}

fn account(call: &Call) -> bool {
    asks(call, "resource", "account")
}

fn filesystem(call: &Call) -> bool {
    asks(call, "resource", "filesystem") && call.query("action").is_none()
}

/// Whether a request that could be for a path does not name another resource.
fn path(call: &Call) -> bool {
    ["account", "filesystem"]
        .iter()
        .all(|other| !asks(call, "resource", other))
}

fn renames(call: &Call) -> bool {
    call.method == Method::PUT && call.headers.contains_key("x-ms-rename-source")
}

fn creates(call: &Call) -> bool {
    ["file", "directory"]
        .iter()
        .any(|kind| asks(call, "resource", kind))
}

fn appends(call: &Call) -> bool {
    asks(call, "action", "append")
}

fn flushes(call: &Call) -> bool {
    asks(call, "action", "flush")
}

fn sets_properties(call: &Call) -> bool {
    asks(call, "action", "setProperties")
}

fn sets_access(call: &Call) -> bool {
    asks(call, "action", "setAccessControl")
}

fn sets_access_below(call: &Call) -> bool {
    asks(call, "action", "setAccessControlRecursive")
}

fn gets_access(call: &Call) -> bool {
    asks(call, "action", "getAccessControl")
}

/// Returns the error of a request that no operation matches: its `action` or its `resource` is
/// invalid, or it lacks the one that it needs.
pub(super) fn unmatched(call: &Call) -> StorageError {
    const PARAMETERS: [&str; 2] = ["action", "resource"];
    for name in PARAMETERS {
        if let Some(given) = call.query(name) {
            return StorageError::invalid_query(name, given, "");
        }
    }
    let [action, resource] = PARAMETERS;
    StorageError::missing_query(match call.method {
        Method::PATCH => action,
        _ => resource,
    })
}
