//! Containers: create, delete, properties, public access.

use azure_core::http::Response;
use azure_storage_blob::models::{
    BlobContainerClientCreateOptions, BlobContainerClientDeleteOptions,
    BlobContainerClientGetAccessPolicyOptions, BlobContainerClientGetPropertiesOptions,
    BlobContainerClientSetAccessPolicyOptions, PublicAccessType,
};

use super::answer::Answer;
use super::begin::ContainerClient;
use crate::error::ErrorKind;
use crate::policy::{Repeat, options};
use crate::port::{ContainerProperties, PortResult, PublicAccess, Tag};

impl ContainerClient {
    /// Create Container. Returns whether it was created, or `false` if it already exists, and its
    /// ETag if it was.
    pub(crate) async fn create(&self, access: PublicAccess) -> PortResult<(bool, Option<Tag>)> {
        let (call, client) = self.begin("Create Container", Repeat::Idempotent)?;
        let asked = BlobContainerClientCreateOptions {
            access: of(access),
            method_options: options(&call),
            ..Default::default()
        };
        let created = client.create(Some(asked)).await;
        match call.check(created) {
            Err(error) if error.kind == ErrorKind::AlreadyExists => Ok((false, None)),
            Err(error) => Err(error),
            Ok(response) => {
                let etag = Answer::read(response.headers()).etag;
                Ok((true, etag.map(Tag::from_text)))
            }
        }
    }

    pub(crate) async fn delete(&self) -> PortResult<()> {
        let (call, client) = self.begin("Delete Container", Repeat::Removal)?;
        let asked = BlobContainerClientDeleteOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let deleted = client.delete(Some(asked)).await;
        call.removed(deleted, |error| {
            let code = error.code.as_deref();
            error.kind == ErrorKind::NotFound || code == Some("ContainerBeingDeleted")
        })
    }

    pub(crate) async fn head(&self) -> PortResult<ContainerProperties> {
        let (call, client) = self.begin("Get Container Properties", Repeat::Read)?;
        let asked = BlobContainerClientGetPropertiesOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.get_properties(Some(asked)).await)?;
        let answer = Answer::read(response.headers());
        Ok(ContainerProperties {
            etag: answer.tag(&call)?,
            access: match answer.public_access {
                Some("container") => PublicAccess::Container,
                Some("blob") => PublicAccess::Blob,
                _ => PublicAccess::Private,
            },
            metadata: answer.metadata,
        })
    }

    /// Set Container ACL with the stored access policies that the container has, because a request
    /// without them would remove them.
    pub(crate) async fn set_access(&self, access: PublicAccess) -> PortResult<Tag> {
        let (call, client) = self.begin("Get Container ACL", Repeat::Read)?;
        let asked = BlobContainerClientGetAccessPolicyOptions {
            method_options: options(&call),
            ..Default::default()
        };
        let policies = client.get_access_policy(Some(asked)).await;
        let policies = policies.and_then(Response::into_model);
        let policies = call.check(policies.and_then(TryInto::try_into))?;
        let (call, client) = self.begin("Set Container ACL", Repeat::Idempotent)?;
        let asked = BlobContainerClientSetAccessPolicyOptions {
            access: of(access),
            method_options: options(&call),
            ..Default::default()
        };
        let response = call.check(client.set_access_policy(policies, Some(asked)).await)?;
        Answer::read(response.headers()).tag(&call)
    }
}

fn of(access: PublicAccess) -> Option<PublicAccessType> {
    match access {
        PublicAccess::Private => None,
        PublicAccess::Blob => Some(PublicAccessType::Blob),
        PublicAccess::Container => Some(PublicAccessType::Container),
    }
}
