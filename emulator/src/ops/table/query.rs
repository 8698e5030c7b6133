//! Query Entities: the entities of a table that a filter accepts, in the order of their keys, in
//! pages.
//!
//! Source: "Query Entities". A filter that bounds the keys bounds what is looked at.
//!
//! ```http
//! GET /devstoreaccount1/Customers()?$filter=PartitionKey%20eq%20'Berlin'&$top=1
//!
//! 200 OK
//! x-ms-continuation-NextPartitionKey: 1!8!QmVybGlu
//! x-ms-continuation-NextRowKey: 1!4!MTg-
//! ```

use smalt_protocol::table::format::Kind;
use smalt_protocol::table::query::Select;
use smalt_protocol::table::{Format, payload};
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::operation::Read;
use crate::ops::table::answer;
use crate::ops::table::name::TableRef;
use crate::ops::table::parameters;
use crate::ops::table::range::KeyRange;
use crate::ops::table::scan::{self, Page};
use crate::reply::Reply;
use crate::store::{Store, View};

/// Query Entities.
pub struct QueryEntities {
    format: Format,
    table: TableRef,
    most: usize,
    select: Option<Select>,
    range: KeyRange,
}

impl Read for QueryEntities {
    type Output = (Page, Timestamp);

    fn parse(call: &Call) -> Result<Self, StorageError> {
        parameters::check_supported(call)?;
        Ok(QueryEntities {
            format: answer::format(call)?,
            table: TableRef::of(call)?,
            most: parameters::top(call)?,
            select: parameters::select(call)?,
            range: KeyRange::of_signature(call),
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError> {
        let table = self.table.find(view)?;
        let keys = self.range.keys(table.generation);
        let page = scan::page(view, keys, self.most, |_| true)?;
        Ok((page, now))
    }

    fn render(
        self,
        (page, now): Self::Output,
        call: &Call,
        _: &Store,
    ) -> Result<Reply, StorageError> {
        let endpoint = call.service_endpoint();
        let scope = answer::scope(call, &endpoint, now);
        let (table, select) = (self.table.name.as_str(), self.select.as_ref());
        let bytes = payload::write_entities(self.format, &scope, table, select, &page.entities);
        Ok(answer::document(200, self.format, Kind::Feed, bytes))
    }
}
