//! The permissions that a request needs for its operation, its headers and its parameters.

use smalt_protocol::signing::permissions::Permissions;
use smalt_protocol::{ErrorCode, StorageError, table};
use uuid::Uuid;

use super::roles::Held;
use crate::call::Call;
use crate::register::{Access, Entry, Scope, sets_owner};
use crate::rules::acl::{self, EXECUTE, FS_ACTION, Need, READ, WRITE};
use crate::target::{Kind, Resource};

/// Returns whether the permissions `held` of a SAS suffice for a request. `declared` are the
/// letters of the operation's register entry for this kind of SAS; any one of them suffices.
pub fn are_met(call: &Call, access: &Access, declared: &str, held: Permissions) -> bool {
    let letters = access.refined.and_then(|refine| refine(call));
    held.contains_any(letters.unwrap_or(declared)) && besides(call).all(|one| held.contains(one))
}

/// Returns what the roles of a user permit with the resource of a request.
pub fn held(call: &Call, access: &Access, user: Uuid) -> Held {
    // The requests of a batch are checked one by one.
    let is_batch = access.any_scope
        || matches!(
            call.target.resource,
            Resource::Table(Ok(table::Resource::Batch))
        );
    let parent = call.target.resource.parent();
    held_in(call, user, |limit| is_batch || is_same(limit, parent))
}

/// Returns what the roles of a user permit with blobs of a container.
pub fn held_in_container(call: &Call, user: Uuid, container: &str) -> Held {
    held_in(call, user, |limit| is_same(limit, container))
}

fn held_in(call: &Call, user: Uuid, reaches: impl Fn(&str) -> bool) -> Held {
    let assigned = call.settings.role_assignments.as_ref();
    Held::of(assigned, user, call.service(), reaches)
}

/// Names of tables are not case-sensitive; the others have no capitals.
fn is_same(limit: &str, name: &str) -> bool {
    limit.eq_ignore_ascii_case(name)
}

/// Returns whether roles suffice for a request.
pub fn suffice(held: &Held, call: &Call, access: &Access) -> bool {
    if access.token_only {
        return held.delegates;
    }
    if access.is_owners() {
        return held.containers.contains('p');
    }
    let letters = match access.scope {
        _ if access.any_scope => held.service.union(held.containers).union(held.objects),
        Scope::Service => held.service,
        Scope::Container => held.containers,
        Scope::Object => held.objects,
    };
    are_met(call, access, access.account_sas, letters)
}

/// Checks that the roles of a user suffice for a request.
///
/// # Errors
/// 403 `AuthorizationPermissionMismatch`.
pub fn check_roles(call: &Call, access: &Access, user: Uuid) -> Result<(), StorageError> {
    if suffice(&held(call, access, user), call, access) {
        Ok(())
    } else {
        Err(ErrorCode::AuthorizationPermissionMismatch.into())
    }
}

/// Returns whether an update of an entity may insert it, which it does without `If-Match`. "Insert
/// Or Replace Entity".
fn may_insert(call: &Call) -> bool {
    let updates = matches!(call.method.as_str(), "PUT" | "MERGE" | "PATCH");
    let is_entity = matches!(
        &call.target.resource,
        Resource::Table(Ok(smalt_protocol::table::Resource::Entity { .. }))
    );
    updates && is_entity && !call.headers.contains_key("if-match")
}

fn wants_tags(call: &Call) -> bool {
    let mut listed = call.query_list("include");
    listed.any(|part| part.eq_ignore_ascii_case("tags"))
}

/// Returns the letters that headers and parameters need for any operation: `t` to set, list or
/// compare index tags, `i` for a policy or a legal hold in a write, `a` for an update that may
/// insert, `o` for the owner of a path. Sources: "Specifying conditional headers", "List Blobs",
/// "Put Blob", "Create a service SAS".
pub fn besides(call: &Call) -> impl Iterator<Item = char> {
    let has = |header: &str| call.headers.contains_key(header);
    let reads_tags = has("x-ms-if-tags") || wants_tags(call);
    let is_write = call.method == http::Method::PUT;
    let sets_tags = is_write && has("x-ms-tags");
    let keeps = is_write
        && (has("x-ms-immutability-policy-until-date")
            || has("x-ms-immutability-policy-mode")
            || has("x-ms-legal-hold"));
    let tags = (reads_tags || sets_tags).then_some('t');
    let inserts = may_insert(call).then_some('a');
    let is_owned = call.method == http::Method::PATCH && sets_owner(call);
    let others = keeps.then_some('i').into_iter().chain(inserts);
    tags.into_iter()
        .chain(others)
        .chain(is_owned.then_some('o'))
}

/// Returns what a request needs where access control lists decide, which follows from the
/// permissions of a signature for its operation. Source: "Access control lists (ACLs) in Azure Data
/// Lake Storage", the table of permissions that operations need.
///
/// # Errors
/// 400 `InvalidQueryParameterValue` for a malformed `fsAction`.
pub fn of_lists(call: &Call, entry: &Entry) -> Result<Need, StorageError> {
    if let Some(action) = call.query(FS_ACTION) {
        let bits = acl::parse_bits(action);
        let bits = bits.ok_or_else(|| StorageError::invalid_query(FS_ACTION, action, ""))?;
        return Ok(Need::Have(bits));
    }
    let of_container = entry.on == Kind::Container;
    Ok(match entry.access.service_sas.as_bytes() {
        [b'l', ..] if of_container => Need::Have(READ | EXECUTE),
        _ if of_container => Need::Role,
        [b'e', ..] => Need::Reach,
        [b'r', ..] => Need::Have(READ),
        [b'd', ..] => Need::Remove,
        b"cwm" => Need::Rename,
        // Only a superuser chooses the owner; the owner may choose a group of its own, and groups
        // have no members here.
        _ if sets_owner(call) => Need::Role,
        [b'p', ..] => Need::Own,
        _ => Need::Have(WRITE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::blob::testing;
    use crate::register;
    use smalt_protocol::Service;

    type Pairs = [(&'static str, &'static str)];

    fn met(id: &str, query: &Pairs, headers: &Pairs, held: &str) -> bool {
        let entry = register::by_id(Service::Blob, id).unwrap();
        let mut call = testing::call(query, headers);
        if !matches!(entry.verb, register::Verb::Put) {
            call.method = http::Method::GET;
        }
        let held = Permissions::parse(held).unwrap();
        are_met(&call, &entry.access, entry.access.service_sas, held)
    }

    #[test]
    fn deleted_resource_decides_the_permission() {
        let version = [("versionid", "2020-01-01T00:00:00.0000000Z")];
        let snapshot = [("snapshot", "2020-01-01T00:00:00.0000000Z")];
        let permanent = [("deletetype", "permanent"), version[0]];
        for (query, letter) in [
            (&[][..], 'd'),
            (&snapshot[..], 'd'),
            (&version[..], 'x'),
            (&permanent[..], 'y'),
        ] {
            for held in ["d", "x", "y", "rwacl"] {
                let expected = held.contains(letter);
                assert_eq!(
                    met("Blob_Delete", query, &[], held),
                    expected,
                    "{query:?} {held}"
                );
            }
        }
    }

    /// "Create a service SAS": `d` permits breaking a lease since 2017-07-29.
    #[test]
    fn version_decides_which_permission_breaks_a_lease() {
        for id in ["Blob_BreakLease", "Container_BreakLease"] {
            let access = register::by_id(Service::Blob, id).unwrap().access;
            for (version, held, expected) in [
                (smalt_protocol::ApiVersion::V2017_04_17, "d", false),
                (smalt_protocol::ApiVersion::V2017_07_29, "d", true),
                (smalt_protocol::ApiVersion::V2017_04_17, "w", true),
            ] {
                let mut call = testing::call(&[], &[]);
                call.version = version;
                let held = Permissions::parse(held).unwrap();
                assert_eq!(are_met(&call, &access, access.account_sas, held), expected);
            }
        }
    }

    #[test]
    fn tags_policies_and_holds_need_their_own_letters() {
        let listed = [("include", "metadata,tags")];
        let in_capitals = [("INCLUDE", "copy"), ("include", "Tags")];
        for (id, query, headers, short, enough) in [
            (
                "Blob_Download",
                &[][..],
                &[("x-ms-if-tags", "a='b'")][..],
                "r",
                "rt",
            ),
            ("Blob_Delete", &[], &[("x-ms-if-tags", "a='b'")], "d", "dt"),
            (
                "BlockBlob_Upload",
                &[],
                &[("x-ms-tags", "a=b")],
                "cw",
                "cwt",
            ),
            (
                "BlockBlob_CommitBlockList",
                &[],
                &[("x-ms-tags", "a=b")],
                "w",
                "wt",
            ),
            ("Container_ListBlobFlatSegment", &listed[..], &[], "l", "lt"),
            (
                "Container_ListBlobFlatSegment",
                &in_capitals[..],
                &[],
                "l",
                "lt",
            ),
            (
                "BlockBlob_Upload",
                &[],
                &[("x-ms-legal-hold", "true")],
                "w",
                "wi",
            ),
            (
                "BlockBlob_Upload",
                &[],
                &[("x-ms-immutability-policy-mode", "unlocked")],
                "w",
                "wi",
            ),
        ] {
            assert!(!met(id, query, headers, short), "{id} {short}");
            assert!(met(id, query, headers, enough), "{id} {enough}");
        }
    }
}
