//! A small client of the Table service with the operations that the example needs: JSON without
//! metadata, Shared Key or SAS, pages with their continuation, entity group transactions.
//!
//! A request without an answer, or with a 500 or 503, is sent again. Therefore the answer to a
//! repetition may refer to the effect of the first try: [`TableError::Exists`],
//! [`TableError::Missing`] and [`TableError::Changed`] can mean that it was executed. The caller
//! must treat these three as if an earlier run had made the change, which it has to do anyway.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};
use smalt_protocol::connection_string::{ConnectionString, Credential};
use smalt_protocol::signing::shared_key::{Scheme, SigningInput, authorization};
use smalt_protocol::table::key;
use smalt_protocol::uri::{encode_query, parse_query};
use smalt_protocol::{ApiVersion, Service};
use smalt_sleeve::{Clock, Transport, TransportError};

/// Largest number of operations of a transaction (*Performing entity group transactions*), and of
/// rows of a page from which a transaction is made.
pub(crate) const TRANSACTION_MAX: usize = 100;
/// Version of the service to request; any version since JSON was added would do.
const VERSION: ApiVersion = ApiVersion::V2021_12_02;
/// Tries of one request.
const TRIES: u32 = 5;
/// Pause after the first try; doubles with each try.
const PAUSE: Duration = Duration::from_millis(200);
/// Boundaries of the multipart bodies, which no line of a one-line JSON document can equal.
const BATCH: &str = "batch_channels";
const CHANGES: &str = "changeset_channels";

/// A request failed, or may have failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TableError {
    /// 404: the entity does not exist. A missing table is `Refused`.
    #[error("the entity does not exist")]
    Missing,
    /// 409: the entity already exists.
    #[error("the entity already exists")]
    Exists,
    /// 412: the entity has another ETag.
    #[error("the entity was changed")]
    Changed,
    /// No answer, or none with a meaning.
    #[error("storage failed: {0}")]
    Unavailable(String),
    /// Any other refusal.
    #[error("storage refused the request: {status} {code}")]
    Refused { status: u16, code: String },
    /// A request that cannot be sent, or an answer that cannot be parsed.
    #[error("{0}")]
    Malformed(String),
}

pub(crate) type TableResult<T> = Result<T, TableError>;
/// The properties of an entity.
pub(crate) type Row = Map<String, Json>;

/// One operation of a transaction.
pub(crate) enum Change {
    /// Insert Or Replace Entity.
    Put(Row),
    /// Delete Entity, whatever its version.
    Delete { partition: String, row: String },
}

/// The start of the next page; opaque, and not necessarily an existing entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Continuation(Vec<(&'static str, String)>);

/// A part of a query's result.
pub(crate) struct Page {
    pub(crate) rows: Vec<Row>,
    /// `None` at the end; a page may be empty without being the last.
    pub(crate) next: Option<Continuation>,
}

/// The tables of an account.
#[derive(Clone)]
pub(crate) struct Tables {
    transport: Arc<dyn Transport>,
    clock: Arc<dyn Clock>,
    account: String,
    endpoint: String,
    credential: Credential,
}

/// A request without date and signature, which each try adds.
struct Request {
    method: Method,
    /// Path and query below the endpoint.
    target: String,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

type Answer = http::Response<Bytes>;

impl Tables {
    /// Opens the tables of a connection string's account.
    pub(crate) fn open(
        connection_string: &str,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let read = ConnectionString::parse(connection_string)?;
        let endpoint = read.endpoint(Service::Table);
        let endpoint = endpoint.context("the connection string has no table endpoint")?;
        Ok(Tables {
            transport,
            clock,
            endpoint: endpoint.to_owned(),
            account: read.account,
            credential: read.credential,
        })
    }

    /// Create Table, if it does not exist.
    pub(crate) async fn create_table(&self, table: &str) -> TableResult<()> {
        let request = Request::new(Method::POST, "/Tables").with(&json!({ "TableName": table }));
        match self.send(&request).await {
            Ok(_) | Err(TableError::Exists) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Query Entities for one entity; returns its properties and its ETag.
    pub(crate) async fn get(
        &self,
        table: &str,
        (partition, row): (&str, &str),
    ) -> TableResult<Option<(Row, String)>> {
        let request = Request::new(Method::GET, &address(table, partition, row));
        match self.send(&request).await {
            Ok(answer) => {
                let tag = header(&answer, "etag").ok_or_else(|| unreadable("no ETag"))?;
                Ok(Some((document(answer.body())?, tag)))
            }
            Err(TableError::Missing) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Insert Entity.
    pub(crate) async fn insert(&self, table: &str, entity: &Row) -> TableResult<()> {
        let request = Request::new(Method::POST, &format!("/{table}"));
        self.send(&request.with(entity)).await.map(drop)
    }

    /// Insert Or Replace Entity.
    pub(crate) async fn put(&self, table: &str, entity: &Row) -> TableResult<()> {
        let (partition, row) = keys(entity);
        let request = Request::new(Method::PUT, &address(table, partition, row));
        self.send(&request.with(entity)).await.map(drop)
    }

    /// Merge Entity, if its ETag is `tag`. Returns the new ETag.
    pub(crate) async fn merge(
        &self,
        table: &str,
        entity: &Row,
        if_match: &str,
    ) -> TableResult<String> {
        let (partition, row) = keys(entity);
        let request = Request::new(Method::PATCH, &address(table, partition, row));
        let request = request.with(entity).header("if-match", if_match);
        let answer = self.send(&request).await?;
        header(&answer, "etag").ok_or_else(|| unreadable("no ETag"))
    }

    /// Delete Entity, if its ETag is `tag`, or `tag` is `*`.
    pub(crate) async fn delete(
        &self,
        table: &str,
        (partition, row): (&str, &str),
        if_match: &str,
    ) -> TableResult<()> {
        let request = Request::new(Method::DELETE, &address(table, partition, row));
        let request = request.header("if-match", if_match);
        self.send(&request).await.map(drop)
    }

    /// Query Entities: at most `top` of a partition, or of the whole table, starting at `after`.
    pub(crate) async fn page(
        &self,
        table: &str,
        partition: Option<&str>,
        top: usize,
        after: Option<&Continuation>,
    ) -> TableResult<Page> {
        let mut target = format!("/{table}()?$top={top}");
        if let Some(partition) = partition {
            let filter = format!("PartitionKey eq {}", key::quote(partition));
            target += &format!("&$filter={}", encode_query(&filter));
        }
        for (name, token) in after.iter().flat_map(|after| &after.0) {
            target += &format!("&{name}={}", encode_query(token));
        }
        let answer = self.send(&Request::new(Method::GET, &target)).await?;
        let token = |name| {
            let text = header(&answer, &format!("x-ms-continuation-{name}"))?;
            Some((name, text))
        };
        let tokens: Vec<_> = ["NextPartitionKey", "NextRowKey"]
            .into_iter()
            .filter_map(token)
            .collect();
        let rows = match document(answer.body())?.remove("value") {
            Some(Json::Array(rows)) => rows.into_iter().filter_map(into_row).collect(),
            _ => return Err(unreadable("no rows")),
        };
        let next = (!tokens.is_empty()).then_some(Continuation(tokens));
        Ok(Page { rows, next })
    }

    /// Entity Group Transaction: makes all changes or none. They must belong to one partition and
    /// number at most [`TRANSACTION_MAX`].
    pub(crate) async fn transact(&self, table: &str, changes: &[Change]) -> TableResult<()> {
        let mut body =
            format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={CHANGES}\r\n");
        for change in changes {
            body += &self.part(table, change);
        }
        body += &format!("\r\n--{CHANGES}--\r\n--{BATCH}--\r\n");
        let media = format!("multipart/mixed; boundary={BATCH}");
        let mut request = Request::new(Method::POST, "/$batch").header("content-type", &media);
        request.body = Bytes::from(body);
        let answer = self.send(&request).await?;
        transacted(answer.body())
    }

    /// Formats one change of a transaction, a request within the request.
    fn part(&self, table: &str, change: &Change) -> String {
        let (method, address, rest) = match change {
            Change::Put(entity) => {
                let (partition, row) = keys(entity);
                let document = Json::Object(entity.clone());
                let rest = format!("Content-Type: application/json\r\n\r\n{document}");
                ("PUT", address(table, partition, row), rest)
            }
            Change::Delete { partition, row } => {
                let rest = "If-Match: *\r\n".to_owned();
                ("DELETE", address(table, partition, row), rest)
            }
        };
        let endpoint = &self.endpoint;
        format!(
            "\r\n--{CHANGES}\r\nContent-Type: application/http\r\n\
             Content-Transfer-Encoding: binary\r\n\r\n\
             {method} {endpoint}{address} HTTP/1.1\r\n\
             Accept: application/json;odata=nometadata\r\nDataServiceVersion: 3.0\r\n{rest}\r\n"
        )
    }

    /// Sends until there is a meaningful answer; returns refusals as errors.
    async fn send(&self, request: &Request) -> TableResult<Answer> {
        let mut pause = PAUSE;
        let mut tries = 0;
        loop {
            let failed = match self.transport.round_trip(self.signed(request)?).await {
                Ok(answer) if is_transient(answer.status()) => answer.status().to_string(),
                Ok(answer) if answer.status().is_success() => return Ok(answer),
                Ok(answer) => return Err(refusal(answer.status().as_u16(), answer.body())),
                Err(error @ (TransportError::Unreachable(_) | TransportError::NoAnswer(_))) => {
                    error.to_string()
                }
                Err(error) => return Err(TableError::Malformed(error.to_string())),
            };
            tries += 1;
            if tries == TRIES {
                return Err(TableError::Unavailable(failed));
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
    }

    /// Returns the request with its date and its signature or SAS.
    fn signed(&self, request: &Request) -> TableResult<http::Request<Bytes>> {
        let malformed = |error: http::Error| TableError::Malformed(error.to_string());
        let mut url = format!("{}{}", self.endpoint, request.target);
        if let Credential::Sas(sas) = &self.credential {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.push_str(sas);
        }
        let uri: http::Uri = url
            .parse()
            .map_err(|error: http::uri::InvalidUri| malformed(error.into()))?;
        let date = self.clock.now().rfc1123();
        let version = VERSION.to_string();
        let mut headers = vec![
            ("host", uri.authority().map_or("", |host| host.as_str())),
            ("x-ms-date", &date),
            ("x-ms-version", &version),
            ("accept", "application/json;odata=nometadata"),
            ("dataserviceversion", "3.0;NetFx"),
            ("maxdataserviceversion", "3.0;NetFx"),
        ];
        headers.extend(
            request
                .headers
                .iter()
                .map(|(name, value)| (*name, value.as_str())),
        );
        let length = request.body.len().to_string();
        if !request.body.is_empty() {
            headers.push(("content-length", &length));
        }
        let mut signed = http::Request::builder().method(&request.method).uri(&uri);
        if let Credential::Key(key) = &self.credential {
            let query = parse_query(uri.query().unwrap_or_default());
            let input = SigningInput {
                service: Service::Table,
                scheme: Scheme::SharedKey,
                version: VERSION,
                method: request.method.as_str(),
                account: &self.account,
                path: uri.path(),
                query: &query.map_err(|error| TableError::Malformed(error.to_string()))?,
                headers: &headers,
            };
            signed = signed.header("authorization", authorization(&input, key.as_bytes()));
        }
        for (name, value) in headers {
            signed = signed.header(name, value);
        }
        signed.body(request.body.clone()).map_err(malformed)
    }
}

impl Request {
    fn new(method: Method, target: &str) -> Self {
        Request {
            method,
            target: target.to_owned(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Adds this JSON document, and asks for an answer without one.
    fn with(self, document: &impl serde::Serialize) -> Self {
        let mut request = self
            .header("content-type", "application/json")
            .header("prefer", "return-no-content");
        request.body = Bytes::from(json!(document).to_string());
        request
    }
}

/// Returns the properties of a JSON object literal.
pub(crate) fn row(json: Json) -> Row {
    into_row(json).unwrap_or_default()
}

/// Returns a string property; empty if there is none.
pub(crate) fn text<'a>(row: &'a Row, name: &str) -> &'a str {
    row.get(name).and_then(Json::as_str).unwrap_or_default()
}

fn into_row(json: Json) -> Option<Row> {
    match json {
        Json::Object(row) => Some(row),
        _ => None,
    }
}

fn keys(entity: &Row) -> (&str, &str) {
    (text(entity, "PartitionKey"), text(entity, "RowKey"))
}

fn address(table: &str, partition: &str, row: &str) -> String {
    format!("/{}", key::entity_path(table, partition, row))
}

fn header(answer: &Answer, name: &str) -> Option<String> {
    let value = answer.headers().get(name)?.to_str().ok()?;
    Some(value.to_owned())
}

fn document(body: &[u8]) -> TableResult<Row> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error.to_string()))
}

fn unreadable(what: &str) -> TableError {
    TableError::Malformed(format!("cannot read the answer: {what}"))
}

fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502..=504)
}

/// Returns the error for a refused request by its status and the code in its document.
fn refusal(status: u16, body: &[u8]) -> TableError {
    let told: Json = serde_json::from_slice(body).unwrap_or_default();
    let code = told["odata.error"]["code"].as_str().unwrap_or_default();
    match (status, code) {
        (404, "ResourceNotFound" | "EntityNotFound") => TableError::Missing,
        (409, "EntityAlreadyExists" | "TableAlreadyExists") => TableError::Exists,
        (412, _) => TableError::Changed,
        _ => TableError::Refused {
            status,
            code: code.to_owned(),
        },
    }
}

/// Parses the answer to a transaction: a status for each change, or the status and document of the
/// refused one.
fn transacted(body: &[u8]) -> TableResult<()> {
    let body = String::from_utf8_lossy(body);
    let statuses = body.lines().filter_map(|line| {
        let status = line.trim().strip_prefix("HTTP/1.1 ")?;
        status.split(' ').next()?.parse::<u16>().ok()
    });
    let mut answered = false;
    for status in statuses {
        answered = true;
        if status >= 400 {
            let told = body.lines().find(|line| line.starts_with('{'));
            return Err(refusal(status, told.unwrap_or_default().as_bytes()));
        }
    }
    answered
        .then_some(())
        .ok_or_else(|| unreadable("a transaction without parts"))
}
