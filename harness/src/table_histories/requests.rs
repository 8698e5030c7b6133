//! Operations on tables as requests, sent.

use std::fmt::Write as _;

use http::Method;
use serde_json::{Map, Value as Json};
use smalt_model::vocabulary::tables::{
    Action, Change, Match, Properties, RowId, TableFilter, TableOperation,
};
use smalt_protocol::Service;
use smalt_protocol::table::{Value, key, literal};
use smalt_protocol::uri::encode_query;

use super::{Bound, PAGES_MAX};
use crate::histories::render::Request;
use crate::histories::server::{Answer, Server};

/// The boundaries of every batch.
const BATCH: &str = "batch_0a";
const SET: &str = "changeset_0b";

/// Requests with their answers: one, but for the pages of a query.
pub(super) struct Exchange(pub(super) Vec<(Request, Answer)>);

impl Exchange {
    /// What was said, for a failure.
    pub(super) fn told(&self) -> String {
        let mut told = String::new();
        for (request, answer) in &self.0 {
            let body = String::from_utf8_lossy(&request.body);
            let said = String::from_utf8_lossy(&answer.body);
            // Writing to a text cannot fail.
            let _ = writeln!(
                told,
                "{} {} {:?} {body}\n  -> {} {said}",
                request.method, request.path, request.headers, answer.status
            );
        }
        told
    }
}

/// Sends an operation; a query page by page.
pub(super) async fn send(
    server: &Server,
    table: &str,
    operation: &TableOperation,
    bound: &Bound,
    is_full: bool,
) -> Result<Exchange, String> {
    let level = if is_full { "full" } else { "minimal" };
    let accept = format!("application/json;odata={level}metadata");
    let asking = |method, path: String| plain(method, path).with("accept", &accept);
    let request = match operation {
        TableOperation::Create => {
            let body = format!("{{\"TableName\":\"{table}\"}}");
            writing(asking(Method::POST, "Tables".to_owned()), body)
        }
        TableOperation::Delete => asking(Method::DELETE, key::table_path(table)),
        TableOperation::Change(change) => {
            let (method, path) = target(table, change);
            let request = conditional(asking(method, path), change, bound);
            match properties(change) {
                Some(given) => writing(request, entity(&change.row, given)),
                None => request,
            }
        }
        TableOperation::Batch(changes) => batch(table, changes, bound),
        TableOperation::Get(row) => asking(Method::GET, address(table, row)),
        TableOperation::Query { filter, page } => {
            let filter = filter.as_ref();
            let first = asking(Method::GET, query(table, filter, *page));
            return pages(server, first).await;
        }
    };
    let answer = server.send(&request).await?;
    Ok(Exchange(vec![(request, answer)]))
}

/// Asks for page after page.
async fn pages(server: &Server, first: Request) -> Result<Exchange, String> {
    let mut exchanges: Vec<(Request, Answer)> = Vec::new();
    let mut request = first.clone();
    while exchanges.len() < PAGES_MAX {
        let answer = server.send(&request).await?;
        let token = |name: &str| answer.header(&format!("x-ms-continuation-{name}"));
        let mut next = first.clone();
        for name in ["NextPartitionKey", "NextRowKey"] {
            if let Some(token) = token(name) {
                next.path += &format!("&{name}={}", encode_query(token));
            }
        }
        exchanges.push((request, answer));
        if next.path == first.path {
            return Ok(Exchange(exchanges));
        }
        request = next;
    }
    Err("a query that does not end".to_owned())
}

fn plain(method: Method, path: String) -> Request {
    Request {
        service: Service::Table,
        method,
        path,
        headers: Vec::new(),
        body: Vec::new(),
    }
    .with("dataserviceversion", "3.0")
}

fn writing(request: Request, body: String) -> Request {
    let mut request = request
        .with("content-type", "application/json")
        .with("prefer", "return-no-content");
    request.body = body.into_bytes();
    request
}

fn conditional(request: Request, change: &Change, bound: &Bound) -> Request {
    match condition(change) {
        None => request,
        Some(Match::Any) => request.with("if-match", "*"),
        Some(Match::Tag(tag)) => request.with("if-match", bound.text(tag)),
    }
}

const fn condition(change: &Change) -> Option<Match> {
    match &change.action {
        Action::Insert(_) => None,
        Action::Replace(_, condition) | Action::Merge(_, condition) => *condition,
        Action::Delete(condition) => Some(*condition),
    }
}

fn properties(change: &Change) -> Option<&Properties> {
    match &change.action {
        Action::Insert(given) | Action::Replace(given, _) | Action::Merge(given, _) => Some(given),
        Action::Delete(_) => None,
    }
}

/// Method and path of a change. A merge has two methods; a condition chooses.
fn target(table: &str, change: &Change) -> (Method, String) {
    let method = match &change.action {
        Action::Insert(_) => return (Method::POST, table.to_owned()),
        Action::Replace(..) => Method::PUT,
        Action::Merge(_, Some(_)) => Method::PATCH,
        Action::Merge(_, None) => Method::from_bytes(b"MERGE").unwrap_or(Method::PATCH),
        Action::Delete(_) => Method::DELETE,
    };
    (method, address(table, &change.row))
}

/// The address of an entity, everything escaped that a client may escape.
fn address(table: &str, row: &RowId) -> String {
    let literal = |text: &str| encode_query(&key::quote(text));
    let (partition, row) = (literal(&row.partition_key), literal(&row.row_key));
    format!("{table}(PartitionKey={partition},RowKey={row})")
}

fn query(table: &str, filter: Option<&TableFilter>, page: u32) -> String {
    let mut path = format!("{table}()?$top={page}");
    if let Some(filter) = filter {
        path += &format!("&$filter={}", encode_query(&filter.to_string()));
    }
    path
}

/// The body of a write, every type named.
fn entity(row: &RowId, properties: &Properties) -> String {
    let mut object = Map::new();
    object.insert("PartitionKey".to_owned(), row.partition_key.clone().into());
    object.insert("RowKey".to_owned(), row.row_key.clone().into());
    for (name, value) in properties {
        let json = match value {
            Value::Boolean(flag) => Json::from(*flag),
            Value::Int32(number) => Json::from(*number),
            _ => Json::from(literal::write(value).into_owned()),
        };
        object.insert(
            format!("{name}@odata.type"),
            value.edm_type().as_str().into(),
        );
        object.insert(name.clone(), json);
    }
    Json::Object(object).to_string()
}

fn batch(table: &str, changes: &[Change], bound: &Bound) -> Request {
    let mut body = format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={SET}\r\n\r\n");
    for change in changes {
        let (method, path) = target(table, change);
        let host = "http://127.0.0.1:10002/devstoreaccount1";
        body += &format!(
            "--{SET}\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\n{method} {host}/{path} HTTP/1.1\r\n\
             Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"
        );
        for (name, value) in conditional(plain(method, path), change, bound).headers {
            if name == "if-match" {
                body += &format!("If-Match: {value}\r\n");
            }
        }
        if let Some(given) = properties(change) {
            body += "Content-Type: application/json\r\nPrefer: return-no-content\r\n\r\n";
            body += &entity(&change.row, given);
            body += "\r\n";
        } else {
            body += "\r\n";
        }
    }
    body += &format!("--{SET}--\r\n--{BATCH}--\r\n");
    let media = format!("multipart/mixed; boundary={BATCH}");
    let mut request = plain(Method::POST, "$batch".to_owned()).with("content-type", media);
    request.body = body.into_bytes();
    request
}
