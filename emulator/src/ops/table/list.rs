//! Query Tables: lists the tables of an account, in pages, or returns one by name.
//!
//! Source: "Query Tables".
//!
//! ```http
//! GET /devstoreaccount1/Tables?$top=1
//!
//! 200 OK
//! x-ms-continuation-NextTableName: 1!44!Y3VzdG9tZXJzATAxZDc2NmJjNTJhOTdiYTA-
//!
//! {"odata.metadata":"...","value":[{"TableName":"Accounts"}]}
//! ```

use std::ops::ControlFlow;

use smalt_protocol::table::continuation::{self, TablePosition};
use smalt_protocol::table::filter::Filter;
use smalt_protocol::table::format::Kind;
use smalt_protocol::table::name::TableRow;
use smalt_protocol::table::query::Select;
use smalt_protocol::table::{Format, Resource as Address, payload};
use smalt_protocol::{ErrorCode, StorageError, Timestamp};

use crate::call::Call;
use crate::keys;
use crate::operation::{Read, Weight};
use crate::ops::table::answer;
use crate::ops::table::name::TableRef;
use crate::ops::table::{parameters, scan};
use crate::records::{Record, TableRecord};
use crate::reply::Reply;
use crate::store::{Store, View};
use crate::target::Resource;

/// The Query Tables operation.
pub struct QueryTables {
    account: String,
    format: Format,
    only: Option<TableRef>,
    most: usize,
    select: Option<Select>,
    filter: Option<Filter>,
    from: String,
}

/// A page of tables.
pub struct Page {
    tables: Vec<TableRecord>,
    next: Option<TableRecord>,
    now: Timestamp,
}

impl QueryTables {
    fn scan(&self, view: &dyn View, page: &mut Page) -> Result<(), StorageError> {
        let from = keys::table(&self.account, &self.from);
        let to = keys::after(keys::table(&self.account, ""));
        let mut failed = None;
        let mut seen = 0;
        view.scan(&from, &to, &mut |_, value| {
            let table = match TableRecord::decode(value) {
                Ok(table) => table,
                Err(error) => {
                    failed = Some(error);
                    return ControlFlow::Break(());
                }
            };
            if table.deleted_at.is_some() {
                return ControlFlow::Continue(());
            }
            if page.tables.len() == self.most || seen == scan::SEEN_MAX {
                page.next = Some(table);
                return ControlFlow::Break(());
            }
            seen += 1;
            let filter = self.filter.as_ref();
            if filter.is_none_or(|filter| filter.matches(&TableRow(&table.name))) {
                page.tables.push(table);
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}

impl Read for QueryTables {
    type Output = Page;

    const WEIGHT: Weight = Weight::Long;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        parameters::check_options(call)?;
        let is_one = matches!(
            &call.target.resource,
            Resource::Table(Ok(Address::Table(_)))
        );
        Ok(QueryTables {
            account: call.account().to_owned(),
            format: answer::format(call)?,
            only: is_one.then(|| TableRef::of(call)).transpose()?,
            most: parameters::top(call)?,
            select: parameters::select(call)?,
            filter: parameters::filter(call)?,
            from: parameters::next_table(call)?.unwrap_or_default(),
        })
    }

    fn read(&self, view: &dyn View, now: Timestamp) -> Result<Page, StorageError> {
        let mut page = Page {
            tables: Vec::new(),
            next: None,
            now,
        };
        match &self.only {
            Some(table) => {
                let found = table.find_or(view, ErrorCode::ResourceNotFound)?;
                page.tables.push(found);
            }
            // With `$top=0` the page is empty: see `scan::page`.
            None if self.most == 0 => {}
            None => self.scan(view, &mut page)?,
        }
        Ok(page)
    }

    fn render(self, page: Page, call: &Call, _: &Store) -> Result<Reply, StorageError> {
        let endpoint = call.service_endpoint();
        let scope = answer::scope(call, &endpoint, page.now);
        let mut names = page.tables.iter().map(|table| table.name.as_str());
        if self.only.is_some() {
            let name = names.next().unwrap_or_default();
            let bytes = payload::write_table(self.format, &scope, name);
            return Ok(answer::document(200, self.format, Kind::Entry, bytes));
        }
        let select = self.select.as_ref();
        let bytes = payload::write_tables(self.format, &scope, select, names);
        let next = page.next.map(|table| {
            continuation::write_table(&TablePosition {
                key: table.name.to_ascii_lowercase(),
                created: table.generation,
            })
        });
        Ok(answer::document(200, self.format, Kind::Feed, bytes)
            .maybe("x-ms-continuation-nexttablename", next))
    }
}
