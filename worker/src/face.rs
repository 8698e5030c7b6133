//! The HTTP endpoints of a running worker: `/livez`, `/readyz`, `/status`, `/metrics`, and
//! optionally one path for POST requests.
//!
//! If its address is in use, a worker logs a warning and continues without the endpoints.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Maximum number of concurrent connections; probes and scrapers need few.
const CONNECTIONS_MAX: usize = 64;
/// Time limit for a client to send the head of a request, and again to send its body.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after a failed accept, which may be caused by a lack of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a worker reports about itself.
pub trait Face: Send + Sync + 'static {
    /// Returns whether the worker is ready.
    ///
    /// # Errors
    /// The reason why it is not, as text for the operator.
    fn readiness(&self) -> Result<(), String>;

    /// Returns the status as one JSON document.
    fn status(&self) -> serde_json::Value;

    /// Returns the metrics in the Prometheus text format.
    fn metrics(&self) -> String;

    /// Returns the path that accepts POST requests on the health address, and the maximum body size
    /// in bytes.
    fn post_path(&self) -> Option<(&'static str, usize)> {
        None
    }

    /// Handles a POST request to that path.
    fn posted(&self, _head: &Parts, _body: &[u8]) -> Answer {
        Answer::refusal(StatusCode::NOT_FOUND, "not found")
    }
}

/// The endpoints served at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles {
    /// Serves `/livez`, `/readyz`, `/status` and the POST path.
    pub health: bool,
    /// Serves `/metrics`.
    pub metrics: bool,
}

/// An HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: StatusCode,
    kind: &'static str,
    /// Body text.
    pub text: String,
}

impl Answer {
    fn new(status: StatusCode, kind: &'static str, text: String) -> Self {
        Answer { status, kind, text }
    }

    /// Creates a response with a JSON document.
    pub fn json(status: StatusCode, document: &serde_json::Value) -> Self {
        Answer::new(status, JSON, format!("{document:#}\n"))
    }

    /// Creates an error response with its reason.
    pub fn refusal(status: StatusCode, why: &str) -> Self {
        Answer::new(status, TEXT, format!("{why}\n"))
    }

    fn response(self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(Bytes::from(self.text)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let kind = header::HeaderValue::from_static(self.kind);
        headers.insert(header::CONTENT_TYPE, kind);
        if self.status == StatusCode::UNAUTHORIZED {
            let scheme = header::HeaderValue::from_static("Bearer");
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

/// Starts serving at these addresses, which may be the same.
pub async fn start(face: &Arc<impl Face>, health: Option<&str>, metrics: Option<&str>) {
    let mut addresses: Vec<_> = health.into_iter().chain(metrics).collect();
    addresses.dedup();
    for address in addresses {
        let roles = Roles {
            health: health == Some(address),
            metrics: metrics == Some(address),
        };
        match TcpListener::bind(address).await {
            Ok(socket) => {
                let at = socket.local_addr();
                let at = at.map_or(address.to_owned(), |at| at.to_string());
                tracing::info!(op = "serve", address = %at, "answering");
                tokio::spawn(serve(socket, Arc::clone(face), roles));
            }
            Err(error) => tracing::warn!(
                op = "serve", address, reason = %error,
                "continuing without health and metrics at this address"
            ),
        }
    }
}

/// Checks whether an address can be bound.
///
/// # Errors
/// The error of the operating system.
pub async fn can_bind(address: &str) -> io::Result<()> {
    TcpListener::bind(address).await.map(drop)
}

/// Returns whether a string is `HOST:PORT`, with a host name, an IPv4 address, or an IPv6 address
/// in brackets.
pub fn is_address(text: &str) -> bool {
    let named = text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        !host.is_empty() && host.chars().all(is_host) && port.parse::<u16>().is_ok()
    });
    named || text.parse::<std::net::SocketAddr>().is_ok()
}

/// Serves requests on a socket. Never returns.
pub async fn serve(socket: TcpListener, face: Arc<impl Face>, roles: Roles) {
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
        let face = Arc::clone(&face);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let face = Arc::clone(&face);
                async move { Ok::<_, Infallible>(respond(&*face, roles, request).await.response()) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(SEND_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            // Errors of clients that close early are not logged.
            let _ = connection.await;
            drop(place);
        });
    }
}

async fn respond(face: &impl Face, roles: Roles, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let bytes_max = face.post_path().map_or(0, |(_, bytes_max)| bytes_max);
    let read = Limited::new(body, bytes_max).collect();
    let body = match is_post(face, roles, &head) {
        false => Bytes::new(),
        true => match tokio::time::timeout(SEND_TIMEOUT, read).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => {
                let why = format!("the body has more than {bytes_max} bytes");
                return Answer::refusal(StatusCode::PAYLOAD_TOO_LARGE, &why);
            }
            Err(_) => return Answer::refusal(StatusCode::REQUEST_TIMEOUT, "no body arrived"),
        },
    };
    answer(face, roles, &head, &body)
}

fn is_post(face: &impl Face, roles: Roles, head: &Parts) -> bool {
    let path = face.post_path().map(|(path, _)| path);
    roles.health && head.method == Method::POST && path == Some(head.uri.path())
}

/// Returns the response to a request.
pub fn answer(face: &impl Face, roles: Roles, head: &Parts, body: &[u8]) -> Answer {
    if is_post(face, roles, head) {
        return face.posted(head, body);
    }
    let path = head.uri.path();
    let post_path = face.post_path().map(|(path, _)| path);
    let wanted = match path {
        "/metrics" if roles.metrics => "GET",
        "/livez" | "/readyz" | "/status" if roles.health => "GET",
        path if roles.health && post_path == Some(path) => "POST",
        _ => return Answer::refusal(StatusCode::NOT_FOUND, "not found"),
    };
    if wanted == "POST" || (head.method != Method::GET && head.method != Method::HEAD) {
        let why = format!("{path} accepts only {wanted}");
        return Answer::refusal(StatusCode::METHOD_NOT_ALLOWED, &why);
    }
    match path {
        "/metrics" => Answer::new(StatusCode::OK, PROMETHEUS, face.metrics()),
        "/status" => Answer::json(StatusCode::OK, &face.status()),
        "/readyz" => match face.readiness() {
            Ok(()) => Answer::new(StatusCode::OK, TEXT, "ok\n".to_owned()),
            Err(why) => Answer::refusal(StatusCode::SERVICE_UNAVAILABLE, &why),
        },
        _ => Answer::new(StatusCode::OK, TEXT, "ok\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ready if `.0` is true; accepts POST bodies of two bytes.
    struct Simple(bool);

    impl Face for Simple {
        fn readiness(&self) -> Result<(), String> {
            self.0.then_some(()).ok_or_else(|| "starting".to_owned())
        }

        fn status(&self) -> serde_json::Value {
            serde_json::json!({ "ready": self.0 })
        }

        fn metrics(&self) -> String {
            "up 1\n".to_owned()
        }

        fn post_path(&self) -> Option<(&'static str, usize)> {
            Some(("/notify", 2))
        }

        fn posted(&self, _head: &Parts, body: &[u8]) -> Answer {
            match body {
                b"ok" => Answer::json(StatusCode::ACCEPTED, &serde_json::json!({ "woken": 1 })),
                _ => Answer::refusal(StatusCode::UNAUTHORIZED, "a token is required"),
            }
        }
    }

    #[test]
    fn each_address_answers_its_own_paths() {
        for (request, of_health, of_metrics) in [
            ("GET /livez", 200, 404),
            ("HEAD /livez", 200, 404),
            ("GET /readyz", 503, 404),
            ("GET /status", 200, 404),
            ("POST /status", 405, 404),
            ("GET /notify", 405, 404),
            ("POST /notify", 202, 404),
            ("GET /metrics", 404, 200),
            ("DELETE /metrics", 404, 405),
            ("GET /", 404, 404),
        ] {
            let (method, path) = request.split_once(' ').unwrap();
            let head = Request::builder().method(method).uri(path).body(());
            let (head, ()) = head.unwrap().into_parts();
            for (health, wanted) in [(true, of_health), (false, of_metrics)] {
                let roles = Roles {
                    health,
                    metrics: !health,
                };
                let found = answer(&Simple(false), roles, &head, b"ok").status;
                assert_eq!(found.as_u16(), wanted, "{request}");
            }
        }
    }

    /// Sends one request over a socket and returns the whole response.
    async fn exchange(address: &str, request: &str, body: &str) -> String {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let length = body.len();
        let head = format!("{request} HTTP/1.1\r\nhost: h\r\ncontent-length: {length}");
        let request = format!("{head}\r\nconnection: close\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
    }

    #[tokio::test]
    async fn one_socket_serves_both_roles_and_bounds_posts() {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let face = Arc::new(Simple(true));
        let roles = Roles {
            health: true,
            metrics: true,
        };
        tokio::spawn(serve(socket, Arc::clone(&face), roles));
        for (request, body, status, ends) in [
            ("GET /readyz", "", "200", "\r\n\r\nok\n"),
            ("GET /metrics", "", "200", "up 1\n"),
            ("POST /notify", "ok", "202", "\n}\n"),
            ("POST /notify", "long", "413", "has more than 2 bytes\n"),
        ] {
            let response = exchange(&address, request, body).await;
            let starts = response.starts_with(&format!("HTTP/1.1 {status}"));
            assert!(starts && response.ends_with(ends), "{response}");
        }
        let refused = exchange(&address, "POST /notify", "no").await;
        assert!(refused.contains("www-authenticate: Bearer"), "{refused}");
        assert!(can_bind(&address).await.is_err());
        // The address is in use; the worker continues without it.
        start(&face, Some(&address), Some(&address)).await;
    }

    #[test]
    fn addresses_are_host_and_port() {
        for good in ["127.0.0.1:9100", "localhost:0", "[::1]:1", "a-b.c_d:65535"] {
            assert!(is_address(good), "{good}");
        }
        for bad in ["9100", ":1", "h:65536", "a b:1", "http://h:1", "h:"] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
