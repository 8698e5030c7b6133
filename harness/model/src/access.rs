//! Stored access policies and service SAS. Sources: "Define a stored access policy", "Create a
//! service SAS", "Set Container ACL", "Set Queue ACL", "Set Table ACL".

use smalt_protocol::{ErrorCode, Service};

use crate::expected::{Answer, Expected, Refusal};
use crate::state::Model;
use crate::vocabulary::tables::TableExpected;
use crate::vocabulary::{AccessOperation, Right, Terms};

impl Model {
    /// Returns the stored policy of a container, queue or table.
    pub fn policy(&self, service: Service, name: &str) -> Option<Terms> {
        self.policies.get(&(service, key(service, name))).copied()
    }

    /// Returns whether the container, queue or table exists.
    pub fn has(&self, service: Service, name: &str) -> bool {
        match service {
            Service::Blob => self.containers.contains_key(name),
            Service::Queue => self.queues.contains_key(name),
            Service::Table => self.tables.names().any(|it| it == key(service, name)),
        }
    }

    /// Forgets the policy of a resource that was deleted.
    pub(crate) fn forget_policy(&mut self, service: Service, name: &str) {
        self.policies.remove(&(service, key(service, name)));
    }

    pub(crate) fn access(
        &mut self,
        service: Service,
        name: &str,
        operation: AccessOperation,
    ) -> Expected {
        let answer = match operation {
            AccessOperation::Set(policy) => self.set_policy(service, name, policy),
            AccessOperation::Read { by_policy, own } => {
                self.read_signed(service, name, by_policy, own)
            }
        };
        match (service, answer) {
            (Service::Table, answer) => {
                let (status, code) = match answer {
                    Ok(expected) => (expected.status, None),
                    Err(Refusal(code, _)) => (code.status(), Some(code)),
                };
                let expected = TableExpected {
                    status,
                    code,
                    ..TableExpected::default()
                };
                expected.into()
            }
            (_, answer) => crate::expected::settle(answer),
        }
    }

    fn set_policy(&mut self, service: Service, name: &str, policy: Option<Terms>) -> Answer {
        self.check_is_there(service, name)?;
        let key = (service, key(service, name));
        match policy {
            Some(policy) => self.policies.insert(key, policy),
            None => self.policies.remove(&key),
        };
        match service {
            Service::Blob => self.touch_container(name),
            Service::Queue | Service::Table => Ok(Expected::ok(204)),
        }
    }

    fn check_is_there(&self, service: Service, name: &str) -> Result<(), Refusal> {
        let code = match service {
            _ if self.has(service, name) => return Ok(()),
            Service::Blob => ErrorCode::ContainerNotFound,
            Service::Queue => ErrorCode::QueueNotFound,
            Service::Table => ErrorCode::TableNotFound,
        };
        Err(code.into())
    }

    /// The window comes before the permission, and both before the resource.
    fn read_signed(&self, service: Service, name: &str, by_policy: bool, own: Terms) -> Answer {
        let refused = ErrorCode::AuthenticationFailed;
        let stored = self.policy(service, name);
        let stored = match by_policy {
            true => stored.ok_or(refused)?,
            false => Terms::default(),
        };
        let terms = own.merged(stored).ok_or(refused)?;
        let (Some(end_s), Some(right)) = (terms.expiry_s, terms.right) else {
            return Err(refused.into());
        };
        let begin_s = terms.start_s.unwrap_or(0);
        if !(begin_s..end_s).contains(&self.now_s) {
            return Err(refused.into());
        }
        if right != Right::Read {
            return Err(ErrorCode::AuthorizationPermissionMismatch.into());
        }
        self.check_is_there(service, name)?;
        Ok(Expected::ok(200))
    }
}

/// Returns the name in the map of policies: names of tables are compared without regard to case.
fn key(service: Service, name: &str) -> String {
    match service {
        Service::Table => name.to_ascii_lowercase(),
        Service::Blob | Service::Queue => name.to_owned(),
    }
}

impl Terms {
    /// Returns the fields of both; `None` if one is in both.
    pub fn merged(self, other: Terms) -> Option<Terms> {
        fn one<T>(own: Option<T>, other: Option<T>) -> Option<Option<T>> {
            let is_twice = own.is_some() && other.is_some();
            (!is_twice).then_some(own.or(other))
        }
        Some(Terms {
            start_s: one(self.start_s, other.start_s)?,
            expiry_s: one(self.expiry_s, other.expiry_s)?,
            right: one(self.right, other.right)?,
        })
    }
}
