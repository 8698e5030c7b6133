//! Filesystem operations: file systems are containers, with another notation of their metadata.
//!
//! Sources: "Filesystem - Create", "Filesystem - Get Properties", "Filesystem - Set Properties",
//! "Filesystem - List".
//!
//! ```http
//! HEAD /devstoreaccount1/lake?resource=filesystem
//!
//! 200 OK
//! x-ms-namespace-enabled: true
//! x-ms-properties: team=YmlsbGluZw==
//! ```

use serde_json::json;
use smalt_protocol::{StorageError, Timestamp};

use super::list::{CONTINUATION, json_reply};
use crate::call::Call;
use crate::operation::{Read, Weight, Write};
use crate::ops::container::create::{CreateContainer, Created};
use crate::ops::container::get_properties::GetContainerProperties;
use crate::ops::service::list_containers::{ListContainers, Page};
use crate::records::ContainerRecord;
use crate::reply::Reply;
use crate::store::{Stamp, Store, Transaction, View};

const ENABLED: (&str, &str) = ("x-ms-namespace-enabled", "true");

/// The Filesystem - Create operation.
pub struct CreateFilesystem(CreateContainer);

impl Write for CreateFilesystem {
    type Checked = ();
    type Output = Created;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        CreateContainer::parse(call).map(CreateFilesystem)
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<(), StorageError> {
        self.0.check(view, stamp)
    }

    fn apply(
        self,
        checked: (),
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<Created, StorageError> {
        self.0.apply(checked, tx, stamp)
    }

    fn render(created: Created, call: &Call) -> Result<Reply, StorageError> {
        let (name, value) = ENABLED;
        Ok(CreateContainer::render(created, call)?.header(name, value))
    }
}

/// The Filesystem - Get Properties operation.
pub struct GetFilesystemProperties(GetContainerProperties);

impl Read for GetFilesystemProperties {
    type Output = ContainerRecord;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        GetContainerProperties::parse(call).map(GetFilesystemProperties)
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<ContainerRecord, StorageError> {
        self.0.read(view, now)
    }

    fn render(self, found: ContainerRecord, _: &Call, _: &Store) -> Result<Reply, StorageError> {
        let (name, value) = ENABLED;
        Ok(Reply::new(200)
            .version(found.etag, found.last_modified)
            .header(name, value)
            .header("x-ms-properties", found.metadata.properties()))
    }
}

/// The Filesystem - List operation.
pub struct ListFilesystems(ListContainers);

impl Read for ListFilesystems {
    type Output = Page;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        ListContainers::parse(call).map(ListFilesystems)
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Page, StorageError> {
        self.0.read(view, now)
    }

    fn render(self, page: Page, _: &Call, _: &Store) -> Result<Reply, StorageError> {
        let (shown, next) = self.0.names(page);
        let entry = |(name, found): (String, ContainerRecord)| {
            json!({
                "name": name,
                "etag": found.etag.to_string(),
                "lastModified": found.last_modified.rfc1123(),
                "DefaultEncryptionScope": "$account-encryption-key",
                "DenyEncryptionScopeOverride": false,
            })
        };
        let filesystems: Vec<_> = shown.into_iter().map(entry).collect();
        let reply = json_reply(&json!({ "filesystems": filesystems }));
        Ok(reply.maybe(CONTINUATION, next))
    }
}
