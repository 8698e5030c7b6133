//! Insert, Update, Merge and Delete Entity, and the updates that insert a missing entity.
//!
//! Sources: "Insert Entity", "Update Entity", "Merge Entity", "Insert Or Replace Entity", "Insert
//! Or Merge Entity", "Delete Entity". With `If-Match`, a request updates; without it, it may
//! insert.
//!
//! ```http
//! POST /devstoreaccount1/Customers
//!
//! {"PartitionKey":"Berlin","RowKey":"17","Name":"Ada"}
//!
//! 201 Created
//! ETag: W/"datetime'2026-11-21T22%3A00%3A00.1234567Z'"
//! ```

use bytes::Bytes;
use http::Method;
use smalt_protocol::limits::BATCH_BODY_BYTES_MAX;
use smalt_protocol::table::entity::EntityBody;
use smalt_protocol::table::format::Kind;
use smalt_protocol::table::key::entity_path;
use smalt_protocol::table::tag::IfMatch;
use smalt_protocol::table::{BodyFormat, Resource as Address, payload};
use smalt_protocol::{ApiVersion, ErrorCode, StorageError};

use crate::call::Call;
use crate::operation::{Takes, Write};
use crate::ops::table::answer::{self, Preference};
use crate::ops::table::change::{Action, Change, Checked, WrittenEntity};
use crate::ops::table::name::TableRef;
use crate::ops::table::range::KeyRange;
use crate::reply::Reply;
use crate::store::{Stamp, Transaction, View};
use crate::target::Resource;

/// Since this version, an update without `If-Match` inserts a missing entity. "Insert Or Replace
/// Entity".
const UPSERTS_SINCE: ApiVersion = ApiVersion::V2011_08_18;

/// The operations that write one entity.
pub struct WriteEntity {
    table: TableRef,
    action: Action,
    address: Option<(String, String)>,
    body_format: BodyFormat,
    range: KeyRange,
    change: Option<Change>,
}

impl WriteEntity {
    /// Parses the change from the body.
    ///
    /// # Errors
    /// As [`Write::document`].
    pub fn change(&self, document: &[u8]) -> Result<Change, StorageError> {
        let body = match self.action {
            Action::Delete(_) => EntityBody::default(),
            _ => payload::read_entity(self.body_format, document)?,
        };
        let (partition_key, row_key) = Change::keys(self.address.clone(), &body)?;
        Ok(Change {
            table: self.table.clone(),
            action: self.action,
            partition_key,
            row_key,
            body,
            range: self.range.clone(),
        })
    }
}

impl Write for WriteEntity {
    type Checked = Checked;
    type Output = WrittenEntity;

    fn parse(call: &Call) -> Result<Self, StorageError> {
        answer::format(call)?;
        let action = action(call)?;
        Ok(WriteEntity {
            table: TableRef::of(call)?,
            action,
            address: match &call.target.resource {
                Resource::Table(Ok(Address::Entity {
                    partition_key,
                    row_key,
                    ..
                })) => Some((partition_key.clone(), row_key.clone())),
                _ => None,
            },
            body_format: match action {
                Action::Delete(_) => BodyFormat::Json,
                _ => answer::body_format(call)?,
            },
            range: KeyRange::of_signature(call),
            change: None,
        })
    }

    fn takes(&self) -> Takes {
        Takes::Document(BATCH_BODY_BYTES_MAX)
    }

    fn document(&mut self, document: Bytes) -> Result<(), StorageError> {
        self.change = Some(self.change(&document)?);
        Ok(())
    }

    fn check(&self, view: &dyn View, stamp: &Stamp) -> Result<Checked, StorageError> {
        let change = self.change.as_ref().ok_or(ErrorCode::InvalidInput)?;
        change.check(view, stamp)
    }

    fn apply(
        self,
        checked: Checked,
        tx: &mut Transaction<'_>,
        _: &Stamp,
    ) -> Result<WrittenEntity, StorageError> {
        let change = self.change.ok_or(ErrorCode::InvalidInput)?;
        change.apply(checked, tx)
    }

    fn render(written: WrittenEntity, call: &Call) -> Result<Reply, StorageError> {
        render(&written, call)
    }
}

/// Returns the response to a write of one entity.
///
/// # Errors
/// 415 for an unsupported format of the response.
pub fn render(written: &WrittenEntity, call: &Call) -> Result<Reply, StorageError> {
    let Some(entity) = &written.entity else {
        return Ok(answer::empty(204));
    };
    let preference = Preference::of(call);
    let applied = preference.applied();
    let etag = entity.etag().to_string();
    if call.method != Method::POST {
        return Ok(answer::empty(204)
            .header("etag", etag)
            .maybe("preference-applied", applied));
    }
    let table = written.table.name.as_str();
    let path = entity_path(table, &written.partition_key, &written.row_key);
    let endpoint = call.service_endpoint();
    let address = format!("{endpoint}{path}");
    let reply = if preference == Preference::NoContent {
        answer::empty(204).header("dataserviceid", &address)
    } else {
        let format = answer::format(call)?;
        let scope = answer::scope(call, &endpoint, entity.timestamp);
        let bytes = payload::write_entity(format, &scope, table, None, entity);
        answer::document(201, format, Kind::Entry, bytes)
    };
    Ok(reply
        .header("location", &address)
        .header("etag", etag)
        .maybe("preference-applied", applied))
}

/// Returns the kind of change that method and conditions ask for.
fn action(call: &Call) -> Result<Action, StorageError> {
    let if_match = call.header("if-match")?;
    let if_none_match = call.header("if-none-match")?.is_some();
    if if_match.is_some() && if_none_match {
        return Err(invalid(
            "Both If-Match and If-None-Match HTTP headers cannot be specified at the same time. \
             Please specify either one of the headers or none of them.",
        ));
    }
    let condition = if_match.map(IfMatch::parse).transpose()?;
    if call.method == Method::POST {
        return if if_match.is_none() && !if_none_match {
            Ok(Action::Insert)
        } else {
            Err(invalid(
                "If-Match or If-None-Match headers cannot be specified if the target type does \
                 not have etag properties defined.",
            ))
        };
    }
    if if_none_match {
        let method = if call.method == Method::DELETE {
            "DELETE"
        } else {
            "PUT"
        };
        let message =
            format!("If-None-Match HTTP header cannot be specified for {method} operations.");
        return Err(invalid(&message));
    }
    if call.method == Method::DELETE {
        let condition = condition.ok_or_else(|| StorageError::missing_header("If-Match"))?;
        return Ok(Action::Delete(condition));
    }
    if condition.is_none() && call.version < UPSERTS_SINCE {
        return Err(StorageError::missing_header("If-Match"));
    }
    if call.method == Method::PUT {
        Ok(Action::Replace(condition))
    } else {
        Ok(Action::Merge(condition))
    }
}

fn invalid(message: &str) -> StorageError {
    StorageError::new(ErrorCode::InvalidInput).with_message(message)
}
