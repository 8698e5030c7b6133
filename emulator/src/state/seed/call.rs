//! Requests of a seed, signed with the account's key and served in process.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::header::CONTENT_LENGTH;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use smalt_protocol::connection_string::emulator_port;
use smalt_protocol::{ApiVersion, Service};

use super::SeedError;
use crate::body::{self, Body};
use crate::disk::{Disk, DiskFile};
use crate::emulator::Emulator;
use crate::owner;

/// Size of the pieces in which a file is read, in bytes.
const PIECE_BYTES: u64 = 64 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) account: String,
    pub(super) service: Service,
    pub(super) method: &'static str,
    /// Encoded path and query after the account.
    pub(super) target: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Bytes(Bytes),
    /// A range of a file.
    File {
        path: PathBuf,
        offset: u64,
        length: u64,
    },
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        match self {
            Content::Bytes(bytes) => bytes.len() as u64,
            Content::File { length, .. } => *length,
        }
    }

    pub(super) fn part(&self, start: u64, end: u64) -> Self {
        match self {
            Content::Bytes(bytes) => Content::Bytes(bytes.slice(start as usize..end as usize)),
            Content::File { path, offset, .. } => Content::File {
                path: path.clone(),
                offset: offset + start,
                length: end - start,
            },
        }
    }

    fn body(&self, disk: &dyn Disk) -> Result<Body, SeedError> {
        match self {
            Content::Bytes(bytes) => Ok(body::full(bytes.clone())),
            Content::File {
                path,
                offset,
                length,
            } => {
                let file = disk.open_to_read(path).map_err(|error| SeedError::Io {
                    file: path.clone(),
                    error,
                })?;
                Ok(stream(file, *offset, offset + length))
            }
        }
    }
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// Error code, or the response's text.
    pub(super) error: String,
}

impl Call {
    pub(super) fn new(account: &str, service: Service, method: &'static str, path: &str) -> Self {
        Call {
            account: account.to_owned(),
            service,
            method,
            target: path.to_owned(),
            headers: Vec::new(),
            content: Content::Bytes(Bytes::new()),
        }
    }

    pub(super) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(super) fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    pub(super) async fn send(
        &self,
        emulator: &Emulator,
        disk: &dyn Disk,
    ) -> Result<Answer, SeedError> {
        let body = self.content.body(disk)?;
        // The request has an invalid header, or a fault rule cut the connection.
        let refused = |status, error: String| Ok(Answer { status, error });
        let request = match self.request(emulator, body) {
            Ok(request) => request,
            Err(error) => return refused(StatusCode::BAD_REQUEST, error.to_string()),
        };
        let Ok(answer) = emulator.call(request).await else {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "no answer".to_owned());
        };
        let (head, body) = answer.into_parts();
        let code = head
            .headers
            .get("x-ms-error-code")
            .and_then(|code| code.to_str().ok());
        let code = code.unwrap_or_default().to_owned();
        let text = match body.collect().await {
            Ok(collected) => String::from_utf8_lossy(&collected.to_bytes()).into_owned(),
            Err(_) => String::new(),
        };
        Ok(Answer {
            status: head.status,
            error: match code.is_empty() || text.contains("odata.error") {
                true => text,
                false => code,
            },
        })
    }

    fn request(&self, emulator: &Emulator, body: Body) -> Result<Request<Body>, http::Error> {
        let port = emulator_port(self.service);
        let mut request = Request::builder()
            .method(self.method)
            .uri(format!(
                "http://127.0.0.1:{port}/{}{}",
                self.account, self.target
            ))
            .header("x-ms-version", ApiVersion::LATEST.to_string())
            .header(CONTENT_LENGTH, self.content.len());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut request = request.body(body)?;
        owner::sign(emulator.core(), self.service, &self.account, &mut request)?;
        Ok(request)
    }
}

fn stream(file: Arc<dyn DiskFile>, from: u64, to: u64) -> Body {
    let pieces = stream::unfold((file, from), move |(file, at)| async move {
        if at >= to {
            return None;
        }
        let mut piece = vec![0; (to - at).min(PIECE_BYTES) as usize];
        let next = at + piece.len() as u64;
        match file.read_at(&mut piece, at) {
            Ok(()) => Some((Ok(Frame::data(Bytes::from(piece))), (file, next))),
            Err(error) => Some((Err(error), (file, to))),
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}
