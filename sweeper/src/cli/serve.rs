//! What a running sweeper shows: `/livez`, `/readyz`, `/status` and `/metrics`.
//!
//! An address that is taken costs these answers and a warning, not the run.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use smalt_sweeper::Monitor;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at the same time: probes and scrapers are few.
const CONNECTIONS_MAX: usize = 64;
/// How long a connection may take to send a request's head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which may be a lack of descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// What an address answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Roles {
    health: bool,
    metrics: bool,
}

/// An answer: status, content type, text.
type Answer = (StatusCode, &'static str, String);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Begins to answer at these addresses.
pub(crate) async fn start(monitor: &Monitor, health: Option<&str>, metrics: Option<&str>) {
    let roles = |health, metrics| Roles { health, metrics };
    let addresses = match (health, metrics) {
        (Some(health), Some(metrics)) if health == metrics => vec![(health, roles(true, true))],
        (health, metrics) => {
            let health = health.map(|at| (at, roles(true, false)));
            let metrics = metrics.map(|at| (at, roles(false, true)));
            health.into_iter().chain(metrics).collect()
        }
    };
    for (address, roles) in addresses {
        match TcpListener::bind(address).await {
            Ok(socket) => {
                let at = socket.local_addr();
                let at = at.map_or(address.to_owned(), |at| at.to_string());
                tracing::info!(op = "serve", address = %at, "answering");
                tokio::spawn(serve(socket, monitor.clone(), roles));
            }
            Err(error) => tracing::warn!(
                op = "serve", address, reason = %error,
                "going on without health and metrics there"
            ),
        }
    }
}

async fn serve(socket: TcpListener, monitor: Monitor, roles: Roles) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else {
            return;
        };
        let stream = match socket.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(op = "serve", reason = %error, "accept failed");
                tokio::time::sleep(ACCEPT_AGAIN).await;
                continue;
            }
        };
        let monitor = monitor.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let answered = answer(&monitor, roles, request.method(), request.uri().path());
                async move { Ok::<_, Infallible>(response(answered)) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away early is no event.
            let _ = connection.await;
            drop(place);
        });
    }
}

fn response((status, kind, text): Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// The answer to a request.
fn answer(monitor: &Monitor, roles: Roles, method: &Method, path: &str) -> Answer {
    let refuse = |status, why: &str| (status, TEXT, format!("{why}\n"));
    let ours = match path {
        "/livez" | "/readyz" | "/status" => roles.health,
        "/metrics" => roles.metrics,
        _ => false,
    };
    if !ours {
        return refuse(StatusCode::NOT_FOUND, "nothing here");
    }
    if method != Method::GET && method != Method::HEAD {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "GET it");
    }
    match path {
        "/metrics" => (StatusCode::OK, PROMETHEUS, monitor.prometheus()),
        "/status" => (StatusCode::OK, JSON, format!("{}\n", monitor.status())),
        "/readyz" => match monitor.readiness() {
            Ok(()) => (StatusCode::OK, TEXT, "ok\n".to_owned()),
            Err(why) => refuse(StatusCode::SERVICE_UNAVAILABLE, &why),
        },
        _ => (StatusCode::OK, TEXT, "ok\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_answers_what_is_its_own() {
        let monitor = Monitor::default();
        for (health, metrics, method, path, expected) in [
            (true, false, Method::GET, "/livez", StatusCode::OK),
            (true, false, Method::HEAD, "/livez", StatusCode::OK),
            (
                true,
                false,
                Method::GET,
                "/readyz",
                StatusCode::SERVICE_UNAVAILABLE,
            ),
            (true, false, Method::GET, "/status", StatusCode::OK),
            (true, false, Method::GET, "/metrics", StatusCode::NOT_FOUND),
            (false, true, Method::GET, "/metrics", StatusCode::OK),
            (false, true, Method::GET, "/status", StatusCode::NOT_FOUND),
            (
                true,
                true,
                Method::POST,
                "/status",
                StatusCode::METHOD_NOT_ALLOWED,
            ),
            (true, true, Method::GET, "/", StatusCode::NOT_FOUND),
        ] {
            let (status, ..) = answer(&monitor, Roles { health, metrics }, &method, path);
            assert_eq!(status, expected, "{method} {path}");
        }
    }
}
