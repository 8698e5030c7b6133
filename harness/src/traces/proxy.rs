//! The proxy: forwards every request, streams both bodies, and records the exchange.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::scrub::{Seen, account_of_host};
use super::tee::{Copy, Tee};
use crate::wire::endpoint::Endpoint;
use crate::wire::{Headers, WireError};

type Passed = http::Response<BoxBody<Bytes, hyper::Error>>;

/// The exchanges so far.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Exchanges with the index of their request, ordered by end.
    exchanges: Vec<(u64, Seen)>,
    /// Number of requests so far.
    requests: u64,
    /// Exchanges that could not be recorded, with reasons.
    pub lost: Vec<String>,
}

impl Log {
    /// Returns the exchanges in the order of their requests.
    pub fn ordered(mut self) -> Vec<Seen> {
        self.exchanges.sort_by_key(|(n, _)| *n);
        self.exchanges.into_iter().map(|(_, seen)| seen).collect()
    }

    /// Returns the number of recorded exchanges.
    pub fn len(&self) -> usize {
        self.exchanges.len()
    }

    /// Whether no exchange was recorded.
    pub fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Counts the answers whose status begins with this digit.
    pub fn answered(&self, hundred: u16) -> usize {
        let of = |(_, seen): &&(u64, Seen)| seen.status / 100 == hundred;
        self.exchanges.iter().filter(of).count()
    }
}

/// A proxy in front of one service.
pub struct Proxy {
    upstream: Endpoint,
    begun: Instant,
    log: Mutex<Log>,
    /// Called after each exchange.
    progress: Box<dyn Fn(&str) + Send + Sync>,
}

impl Proxy {
    /// Creates a proxy that starts recording now.
    pub fn new(upstream: Endpoint, progress: impl Fn(&str) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Proxy {
            upstream,
            begun: Instant::now(),
            log: Mutex::default(),
            progress: Box::new(progress),
        })
    }

    /// Returns the exchanges so far.
    pub fn log(&self) -> Log {
        self.with_log(|log| log.clone())
    }

    fn with_log<T>(&self, use_it: impl FnOnce(&mut Log) -> T) -> T {
        use_it(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accepts connections until the future is dropped.
    pub async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            // The client notices a connection that failed before it was accepted.
            if let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&self).connection(stream));
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        let service = hyper::service::service_fn(move |request| {
            let proxy = Arc::clone(&self);
            async move { Ok::<_, Infallible>(proxy.exchange(request).await) }
        });
        let mut server = hyper::server::conn::http1::Builder::new();
        server.preserve_header_case(true);
        // When a client disconnects, the bodies are cut, which is recorded.
        server
            .serve_connection(TokioIo::new(stream), service)
            .await
            .ok();
    }

    async fn exchange(self: Arc<Self>, request: http::Request<Incoming>) -> Passed {
        let n = self.with_log(|log| {
            log.requests += 1;
            log.requests
        });
        let seen = self.seen(&request);
        let line = format!("{} {}", seen.method, seen.target);
        let sent = Arc::new(Mutex::new(None));
        let keep = Arc::clone(&sent);
        let mut request = request.map(|body| {
            Tee::new(body, move |copy| {
                *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(copy);
            })
        });
        self.address(&mut request);
        match self.upstream.send(request).await {
            Ok(answer) => self.answer(n, seen, &sent, answer),
            Err(error) => {
                self.lose(&line, &error.to_string());
                unavailable(&error)
            }
        }
    }

    /// Returns the client's part of an exchange, without its body.
    fn seen(&self, request: &http::Request<Incoming>) -> Seen {
        let target = request.uri().path_and_query();
        let headers = Headers::from(request.headers()).pairs();
        let host = headers.iter().find(|(name, _)| name == "host");
        Seen {
            t: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            host: host.map(|(_, value)| value.clone()).unwrap_or_default(),
            method: request.method().to_string(),
            target: target.map_or_else(|| "/".to_owned(), ToString::to_string),
            request_headers: headers,
            request_body: Bytes::new(),
            status: 0,
            response_headers: Vec::new(),
            response_body: Bytes::new(),
        }
    }

    /// Sets the host of the request. Azure identifies the account by the host; when the path names
    /// the account, the client's host is kept.
    fn address<B>(&self, request: &mut http::Request<B>) {
        if account_of_host(&self.upstream.authority).is_some()
            && let Ok(host) = http::HeaderValue::from_str(&self.upstream.authority)
        {
            request.headers_mut().insert(http::header::HOST, host);
        }
    }

    fn answer(
        self: Arc<Self>,
        n: u64,
        mut seen: Seen,
        sent: &Arc<Mutex<Option<Copy>>>,
        answer: http::Response<Incoming>,
    ) -> Passed {
        seen.status = answer.status().as_u16();
        seen.response_headers = Headers::from(answer.headers()).pairs();
        let sent = Arc::clone(sent);
        answer.map(|body| {
            let tee = Tee::new(body, move |received| {
                let sent = sent.lock().unwrap_or_else(PoisonError::into_inner).take();
                self.keep(n, seen, sent.unwrap_or(Copy::Cut), received);
            });
            tee.boxed()
        })
    }

    fn keep(&self, n: u64, mut seen: Seen, sent: Copy, received: Copy) {
        let line = format!("{} {}", seen.method, seen.target);
        match (sent, received) {
            (Copy::Whole(sent), Copy::Whole(received)) => {
                seen.request_body = sent;
                seen.response_body = received;
                (self.progress)(&format!("{} {line}", seen.status));
                self.with_log(|log| log.exchanges.push((n, seen)));
            }
            (Copy::TooLarge, _) | (_, Copy::TooLarge) => self.lose(&line, "too large to keep"),
            (Copy::Cut, _) => self.lose(&line, "the request broke off or was not read completely"),
            (_, Copy::Cut) => self.lose(&line, "the answer broke off"),
        }
    }

    /// Records that an exchange is missing in the trace; omits its query, which may contain a
    /// signature.
    fn lose(&self, line: &str, why: &str) {
        let line = line.split('?').next().unwrap_or_default();
        self.with_log(|log| log.lost.push(format!("{line}: {why}")));
    }
}

/// Returns the client's answer when the service did not answer.
fn unavailable(error: &WireError) -> Passed {
    let body = Full::new(Bytes::from(format!("{error}\n")));
    let mut answer = http::Response::new(body.map_err(|never| match never {}).boxed());
    *answer.status_mut() = http::StatusCode::BAD_GATEWAY;
    answer
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const MEBIBYTE: usize = 1024 * 1024;

    /// A service that returns the request.
    async fn echo(request: http::Request<Incoming>) -> http::Response<Full<Bytes>> {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let answer = http::Response::builder().status(201);
        answer.header("x-ms-b", "2").body(Full::new(body)).unwrap()
    }

    /// Starts a service that disconnects in the middle of its answer, and returns its address.
    async fn broken_service() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_buf(&mut Vec::new()).await.unwrap();
            let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc";
            stream.write_all(begun).await.unwrap();
        });
        format!("http://{at}")
    }

    /// Starts an [`echo`] service, and returns its address.
    async fn service() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let service = hyper::service::service_fn(|request| async move {
                    Ok::<_, Infallible>(echo(request).await)
                });
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        format!("http://{at}")
    }

    /// Returns a proxy in front of a service, and a client of the proxy.
    async fn proxied(target: &str) -> (Arc<Proxy>, Endpoint) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = format!("http://{}", listener.local_addr().unwrap());
        let proxy = Proxy::new(Endpoint::at(target).unwrap(), |_| {});
        tokio::spawn(Arc::clone(&proxy).serve(listener));
        (proxy, Endpoint::at(&at).unwrap())
    }

    async fn send(client: &Endpoint, path: &str, body: Bytes) -> (u16, Option<Bytes>) {
        let request = http::Request::put(path).header("host", "here");
        let request = request.header("x-ms-a", "1").body(Full::new(body)).unwrap();
        let answer = client.send(request).await.unwrap();
        let status = answer.status().as_u16();
        (
            status,
            answer
                .collect()
                .await
                .ok()
                .map(http_body_util::Collected::to_bytes),
        )
    }

    /// The client gets what the service sent, and the log has both sides.
    #[tokio::test]
    async fn forwards_and_records() {
        let (proxy, client) = proxied(&service().await).await;
        let large = Bytes::from(vec![7; MEBIBYTE]);
        let bodies = [Bytes::new(), Bytes::from("abc"), large];
        for body in &bodies {
            let answered = send(&client, "/account/c?x=1", body.clone()).await;
            assert_eq!(answered, (201, Some(body.clone())));
        }
        let log = proxy.log();
        assert_eq!((log.len(), log.answered(2)), (bodies.len(), bodies.len()));
        assert_eq!(log.lost, Vec::<String>::new());
        for (seen, body) in log.ordered().iter().zip(&bodies) {
            assert_eq!((&seen.request_body, &seen.response_body), (body, body));
            assert_eq!(
                (seen.method.as_str(), seen.target.as_str()),
                ("PUT", "/account/c?x=1")
            );
            let has = |headers: &[(String, String)], name| headers.iter().any(|(n, _)| n == name);
            assert!(has(&seen.request_headers, "x-ms-a") && seen.host == "here");
            assert!(has(&seen.response_headers, "x-ms-b"));
        }
    }

    /// Broken answers and missing services are reported but not recorded.
    #[tokio::test]
    async fn failed_exchanges_are_reported() {
        let (proxy, client) = proxied(&broken_service().await).await;
        assert_eq!(send(&client, "/cut", Bytes::new()).await, (200, None));
        assert_eq!(proxy.log().lost, ["PUT /cut: the answer broke off"]);
        assert!(proxy.log().is_empty());
        let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = format!("http://{}", gone.local_addr().unwrap());
        drop(gone);
        let (proxy, client) = proxied(&target).await;
        let (status, _) = send(&client, "/c?sig=s3cret", Bytes::new()).await;
        assert_eq!((status, proxy.log().len()), (502, 0));
        let lost = proxy.log().lost.join("");
        assert!(
            lost.starts_with("PUT /c: ") && !lost.contains("s3cret"),
            "{lost}"
        );
    }
}
