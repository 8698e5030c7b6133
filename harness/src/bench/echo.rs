//! The bare server: hyper with smalt's settings, whose answers need no work.
//!
//! The header `x-echo: <status> <bytes>` tells the server what to answer; smalt and Azurite ignore
//! it.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// Header with the status and length of the wanted answer.
pub const HEADER: &str = "x-echo";
/// Largest answer.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Same as in smalt (`emulator/src/http/limits.rs`).
const HEADERS_MAX: usize = 256;
/// Same as in smalt.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Same as in smalt.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Options of the hidden command `harness echo`; there are none.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {}

/// Serves on a free port, which is printed, until the process is killed.
pub async fn run_command(_: &Options) -> anyhow::Result<std::process::ExitCode> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?);
    let content = Bytes::from(vec![b'a'; BYTES_MAX]);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_BYTES_MAX * 4)
        .max_header_size(HEAD_BYTES_MAX)
        .auto_date_header(false);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let content = content.clone();
        let service = service_fn(move |request| answer(request, content.clone()));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        // The client notices a broken connection.
        tokio::spawn(async move { drop(connection.await) });
    }
}

async fn answer(
    request: Request<Incoming>,
    content: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, mut body) = request.into_parts();
    while let Some(Ok(part)) = body.frame().await {
        drop(part);
    }
    let (status, length) = asked(&head.headers);
    let is_head = head.method == Method::HEAD;
    let shown = content.slice(..if is_head { 0 } else { length });
    let mut response = Response::new(Full::new(shown));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert("content-length", length.into());
    Ok(response)
}

fn asked(headers: &HeaderMap) -> (StatusCode, usize) {
    let text = headers.get(HEADER).and_then(|value| value.to_str().ok());
    let (status, length) = text
        .and_then(|text| text.split_once(' '))
        .unwrap_or_default();
    let status = status.parse().unwrap_or(StatusCode::BAD_REQUEST);
    let length: usize = length.parse().unwrap_or_default();
    (status, length.min(BYTES_MAX))
}
