//! Create Table: creates an empty table.
//!
//! Source: "Create Table". Names are compared case-insensitively and stored as written.
//!
//! ```http
//! POST /devstoreaccount1/Tables
//!
//! {"TableName":"Customers"}
//!
//! 201 Created
//! ```

use bytes::Bytes;
use smalt_protocol::limits::XML_BODY_BYTES_MAX;
use smalt_protocol::table::format::Kind;
use smalt_protocol::table::key::table_path;
use smalt_protocol::table::{BodyFormat, TableName, payload};
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::operation::{Takes, Write};
use crate::ops::table::answer::{self, Preference};
use crate::ops::table::name::TableRef;
use crate::records::{Record, TableRecord};
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};

/// The Create Table operation.
pub struct CreateTable {
    account: String,
    body_format: BodyFormat,
    being_deleted_s: u64,
    table: Option<TableRef>,
}

impl Write for CreateTable {
    type Checked = TableRef;
    type Output = (TableRef, Timestamp);

    fn parse(call: &Call) -> Result<Self, StorageError> {
        answer::format(call)?;
        Ok(CreateTable {
            account: call.account().to_owned(),
            body_format: answer::body_format(call)?,
            being_deleted_s: call.being_deleted_s,
            table: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(XML_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.table = Some(TableRef {
            account: self.account.clone(),
            name: TableName::parse(&payload::read_table_name(self.body_format, &document)?)?,
        });
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<TableRef, StorageError> {
        let table = self.table.clone().ok_or(ErrorCode::InvalidInput)?;
        let deleted_at = match table.load(view)? {
            None => return Ok(table),
            Some(found) => found.deleted_at.ok_or(ErrorCode::TableAlreadyExists)?,
        };
        if stamp.now < deleted_at.plus_s(self.being_deleted_s) {
            return Err(ErrorCode::TableBeingDeleted.into());
        }
        Ok(table)
    }

    fn apply(
        self,
        table: TableRef,
        tx: &mut Transaction<'_>,
        stamp: &Stamp,
    ) -> Result<(TableRef, Timestamp), StorageError> {
        let record = TableRecord {
            name: table.name.as_str().to_owned(),
            generation: stamp.tick.ticks(),
            policies: Vec::new(),
            deleted_at: None,
        };
        record.save(tx, table.key())?;
        Ok((table, stamp.now))
    }

    fn render((table, now): (TableRef, Timestamp), call: &Call) -> Result<Reply, StorageError> {
        let name = table.name.as_str();
        let endpoint = call.service_endpoint();
        let address = format!("{endpoint}{}", table_path(name));
        let preference = Preference::of(call);
        let reply = if preference == Preference::NoContent {
            answer::empty(204).header("dataserviceid", &address)
        } else {
            let format = answer::format(call)?;
            let scope = answer::scope(call, &endpoint, now);
            let bytes = payload::write_table(format, &scope, name);
            answer::document(201, format, Kind::Entry, bytes)
        };
        let applied = preference.applied();
        Ok(reply
            .header("location", &address)
            .maybe("preference-applied", applied))
    }
}
