//! Get Blob/Queue Service Stats: reports the secondary's replication lag, which is always zero.
//!
//! Source: "Get Blob Service Stats". Only the secondary endpoint supports it.
//!
//! ```http
//! GET /devstoreaccount1-secondary/?restype=service&comp=stats
//!
//! 200 OK
//!
//! <?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication>...
//! ```

use smalt_protocol::xml::XmlWriter;
use smalt_protocol::{Service, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::reply::Reply;
use crate::store::{Store, View};

/// The Get Blob/Queue Service Stats operation.
pub struct GetServiceStats;

impl Read for GetServiceStats {
    type Output = Timestamp;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        if call.target.secondary {
            Ok(GetServiceStats)
        } else {
            Err(StorageError::no_such_operation("comp", "stats"))
        }
    }

    fn read(&self, _: &dyn View, now: Timestamp) -> Result<Timestamp, StorageError> {
        Ok(now)
    }

    fn render(self, now: Timestamp, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let mut xml = XmlWriter::new();
        xml.open("StorageServiceStats");
        xml.open("GeoReplication");
        xml.element("Status", "live");
        xml.element("LastSyncTime", &now.rfc1123());
        xml.close("GeoReplication");
        xml.close("StorageServiceStats");
        let no_cache = (call.service() == Service::Queue).then_some("no-cache");
        Ok(Reply::xml(200, xml.finish()).maybe("cache-control", no_cache))
    }
}
