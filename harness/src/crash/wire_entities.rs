//! The operations on entities as requests, and their answers as values. All entities are in one
//! partition.

use std::collections::BTreeMap;

use http::Method;
use serde_json::{Value as Json, json};
use smalt_protocol::table::key;
use smalt_protocol::uri::encode_query;

use super::content::Content;
use super::model::Change;
use super::wire::{Client, Done, Read, TABLES, etag};
use crate::servers::ServerError;
use crate::wire::Answer;
use crate::wire::access::ACCOUNT;

const PARTITION: &str = "p";
/// Boundaries of every transaction.
const BATCH: &str = "batch_0a";
const SET: &str = "changeset_0b";
/// Protocol version, which every request names.
const DATA_SERVICE: (&str, &str) = ("dataserviceversion", "3.0");
/// Asks for ETags and property types of entities.
const ACCEPT: (&str, &str) = ("accept", "application/json;odata=fullmetadata");

impl Client {
    fn table(&self) -> String {
        self.name.replace('-', "")
    }

    /// Calls Create Table, unless the table exists.
    pub(super) async fn create_table(&mut self) -> Done<()> {
        let body = json!({ "TableName": self.table() }).to_string();
        let headers = [DATA_SERVICE, ACCEPT, ("content-type", "application/json")];
        let made = self.send(TABLES, (Method::POST, "Tables"), &headers, body);
        let made = made.await?;
        if made.status != 409 {
            made.expect(201)?;
        }
        Ok(())
    }

    /// Changes entities, several in one transaction. Returns their ETags; that of a deleted one is
    /// empty.
    pub async fn change_entities(
        &mut self,
        changes: &[(String, Change)],
        mark: u64,
    ) -> Done<Vec<String>> {
        match changes {
            [(row, change)] => {
                let etag = self.change_entity(row, *change, mark).await?;
                Ok(vec![etag])
            }
            changes => self.transaction(changes, mark).await,
        }
    }

    async fn change_entity(&mut self, row: &str, change: Change, mark: u64) -> Done<String> {
        let (method, path) = self.target(row, change);
        let mut headers = vec![DATA_SERVICE, ACCEPT];
        headers.extend(condition(change));
        let body = change.content().map(|content| entity(row, content, mark));
        if body.is_some() {
            headers.extend([
                ("content-type", "application/json"),
                ("prefer", "return-no-content"),
            ]);
        }
        let body = body.unwrap_or_default();
        let sent = self.send(TABLES, (method, &path), &headers, body);
        Ok(etag(&sent.await?.expect(204)?))
    }

    async fn transaction(&mut self, changes: &[(String, Change)], mark: u64) -> Done<Vec<String>> {
        let mut body =
            format!("--{BATCH}\r\nContent-Type: multipart/mixed; boundary={SET}\r\n\r\n");
        for (row, change) in changes {
            let (method, path) = self.target(row, *change);
            body += &format!(
                "--{SET}\r\nContent-Type: application/http\r\n\
                 Content-Transfer-Encoding: binary\r\n\r\n{method} /{ACCOUNT}/{path} HTTP/1.1\r\n"
            );
            for (name, value) in [DATA_SERVICE, ACCEPT].into_iter().chain(condition(*change)) {
                body += &format!("{name}: {value}\r\n");
            }
            if let Some(content) = change.content() {
                body += "content-type: application/json\r\nprefer: return-no-content\r\n\r\n";
                body += &entity(row, content, mark);
            }
            body += "\r\n";
        }
        body += &format!("--{SET}--\r\n--{BATCH}--\r\n");
        let media = format!("multipart/mixed; boundary={BATCH}");
        let headers = [DATA_SERVICE, ACCEPT, ("content-type", media.as_str())];
        let sent = self.send(TABLES, (Method::POST, "$batch"), &headers, body);
        parts(&sent.await?.expect(202)?, changes.len())
    }

    /// Returns method and path of a change.
    fn target(&self, row: &str, change: Change) -> (Method, String) {
        let path = key::entity_path(&self.table(), PARTITION, row);
        match change {
            Change::Insert(_) => (Method::POST, self.table()),
            Change::Replace(_) => (Method::PUT, path),
            Change::Delete => (Method::DELETE, path),
        }
    }

    /// Calls Query Entities for the whole partition, which must be one page. Returns the entities
    /// by row key.
    pub async fn query_entities(&mut self) -> Done<BTreeMap<String, Read>> {
        let filter = format!("PartitionKey eq {}", key::quote(PARTITION));
        let query = format!("{}()?$filter={}", self.table(), encode_query(&filter));
        let headers = [DATA_SERVICE, ACCEPT];
        let sent = self.send(TABLES, (Method::GET, &query), &headers, "");
        let answer = sent.await?.expect(200)?;
        if answer.header("x-ms-continuation-nextrowkey").is_some() {
            return Err(ServerError::call("the partition has more than a page"));
        }
        let body: Json = serde_json::from_slice(&answer.body).map_err(ServerError::call)?;
        let rows = body["value"].as_array();
        let rows = rows.ok_or_else(|| ServerError::call("a query without a list"))?;
        Ok(rows.iter().map(shown).collect())
    }
}

/// Returns the condition of a change, which applies to any ETag.
fn condition(change: Change) -> Option<(&'static str, &'static str)> {
    match change {
        Change::Insert(_) => None,
        Change::Replace(_) | Change::Delete => Some(("if-match", "*")),
    }
}

fn entity(row: &str, content: Content, mark: u64) -> String {
    let entity = json!({
        "PartitionKey": PARTITION,
        "RowKey": row,
        "Text": content.text(),
        "Mark@odata.type": "Edm.Int64",
        "Mark": mark.to_string(),
    });
    entity.to_string()
}

fn shown(entity: &Json) -> (String, Read) {
    let text = |name: &str| entity[name].as_str().unwrap_or_default().to_owned();
    let read = Read {
        bytes: text("Text").into(),
        mark: text("Mark").parse().ok(),
        etag: text("odata.etag"),
    };
    (text("RowKey"), read)
}

/// Returns the ETags of this many parts, each of which must have succeeded.
fn parts(answer: &Answer, count: usize) -> Done<Vec<String>> {
    let text = String::from_utf8_lossy(&answer.body);
    let mut etags = Vec::new();
    for part in text.split("HTTP/1.1 ").skip(1) {
        if !part.starts_with("204 ") {
            return Err(ServerError::Call(format!("{part} in place of 204")));
        }
        let mut lines = part.lines();
        let etag = lines.find_map(|line| line.strip_prefix("ETag: "));
        etags.push(etag.unwrap_or_default().to_owned());
    }
    if etags.len() == count {
        return Ok(etags);
    }
    let text = format!("{} parts in place of {count}: {text}", etags.len());
    Err(ServerError::Call(text))
}
