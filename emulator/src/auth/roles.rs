//! Azure's built-in roles for data, and what their holders may do.
//!
//! A role is a set of permission letters of an account SAS for each level, so that the register
//! alone says what an operation needs. `p` at the level of containers permits access policies.
//! Sources: "Azure built-in roles for Storage"; "Authorize with Microsoft Entra ID", permissions
//! for operations of each service.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use smalt_protocol::Service;
use smalt_protocol::signing::permissions::Permissions;
use uuid::Uuid;

/// A built-in role, by its name on Azure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Role {
    /// Manages the services and their containers, queues and tables, but not their data.
    #[serde(rename = "Storage Account Contributor")]
    AccountContributor,
    /// Does everything with blobs; no access control list applies.
    #[serde(rename = "Storage Blob Data Owner")]
    BlobDataOwner,
    /// Reads, writes and deletes containers and blobs.
    #[serde(rename = "Storage Blob Data Contributor")]
    BlobDataContributor,
    /// Reads and lists containers and blobs.
    #[serde(rename = "Storage Blob Data Reader")]
    BlobDataReader,
    /// Requests user delegation keys.
    #[serde(rename = "Storage Blob Delegator")]
    BlobDelegator,
    /// Reads, writes and deletes queues and messages.
    #[serde(rename = "Storage Queue Data Contributor")]
    QueueDataContributor,
    /// Reads queues and peeks at messages.
    #[serde(rename = "Storage Queue Data Reader")]
    QueueDataReader,
    /// Peeks at, takes and deletes messages.
    #[serde(rename = "Storage Queue Data Message Processor")]
    QueueMessageProcessor,
    /// Adds messages.
    #[serde(rename = "Storage Queue Data Message Sender")]
    QueueMessageSender,
    /// Requests user delegation keys.
    #[serde(rename = "Storage Queue Delegator")]
    QueueDelegator,
    /// Reads, writes and deletes tables and entities.
    #[serde(rename = "Storage Table Data Contributor")]
    TableDataContributor,
    /// Reads tables and entities.
    #[serde(rename = "Storage Table Data Reader")]
    TableDataReader,
    /// Requests user delegation keys.
    #[serde(rename = "Storage Table Delegator")]
    TableDelegator,
}

/// A role of a user, for the whole account or one resource of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleAssignment {
    /// Object id of the user, group, application or managed identity.
    pub principal: Uuid,
    /// What it may do.
    pub role: Role,
    /// The container, queue or table to which the role is limited; `None` for the whole account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

/// What a user may do with a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Letters for the service itself.
    pub(super) service: Permissions,
    /// Letters for containers, queues and tables.
    pub(super) containers: Permissions,
    /// Letters for blobs, messages and entities.
    pub(super) objects: Permissions,
    /// Whether it gives user delegation keys.
    pub(super) delegates: bool,
}

impl Role {
    /// Returns the service, `None` for every one; the letters for the service, for containers and
    /// for objects; and whether the role gives user delegation keys.
    fn grants(self) -> (Option<Service>, [&'static str; 3], bool) {
        const BLOB: Option<Service> = Some(Service::Blob);
        const QUEUE: Option<Service> = Some(Service::Queue);
        const TABLE: Option<Service> = Some(Service::Table);
        match self {
            Role::AccountContributor => (None, ["rwl", "rcwdp", ""], true),
            Role::BlobDataOwner => (BLOB, ["l", "rcwdlftp", "racwdxyltfmeopi"], true),
            Role::BlobDataContributor => (BLOB, ["l", "rcwdl", "racwdlme"], true),
            Role::BlobDataReader => (BLOB, ["l", "rl", "rle"], true),
            Role::BlobDelegator => (BLOB, [""; 3], true),
            Role::QueueDataContributor => (QUEUE, ["l", "rcwd", "rapud"], true),
            Role::QueueDataReader => (QUEUE, ["l", "r", "r"], false),
            Role::QueueMessageProcessor => (QUEUE, ["", "", "rp"], false),
            Role::QueueMessageSender => (QUEUE, ["", "", "a"], false),
            Role::QueueDelegator => (QUEUE, [""; 3], true),
            Role::TableDataContributor => (TABLE, ["", "lcwd", "raud"], true),
            Role::TableDataReader => (TABLE, ["", "l", "r"], false),
            Role::TableDelegator => (TABLE, [""; 3], true),
        }
    }
}

impl Held {
    const ALL: Held = Held {
        service: Permissions::ALL,
        containers: Permissions::ALL,
        objects: Permissions::ALL,
        delegates: true,
    };
    /// Nothing.
    pub(super) const NONE: Held = Held {
        service: Permissions::NONE,
        containers: Permissions::NONE,
        objects: Permissions::NONE,
        delegates: false,
    };

    /// Returns what a user may do with the account, and with those of its containers, queues or
    /// tables that `reaches` names; everything without assignments.
    pub fn of(
        assigned: Option<&BTreeSet<RoleAssignment>>,
        user: Uuid,
        service: Service,
        reaches: impl Fn(&str) -> bool,
    ) -> Self {
        let Some(assigned) = assigned else {
            return Self::ALL;
        };
        let mut held = Self::NONE;
        for one in assigned.iter().filter(|one| one.principal == user) {
            let (of, [at_service, containers, objects], delegates) = one.role.grants();
            let is_whole = one.resource.is_none();
            if of.is_some_and(|of| of != service)
                || !(is_whole || one.resource.as_deref().is_some_and(&reaches))
            {
                continue;
            }
            held.containers = held.containers.with(containers);
            held.objects = held.objects.with(objects);
            if is_whole {
                held.service = held.service.with(at_service);
                held.delegates |= delegates;
            }
        }
        held
    }

    /// Returns whether it has a permission letter for blobs, messages or entities.
    pub fn may(&self, letter: char) -> bool {
        self.objects.contains(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_add_up_within_their_reach() {
        let (user, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let held = |assigned: Option<&BTreeSet<RoleAssignment>>, name: &str| {
            Held::of(assigned, user, Service::Blob, |limit| limit == name)
        };
        assert_eq!(held(None, "a"), Held::ALL);
        let assign = |principal, role, resource: Option<&str>| RoleAssignment {
            principal,
            role,
            resource: resource.map(str::to_owned),
        };
        let assigned = BTreeSet::from([
            assign(user, Role::BlobDataReader, None),
            assign(user, Role::BlobDataContributor, Some("a")),
            assign(user, Role::QueueDataContributor, None),
            assign(other, Role::BlobDataOwner, None),
        ]);
        let (inside, outside) = (held(Some(&assigned), "a"), held(Some(&assigned), "b"));
        assert!(inside.may('w') && inside.may('r') && !inside.may('t') && !inside.may('p'));
        assert!(outside.may('r') && !outside.may('w') && outside.delegates);
        assert_eq!(held(Some(&assigned), ""), outside);
        assert_eq!(held(Some(&BTreeSet::new()), "a"), Held::NONE);
    }
}
