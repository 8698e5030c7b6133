//! Renders operations on tables as requests.

use http::Method;
use serde_json::{Map, Value as Json};
use smalt_model::vocabulary::tables::{
    Action, Change, Level, Match, Properties, RowId, TableFilter, TableMalformed, TableOperation,
};
use smalt_protocol::Service;
use smalt_protocol::table::{Value, continuation, key, literal};
use smalt_protocol::uri::encode_query;

use super::request::Request;
use crate::histories::names::Names;
use crate::wire::Answer;

/// The boundary of every batch.
const BATCH: &str = "batch_0a";
const SET: &str = "changeset_0b";

/// Returns the request of an operation; [`next_page`] continues a query from this first page.
pub fn request(table: &str, operation: &TableOperation, names: &Names) -> Request {
    match operation {
        TableOperation::Create => {
            let body = format!("{{\"TableName\":\"{table}\"}}");
            writing(asking(Method::POST, "Tables".to_owned()), body)
        }
        TableOperation::Delete => asking(Method::DELETE, key::table_path(table)),
        TableOperation::Change(change) => {
            let (method, path) = target(table, change);
            let request = conditional(asking(method, path), change, names);
            match properties(change) {
                Some(given) => writing(request, entity(&change.row, given)),
                None => request,
            }
        }
        TableOperation::Batch(changes) => batch(table, changes, names),
        TableOperation::Get(row, level) => {
            asking_at(*level, plain(Method::GET, address(table, row)))
        }
        TableOperation::Query {
            filter,
            page,
            level,
        } => asking_at(
            *level,
            plain(Method::GET, query(table, filter.as_ref(), *page)),
        ),
        TableOperation::Page {
            partition_key,
            from,
            most,
        } => {
            let filter = format!("PartitionKey eq {}", key::quote(partition_key));
            let mut path = format!("{table}()?$top={most}&$filter={}", encode_query(&filter));
            if let Some(row_key) = from {
                let token = |text: &str| encode_query(&continuation::write(text));
                let (partition, row) = (token(partition_key), token(row_key));
                path += &format!("&NextPartitionKey={partition}&NextRowKey={row}");
            }
            asking(Method::GET, path)
        }
        TableOperation::Malformed(which) => malformed(table, *which),
    }
}

fn malformed(table: &str, which: TableMalformed) -> Request {
    let insert = |body: &str| {
        let request = asking(Method::POST, table.to_owned());
        writing(request, body.to_owned())
    };
    let query = |query: &str| asking(Method::GET, format!("{table}()?{query}"));
    match which {
        TableMalformed::TableName => {
            let request = asking(Method::POST, "Tables".to_owned());
            writing(request, "{\"TableName\":\"1st\"}".to_owned())
        }
        TableMalformed::Filter => query("$filter=Age%20gt"),
        TableMalformed::Top => query("$top=1001"),
        TableMalformed::Document => insert("{\"PartitionKey\":\"a\",\"RowKey\":"),
        TableMalformed::RowKey => insert("{\"PartitionKey\":\"a\"}"),
        TableMalformed::PropertyName => {
            insert("{\"PartitionKey\":\"a\",\"RowKey\":\"a\",\"first-name\":1}")
        }
    }
}

/// Returns the request for the page after this answer; `first` is the request for the first page.
pub fn next_page(first: &Request, answer: &Answer) -> Option<Request> {
    let mut next = first.clone();
    for name in ["NextPartitionKey", "NextRowKey"] {
        if let Some(token) = answer.header(&format!("x-ms-continuation-{name}")) {
            next.path += &format!("&{name}={}", encode_query(token));
        }
    }
    (next.path != first.path).then_some(next)
}

fn asking(method: Method, path: String) -> Request {
    asking_at(Level::Minimal, plain(method, path))
}

fn asking_at(level: Level, request: Request) -> Request {
    let level = match level {
        Level::Minimal => "minimal",
        Level::Full => "full",
    };
    request.with("accept", format!("application/json;odata={level}metadata"))
}

fn plain(method: Method, path: String) -> Request {
    Request::new(Service::Table, method, path).with("dataserviceversion", "3.0")
}

fn writing(request: Request, body: String) -> Request {
    request
        .with("content-type", "application/json")
        .with("prefer", "return-no-content")
        .body(body)
}

fn conditional(request: Request, change: &Change, names: &Names) -> Request {
    match condition(change) {
        None => request,
        Some(Match::Any) => request.with("if-match", "*"),
        Some(Match::Tag(tag)) => request.with("if-match", names.entity_tag(tag)),
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

/// Returns method and path of a change. A merge has two methods; its condition selects one.
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

/// Returns the address of an entity, with every character escaped that may be.
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

/// Renders the body of a write, with all types annotated.
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

fn batch(table: &str, changes: &[Change], names: &Names) -> Request {
    let mut body = format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={SET}\r\n\r\n");
    for change in changes {
        let (method, path) = target(table, change);
        let host = "http://127.0.0.1:10002/devstoreaccount1";
        body += &format!(
            "--{SET}\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\n{method} {host}/{path} HTTP/1.1\r\n\
             Accept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0\r\n"
        );
        for (name, value) in conditional(plain(method, path), change, names).headers {
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
    plain(Method::POST, "$batch".to_owned())
        .with("content-type", media)
        .body(body)
}
