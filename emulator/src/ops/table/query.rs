//! Query Entities: returns the entities of a table that match a filter, in key order and in pages.
//!
//! Source: "Query Entities". A filter with bounds on the keys limits what is scanned.
//!
//! ```http
//! GET /devstoreaccount1/Customers()?$filter=PartitionKey%20eq%20'Berlin'&$top=1
//!
//! 200 OK
//! x-ms-continuation-NextPartitionKey: 1!8!QmVybGlu
//! x-ms-continuation-NextRowKey: 1!4!MTg-
//! ```

use smalt_protocol::table::filter::Filter;
use smalt_protocol::table::format::Kind;
use smalt_protocol::table::query::Select;
use smalt_protocol::table::{Format, continuation, payload};
use smalt_protocol::{StorageError, Timestamp};

use crate::call::Call;
use crate::operation::{Read, Weight};
use crate::ops::table::answer;
use crate::ops::table::name::TableRef;
use crate::ops::table::parameters;
use crate::ops::table::range::KeyRange;
use crate::ops::table::scan::{self, Page, Span};
use crate::reply::Reply;
use crate::store::{Store, View};

/// The Query Entities operation.
pub struct QueryEntities {
    format: Format,
    table: TableRef,
    most: usize,
    select: Option<Select>,
    filter: Option<Filter>,
    /// The signature's range, without the earlier pages.
    range: KeyRange,
}

impl QueryEntities {
    fn spans(&self) -> Vec<Span> {
        let Some(filter) = &self.filter else {
            return vec![Span::whole(self.range.clone())];
        };
        Span::of_filter(filter, &self.range)
    }
}

impl Read for QueryEntities {
    type Output = (Page, Timestamp);

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        parameters::check_options(call)?;
        Ok(QueryEntities {
            format: answer::format(call)?,
            table: TableRef::of(call)?,
            most: parameters::top(call)?,
            select: parameters::select(call)?,
            filter: parameters::filter(call)?,
            range: match parameters::next_entity(call)? {
                Some(start) => KeyRange::of_signature(call).and(&start),
                None => KeyRange::of_signature(call),
            },
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Self::Output, StorageError> {
        let table = self.table.find(view)?;
        let filter = self.filter.as_ref();
        let page = scan::page(view, table.generation, &self.spans(), self.most, filter)?;
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
        let (next_partition, next_row) = page.next.unzip();
        let token = |key: Option<String>| key.map(|key| continuation::write(&key));
        Ok(answer::document(200, self.format, Kind::Feed, bytes)
            .maybe("x-ms-continuation-nextpartitionkey", token(next_partition))
            .maybe("x-ms-continuation-nextrowkey", token(next_row)))
    }
}
