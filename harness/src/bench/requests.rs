//! The requests of the lines, identical for every server.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use smalt_protocol::ApiVersion;

use super::echo;
use super::lines::{LARGE_BYTES, MESSAGE_BYTES, Rate, SMALL_BYTES};
use super::load::{Shot, Shots};
use crate::servers::ServerError;
use crate::wire::access::Access;

/// Name of the container and the queue.
const NAME: &str = "bench";
/// Number of blobs that each connection writes in turn.
const BLOBS_PER_CONNECTION: usize = 64;
/// Content of a blob in the large container.
const TINY: &str = "One of very many.";
/// Headers for requests about entities: no body in the answer to an insert, and minimal metadata in
/// that to a get.
pub const ENTITY_HEADERS: [(&str, &str); 3] = [
    ("accept", "application/json;odata=nometadata"),
    ("content-type", "application/json"),
    ("prefer", "return-no-content"),
];

/// Returns an entity with a string, a number and a time.
pub fn entity(partition: &str, row: &str) -> String {
    format!(
        "{{\"PartitionKey\":\"{partition}\",\"RowKey\":\"{row}\",\"Text\":\"{TINY}\",\"Count\":42,\
         \"At\":\"2024-03-01T12:00:00Z\",\"At@odata.type\":\"Edm.DateTime\"}}"
    )
}

/// Returns the path of an entity.
pub fn entity_path(table: &str, partition: &str, row: &str) -> String {
    format!("{table}(PartitionKey='{partition}',RowKey='{row}')")
}

/// Creates requests.
#[derive(Clone, Debug)]
pub struct Requests {
    access: Access,
}

impl Default for Requests {
    fn default() -> Self {
        Requests {
            access: Access::full(ApiVersion::V2021_12_02),
        }
    }
}

type Made = Result<Shot, ServerError>;

impl Requests {
    /// Returns a request with its expected status; the bare server answers with `length` bytes.
    fn shot(
        &self,
        (method, path): (Method, &str),
        headers: &[(&str, &str)],
        body: Bytes,
        (status, length): (u16, u64),
    ) -> Made {
        let mut request = Request::builder()
            .uri(self.access.path(path))
            .header("host", "127.0.0.1")
            .header(echo::HEADER, format!("{status} {length}"));
        if matches!(method, Method::PUT | Method::POST) {
            request = request.header("content-length", body.len());
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.method(method).body(Full::new(body));
        let request = request.map_err(ServerError::call)?;
        Ok(Shot { request, status })
    }

    fn put(&self, path: &str, body: Bytes) -> Made {
        let headers = [("x-ms-blob-type", "BlockBlob")];
        self.shot((Method::PUT, path), &headers, body, (201, 0))
    }

    /// Create Container.
    pub fn container(&self, name: &str) -> Made {
        let path = format!("{name}?restype=container");
        self.shot((Method::PUT, &path), &[], Bytes::new(), (201, 0))
    }

    /// Create Queue.
    pub fn queue(&self, name: &str) -> Made {
        self.shot((Method::PUT, name), &[], Bytes::new(), (201, 0))
    }

    /// Create Table.
    pub fn table(&self, name: &str) -> Made {
        let body = format!("{{\"TableName\":\"{name}\"}}").into();
        self.shot((Method::POST, "Tables"), &ENTITY_HEADERS, body, (204, 0))
    }

    /// Insert Entity.
    pub fn entity(&self, table: &str, partition: &str, row: &str) -> Made {
        let body = entity(partition, row).into();
        self.shot((Method::POST, table), &ENTITY_HEADERS, body, (204, 0))
    }

    /// List Containers: the first request after a start.
    pub fn first(&self) -> Made {
        self.shot((Method::GET, "?comp=list"), &[], Bytes::new(), (200, 0))
    }

    /// Put Blob, with a tiny content.
    pub fn tiny_blob(&self, container: &str, number: u64) -> Made {
        self.put(
            &format!("{container}/{}", Self::blob_name(number)),
            Bytes::from_static(TINY.as_bytes()),
        )
    }

    /// Returns the name of a tiny blob.
    pub fn blob_name(number: u64) -> String {
        format!("blob-{number:09}")
    }

    /// Returns the signed path of a request below the account.
    pub fn path(&self, rest: &str) -> String {
        self.access.path(rest)
    }

    /// Put Message, with a tiny content.
    pub fn tiny_message(&self, queue: &str) -> Made {
        self.message(queue, TINY, 0)
    }

    fn message(&self, queue: &str, text: &str, length: u64) -> Made {
        let body = format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>");
        let path = format!("{queue}/messages");
        self.shot((Method::POST, &path), &[], body.into(), (201, length))
    }

    /// Returns the path of a listing page.
    pub fn page(&self, container: &str, marker: &str) -> String {
        let marker = smalt_protocol::uri::encode_query(marker);
        self.access.path(&format!(
            "{container}?restype=container&comp=list&maxresults=5000&marker={marker}"
        ))
    }

    /// Returns the requests that prepare the lines, each with its service.
    pub fn preparation(&self, connections: usize) -> Result<Vec<(Rate, Shot)>, ServerError> {
        let mut shots = vec![
            (Rate::Get, self.container(NAME)?),
            (Rate::Get, self.put(&format!("{NAME}/small"), small())?),
            (Rate::Get, self.put(&format!("{NAME}/large"), large())?),
            (Rate::Peek, self.queue("peeked")?),
            (Rate::Peek, self.queue(NAME)?),
            (Rate::Peek, self.message("peeked", &text(), 0)?),
            (Rate::GetEntity, self.table(NAME)?),
            (Rate::GetEntity, self.entity(NAME, "p", "r")?),
        ];
        for connection in 0..connections {
            let path = format!("{NAME}/meta-{connection}");
            shots.push((Rate::Get, self.put(&path, small())?));
        }
        Ok(shots)
    }

    /// Returns the requests of a connection; `length` is the length of smalt's answer.
    pub fn of(&self, rate: Rate, connection: usize, length: u64) -> Result<Shots, ServerError> {
        let get =
            |path: &str, length| self.shot((Method::GET, path), &[], Bytes::new(), (200, length));
        let of_own = |blobs: usize, body: Bytes| -> Result<Vec<Shot>, ServerError> {
            let path = |n: usize| format!("{NAME}/own-{connection}-{n}");
            (0..blobs)
                .map(|n| self.put(&path(n), body.clone()))
                .collect()
        };
        let shots = match rate {
            Rate::Head => {
                let path = format!("{NAME}/small");
                let answer = (200, SMALL_BYTES as u64);
                let head = (Method::HEAD, path.as_str());
                vec![self.shot(head, &[], Bytes::new(), answer)?]
            }
            Rate::Get => vec![get(&format!("{NAME}/small"), length)?],
            Rate::GetLarge => vec![get(&format!("{NAME}/large"), length)?],
            Rate::Peek => vec![get("peeked/messages?peekonly=true", length)?],
            Rate::Put => of_own(BLOBS_PER_CONNECTION, small())?,
            Rate::PutLarge => of_own(2, large())?,
            Rate::PutMessage => vec![self.message(NAME, &text(), length)?],
            Rate::SetMetadata => {
                let path = format!("{NAME}/meta-{connection}?comp=metadata");
                let headers = [("x-ms-meta-state", "done")];
                let put = (Method::PUT, path.as_str());
                vec![self.shot(put, &headers, Bytes::new(), (200, 0))?]
            }
            Rate::GetEntity => {
                let path = entity_path(NAME, "p", "r");
                let get = (Method::GET, path.as_str());
                vec![self.shot(get, &ENTITY_HEADERS, Bytes::new(), (200, length))?]
            }
            Rate::InsertEntity => {
                let (requests, partition) = (self.clone(), format!("p{connection}"));
                let make = move |n| requests.entity(NAME, &partition, &format!("{n:09}"));
                return Ok(Shots::Fresh(Box::new(make)));
            }
        };
        Ok(Shots::Cycle(shots))
    }
}

fn small() -> Bytes {
    Bytes::from(vec![b's'; SMALL_BYTES])
}

fn large() -> Bytes {
    Bytes::from(vec![b'l'; LARGE_BYTES])
}

fn text() -> String {
    "t".repeat(MESSAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_requests_with_the_echo_header() {
        let requests = Requests::default();
        for rate in Rate::ALL {
            let shots = requests.of(rate, 3, 77).unwrap();
            for number in [0, 1, 1_000] {
                let shot = shots.at(number).unwrap();
                let echo = shot.request.headers()[echo::HEADER].to_str().unwrap();
                assert!(echo.starts_with(&shot.status.to_string()), "{echo}");
            }
        }
    }
}
