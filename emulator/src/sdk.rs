//! The emulator as the `HttpClient` of Microsoft's SDK: no socket, no credential, no sleeping.
//!
//! [`Emulator::sdk_transport`] signs every request as the account's owner and serves it in process.
//! Under tokio's paused clock the service, the client and the test move together.
//!
//! ```
//! use std::time::Duration;
//! use azure_core::http::{ClientOptions, Url};
//! use azure_storage_blob::{BlobServiceClient, BlobServiceClientOptions};
//! use smalt::{Clock, Emulator, Timestamp};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Clock::tokio(Timestamp::from_unix_s(1_700_000_000));
//! let emulator = Emulator::builder().clock(clock).seed(1).open()?;
//! let options = BlobServiceClientOptions {
//!     client_options: ClientOptions {
//!         transport: Some(emulator.sdk_transport()),
//!         ..Default::default()
//!     },
//!     ..Default::default()
//! };
//! let endpoint = Url::parse("http://127.0.0.1:10000/devstoreaccount1/")?;
//! let blobs = BlobServiceClient::new(endpoint, None, Some(options))?;
//! blobs.blob_container_client("events").create(None).await?;
//! tokio::time::sleep(Duration::from_secs(7 * 86_400)).await; // a week in no time
//! assert_eq!(emulator.now(), Timestamp::from_unix_s(1_700_000_000 + 7 * 86_400));
//! # Ok(())
//! # }
//! ```

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::headers::Headers;
use azure_core::http::request::{Body as SdkBody, Request as SdkRequest};
use azure_core::http::{AsyncRawResponse, HttpClient, StatusCode, Transport};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::header::HOST;
use http::{HeaderName, HeaderValue, Method, Request};
use http_body::Frame;
use http_body_util::{BodyExt as _, BodyStream, StreamBody};
use smalt_protocol::Service;

use crate::body::{self, Body};
use crate::emulator::Emulator;
use crate::owner;

impl Emulator {
    /// Returns a transport for the SDK's client options. Requests need no credential: they are
    /// signed as the owner of the account that they address.
    pub fn sdk_transport(&self) -> Transport {
        Transport::new(Arc::new(InProcess(self.clone())))
    }
}

#[derive(Debug)]
struct InProcess(Emulator);

#[async_trait]
impl HttpClient for InProcess {
    async fn execute_request(&self, request: &SdkRequest) -> azure_core::Result<AsyncRawResponse> {
        let mut request = to_http(request).map_err(|e| error(ErrorKind::Other, e))?;
        sign(&self.0, &mut request).map_err(|e| error(ErrorKind::Other, e))?;
        let response = self
            .0
            .call(request)
            .await
            .map_err(|e| error(ErrorKind::Io, e))?;
        let (head, body) = response.into_parts();
        let mut headers = Headers::new();
        for (name, value) in &head.headers {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            headers.insert(name.as_str().to_owned(), value);
        }
        let chunks = BodyStream::new(body)
            .try_filter_map(|frame| async { Ok(frame.into_data().ok()) })
            .map_err(|e| error(ErrorKind::Io, e));
        let status = StatusCode::from(head.status.as_u16());
        Ok(AsyncRawResponse::new(status, headers, Box::pin(chunks)))
    }
}

fn error<E>(kind: ErrorKind, cause: E) -> azure_core::Error
where
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    azure_core::Error::new(kind, cause)
}

fn to_http(request: &SdkRequest) -> Result<Request<Body>, http::Error> {
    let url = request.url();
    let mut built = Request::builder()
        .method(Method::from_bytes(request.method().as_str().as_bytes())?)
        .uri(url.as_str())
        .header(HOST, url.authority());
    for (name, value) in request.headers().iter() {
        built = built.header(
            HeaderName::from_bytes(name.as_str().as_bytes())?,
            HeaderValue::from_bytes(value.as_str().as_bytes())?,
        );
    }
    let declared = request
        .headers()
        .iter()
        .any(|(name, _)| name.as_str() == "content-length");
    if let Some(length) = request
        .body()
        .len()
        .filter(|length| *length > 0 && !declared)
    {
        built = built.header(http::header::CONTENT_LENGTH, length);
    }
    built.body(match request.body() {
        SdkBody::Bytes(bytes) => body::full(Bytes::clone(bytes)),
        SdkBody::SeekableStream(stream) => {
            let chunks = dyn_clone::clone_box(&**stream).map_ok(Frame::data);
            StreamBody::new(chunks.map_err(io::Error::other)).boxed_unsync()
        }
    })
}

/// Signs a request as the owner of the account in its path or host name.
fn sign(emulator: &Emulator, request: &mut Request<Body>) -> Result<(), http::Error> {
    let core = emulator.core();
    let (host, path) = (
        request.uri().host().unwrap_or_default(),
        request.uri().path(),
    );
    let by_host = host.split('.').next().unwrap_or_default();
    let by_path = path
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    let accounts = &core.config.accounts;
    let found = accounts
        .get_key_value(by_host)
        .or_else(|| accounts.get_key_value(by_path));
    // Queues use the same signature as blobs; there is no Rust SDK for tables yet.
    let account = found.map_or(by_path, |(name, _)| name.as_str()).to_owned();
    owner::sign(core, Service::Blob, &account, request)
}
