//! Get and Set Blob/Queue Service Properties: logging, metrics, CORS and, for blobs, soft delete,
//! static website and default version.
//!
//! Sources: "Get Blob Service Properties", "Set Blob Service Properties" and their counterparts for
//! queues. Set changes only the sections in the request, and makes the containers that logging and
//! the website need.
//!
//! ```http
//! PUT /devstoreaccount1/?restype=service&comp=properties
//!
//! <StorageServiceProperties><Cors /></StorageServiceProperties>
//!
//! 202 Accepted
//! ```

use std::sync::Arc;

use bytes::Bytes;
use smalt_protocol::limits::XML_BODY_BYTES_MAX;
use smalt_protocol::xml::{ServiceProperties, ServicePropertiesUpdate};
use smalt_protocol::{Service, StorageError, Timestamp};

use crate::call::Call;
use crate::config::AccountSettings;
use crate::keys;
use crate::operation::{Read, Takes, Write};
use crate::ops::container::system;
use crate::records::Record;
use crate::reply::Reply;
use crate::store::{Stamp, Store, Transaction, View};

/// The account and service that properties belong to.
pub struct Owner {
    account: String,
    service: Service,
}

impl Owner {
    /// Returns account and service of a call.
    pub fn of(call: &Call) -> Self {
        Owner {
            account: call.account().to_owned(),
            service: call.service(),
        }
    }

    fn key(&self) -> Vec<u8> {
        keys::service(&self.account, self.service.as_str())
    }

    /// Loads the properties, or returns those of a new account.
    pub fn load(&self, view: &dyn View) -> Result<ServiceProperties, StorageError> {
        Ok(ServiceProperties::load(view, &self.key())?.unwrap_or_default())
    }
}

/// The Get Blob/Queue Service Properties operation.
pub struct GetServiceProperties(Owner);

impl Read for GetServiceProperties {
    type Output = ServiceProperties;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(GetServiceProperties(Owner::of(call)))
    }

    fn read(&self, view: &dyn View, _: Timestamp) -> Result<ServiceProperties, StorageError> {
        self.0.load(view)
    }

    fn render(
        self,
        found: ServiceProperties,
        call: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        let service = self.0.service;
        let no_cache = (service == Service::Queue).then_some("no-cache");
        Ok(Reply::xml(200, found.render(service, call.version)).maybe("cache-control", no_cache))
    }
}

/// The Set Blob/Queue Service Properties operation.
pub struct SetServiceProperties {
    owner: Owner,
    settings: Arc<AccountSettings>,
    update: ServicePropertiesUpdate,
}

impl Write for SetServiceProperties {
    type Checked = ServiceProperties;
    type Output = ();

    fn parse(call: &Call) -> Result<Self, StorageError> {
        Ok(SetServiceProperties {
            owner: Owner::of(call),
            settings: call.settings.clone(),
            update: ServicePropertiesUpdate::default(),
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(XML_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.update = ServicePropertiesUpdate::read(&document, self.owner.service)?;
        Ok(())
    }

    fn check(&self, view: &dyn View, _: &Stamp) -> Result<ServiceProperties, StorageError> {
        self.owner.load(view)
    }

    fn apply(
        self,
        mut properties: ServiceProperties,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(), StorageError> {
        self.update.apply(&mut properties);
        let logging = &properties.logging;
        let needed = [
            (
                system::LOGS,
                logging.read || logging.write || logging.delete,
            ),
            (system::WEB, properties.static_website.is_some()),
        ];
        for (container, _) in needed.into_iter().filter(|(_, needed)| *needed) {
            let name = system::name(&self.owner.account, self.settings.clone(), container);
            system::make_missing(tx, &name, stamp)?;
        }
        properties.save(tx, self.owner.key())?;
        Ok(())
    }

    fn render((): (), _: &Call) -> Result<Reply, StorageError> {
        Ok(Reply::new(202))
    }
}
