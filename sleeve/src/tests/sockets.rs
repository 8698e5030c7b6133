//! Tests of the socket transport against small servers on the loopback interface.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::port::{CallContext, Storage as _};
use crate::{
    Account, AzureStorage, Credential, ErrorKind, HyperTransport, HyperTransportSettings, Settings,
    Transport, TransportError,
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers the n-th request overall with the n-th text, and closes after a text that says so or is
/// cut off.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    answers: &'static [&'static str],
    served: &AtomicUsize,
) {
    let mut request = Vec::new();
    loop {
        let mut byte = [0; 1024];
        match stream.read(&mut byte).await {
            Ok(count) if count > 0 => request.extend_from_slice(&byte[..count]),
            _ => return,
        }
        if !request.ends_with(b"\r\n\r\n") {
            continue;
        }
        request.clear();
        let answer = answers[served.fetch_add(1, Ordering::SeqCst) % answers.len()];
        let _ = stream.write_all(answer.as_bytes()).await;
        if answer != OK {
            return;
        }
    }
}

struct Server {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

async fn server(answers: &'static [&'static str], tls: Option<TlsAcceptor>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        let served = Arc::new(AtomicUsize::new(0));
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let (tls, served) = (tls.clone(), Arc::clone(&served));
            tokio::spawn(async move {
                match tls {
                    None => serve(stream, answers, &served).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, answers, &served).await;
                        }
                    }
                }
            });
        }
    });
    Server {
        address,
        connections,
    }
}

fn get(url: &str) -> http::Request<Bytes> {
    let uri: http::Uri = url.parse().unwrap();
    let host = uri.authority().unwrap().to_string();
    let request = http::Request::get(uri).header("Host", host);
    request.body(Bytes::new()).unwrap()
}

fn transport(change: impl FnOnce(&mut HyperTransportSettings)) -> HyperTransport {
    let mut settings = HyperTransportSettings::default();
    change(&mut settings);
    HyperTransport::new(settings).unwrap()
}

#[tokio::test]
async fn connections_are_reused() {
    let server = server(&[OK], None).await;
    let transport = transport(|_| {});
    for _ in 0..5 {
        let answer = transport
            .round_trip(get(&format!("http://{}/x", server.address)))
            .await;
        assert_eq!(answer.unwrap().body(), "ok");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    assert_eq!(transport.idle_connections(), 1);
}

/// A request that the server took over a kept connection may have been carried out.
#[tokio::test]
async fn requests_that_were_taken_are_not_sent_again() {
    let server = server(&[OK, ""], None).await;
    let transport = transport(|_| {});
    let url = format!("http://{}/x", server.address);
    transport.round_trip(get(&url)).await.unwrap();
    let error = transport.round_trip(get(&url)).await;
    assert!(
        matches!(error, Err(TransportError::NoAnswer(_))),
        "{error:?}"
    );
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn closed_connections_are_not_reused() {
    let closing = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = server(Box::leak(Box::new([closing])), None).await;
    let transport = transport(|_| {});
    for _ in 0..3 {
        let answer = transport
            .round_trip(get(&format!("http://{}/x", server.address)))
            .await;
        assert_eq!(answer.unwrap().body(), "ok");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 3);
}

/// Refused connections and unknown hosts were surely not reached; after a cut or overlong response
/// the outcome is unknown.
#[tokio::test]
async fn failures_say_whether_the_request_can_have_arrived() {
    let vacant = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = transport(|_| {})
        .round_trip(get(&format!("http://{vacant}/")))
        .await;
    assert!(
        matches!(error, Err(TransportError::Unreachable(_))),
        "{error:?}"
    );
    let cut: &[&str] = &[
        "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\npart",
        "",
        "garbage\r\n\r\n",
    ];
    let server = server(Box::leak(cut.into()), None).await;
    let transport = transport(|_| {});
    for answer in cut {
        let error = transport
            .round_trip(get(&format!("http://{}/", server.address)))
            .await;
        assert!(
            matches!(error, Err(TransportError::NoAnswer(_))),
            "{answer}: {error:?}"
        );
    }
    let error = transport.round_trip(get("ftp://h/")).await;
    assert!(
        matches!(error, Err(TransportError::Malformed(_))),
        "{error:?}"
    );
}

/// The head of an error response still counts when the body is cut off.
#[tokio::test]
async fn truncated_error_response_is_still_an_error() {
    let busy = "HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 99\r\n\r\n<Error>";
    let server = server(Box::leak(Box::new([busy])), None).await;
    let transport = transport(|_| {});
    let url = format!("http://{}/x", server.address);
    let answer = transport.round_trip(get(&url)).await.unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["retry-after"], "7");
    assert_eq!(transport.idle_connections(), 0);
}

/// A response that is too large is not read, with or without Content-Length.
#[tokio::test]
async fn large_responses_are_rejected() {
    let large: &[&str] = &[
        "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\nhello world\r\n",
    ];
    let server = server(Box::leak(large.into()), None).await;
    let transport = transport(|settings| settings.answer_bytes_max = 10);
    for _ in large {
        let error = transport
            .round_trip(get(&format!("http://{}/", server.address)))
            .await;
        assert_eq!(error.unwrap_err(), TransportError::AnswerTooLarge(10));
    }
}

/// A response to HEAD has a length and no body, and the connection stays usable.
#[tokio::test]
async fn head_has_no_body() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let server = server(Box::leak(Box::new([head])), None).await;
    let mut request = get(&format!("http://{}/", server.address));
    *request.method_mut() = http::Method::HEAD;
    let answer = transport(|_| {}).round_trip(request).await.unwrap();
    assert_eq!(answer.headers()["content-length"], "5");
    assert!(answer.body().is_empty());
}

/// A blob may have far more metadata than the hundred headers that hyper accepts by default.
#[tokio::test]
async fn many_headers_are_read() {
    let meta: String = (0..900)
        .map(|n| format!("x-ms-meta-n{n}: {n}\r\n"))
        .collect();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{meta}\r\n");
    let answer: &'static str = Box::leak(answer.into_boxed_str());
    let server = server(Box::leak(Box::new([answer])), None).await;
    let answer = transport(|_| {})
        .round_trip(get(&format!("http://{}/", server.address)))
        .await;
    assert_eq!(answer.unwrap().headers()["x-ms-meta-n899"], "899");
}

#[tokio::test]
async fn old_connections_are_not_used() {
    let server = server(&[OK], None).await;
    let transport = transport(|settings| settings.idle_timeout = Duration::ZERO);
    for _ in 0..3 {
        let answer = transport
            .round_trip(get(&format!("http://{}/x", server.address)))
            .await;
        assert_eq!(answer.unwrap().body(), "ok");
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn silent_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let transport = transport(|settings| settings.read_timeout = Duration::from_millis(20));
    let error = transport
        .round_trip(get(&format!("http://{address}/")))
        .await;
    assert!(
        matches!(error, Err(TransportError::NoAnswer(_))),
        "{error:?}"
    );
}

#[tokio::test]
async fn server_without_tls_handshake_is_unreachable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let transport = transport(|settings| settings.connect_timeout = Duration::from_millis(20));
    let asked = transport.round_trip(get(&format!("https://{address}/")));
    let error = tokio::time::timeout(Duration::from_secs(10), asked).await;
    assert!(
        matches!(error, Ok(Err(TransportError::Unreachable(_)))),
        "{error:?}"
    );
}

fn certificate(name: &str) -> (Vec<u8>, TlsAcceptor) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (
        certificate.into_bytes(),
        TlsAcceptor::from(Arc::new(config)),
    )
}

/// A cloud host name can lead to a local endpoint, but only if its certificate is trusted.
#[tokio::test]
async fn tls_with_own_authority_and_address() {
    let host = "acct.blob.core.windows.net";
    let (pem, acceptor) = certificate(host);
    let server = server(&[OK], Some(acceptor)).await;
    let resolve = HashMap::from([
        (host.to_owned(), server.address),
        ("acct.queue.core.windows.net".to_owned(), server.address),
        ("other.example".to_owned(), server.address),
    ]);
    let trusting = transport(|settings| {
        settings.extra_ca_pem = pem;
        settings.resolve = resolve.clone();
    });
    let answer = trusting.round_trip(get(&format!("https://{host}/c"))).await;
    assert_eq!(answer.unwrap().body(), "ok");
    let error = trusting.round_trip(get("https://other.example/c")).await;
    assert!(
        matches!(error, Err(TransportError::Untrusted(_))),
        "{error:?}"
    );
    let wary = transport(|settings| settings.resolve = resolve);
    let error = wary.round_trip(get(&format!("https://{host}/c"))).await;
    assert!(
        matches!(error, Err(TransportError::Untrusted(_))),
        "{error:?}"
    );
    let before = server.connections.load(Ordering::SeqCst);
    let queues = Some("https://acct.queue.core.windows.net");
    let credential = Credential::key(super::service::KEY).unwrap();
    let account = Account::new("acct", None, queues, credential).unwrap();
    let storage = AzureStorage::open(account, Arc::new(wary), Settings::default()).unwrap();
    let cx = CallContext::default();
    let error = storage.queue_properties(&cx, "jobs").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Untrusted);
    let asked = server.connections.load(Ordering::SeqCst) - before;
    assert_eq!(asked, 1, "it stays untrusted after every attempt");
}
