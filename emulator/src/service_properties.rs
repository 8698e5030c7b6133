//! A cache of decoded service properties.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use smalt_protocol::Service;
use smalt_protocol::xml::ServiceProperties;

use crate::keys;
use crate::records::Record;
use crate::store::{Store, StoreResult};

/// Decoded properties with the bytes that they were decoded from. A request reads the record
/// itself, so that it sees published state; equal bytes are not decoded again. There is one entry
/// for each service whose properties were ever set.
#[derive(Default)]
pub struct PropertiesCache(Mutex<BTreeMap<Vec<u8>, Decoded>>);

struct Decoded {
    record: Bytes,
    properties: Arc<ServiceProperties>,
}

impl PropertiesCache {
    /// Returns the properties of a service; `None` when they were never set.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn load(
        &self,
        store: &Store,
        account: &str,
        service: Service,
    ) -> StoreResult<Option<Arc<ServiceProperties>>> {
        let key = keys::service(account, service.as_str());
        let Some(record) = store.read(|view| view.get(&key))? else {
            return Ok(None);
        };
        let mut decoded = self.0.lock();
        if let Some(known) = decoded.get(&key)
            && known.record == record
        {
            return Ok(Some(Arc::clone(&known.properties)));
        }
        let properties = Arc::new(ServiceProperties::decode(&record)?);
        let fresh = Decoded {
            record,
            properties: Arc::clone(&properties),
        };
        decoded.insert(key, fresh);
        Ok(Some(properties))
    }
}
