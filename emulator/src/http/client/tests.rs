//! The client against loopback servers with fixed responses.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// Starts a server that sends `answer` on every connection and closes it; the task returns the
/// request that it received.
async fn serve(answer: &'static [u8]) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap().to_string();
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(stream.read_u8().await.unwrap());
        }
        stream.write_all(answer).await.unwrap();
        String::from_utf8(asked).unwrap()
    });
    (at, asked)
}

fn client(rules: &[&str]) -> SourceClient {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    SourceClient::new(SourceRules::new(rules)).unwrap()
}

fn get(url: &str) -> Request<Bytes> {
    Request::get(url)
        .header("range", "bytes=1-")
        .body(Bytes::new())
        .unwrap()
}

#[tokio::test]
async fn request_to_a_source_has_path_and_host() {
    let (at, asked) = serve(b"HTTP/1.1 206 Partial\r\nContent-Length: 2\r\nx: y\r\n\r\nok").await;
    let url = format!("http://{at}/c/b?sig=a%2Bb");
    let answer = client(&["127.0.0.1"]).fetch(get(&url)).await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["x"]),
        (206, &"y".parse().unwrap())
    );
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "ok");
    let asked = asked.await.unwrap();
    assert!(
        asked.starts_with("GET /c/b?sig=a%2Bb HTTP/1.1\r\n"),
        "{asked}"
    );
    assert!(asked.contains(&format!("host: {at}\r\n")), "{asked}");
    assert!(asked.contains("range: bytes=1-\r\n"), "{asked}");
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let (at, _) = serve(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\n\r\n").await;
    let answer = client(&["all"]).fetch(get(&format!("http://{at}/"))).await;
    assert_eq!(answer.unwrap().status(), 302);
}

#[tokio::test]
async fn sources_that_the_rules_forbid_get_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for (rules, host) in [
        (&["public"][..], "127.0.0.1"),
        (&["public"], "[::ffff:127.0.0.1]"),
        (&["public"], "localhost"),
        (&["none"], "localhost"),
        (&["10.0.0.0/8", "*.localhost"], "localhost"),
    ] {
        let url = format!("http://{host}:{port}/c/b");
        let refused = client(rules).fetch(get(&url)).await.unwrap_err();
        assert!(
            matches!(refused, FetchError::Forbidden(_)),
            "{host}: {refused:?}"
        );
    }
    // The client did not connect.
    let accepted = tokio::time::timeout(Duration::ZERO, listener.accept()).await;
    assert!(accepted.is_err());
}

#[tokio::test]
async fn closed_port_and_other_protocol_are_unreachable() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let (nonsense, _) = serve(b"220 mail.example ESMTP\r\n").await;
    for url in [format!("http://{nobody}/"), format!("http://{nonsense}/")] {
        let refused = client(&["all"]).fetch(get(&url)).await.unwrap_err();
        assert!(matches!(refused, FetchError::Unreachable(_)), "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_source_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let begun = Instant::now();
    let url = format!("http://{at}/");
    let refused = client(&["all"]).fetch(get(&url)).await.unwrap_err();
    assert_eq!(refused, FetchError::TimedOut(at.to_string()));
    assert!(begun.elapsed() >= SOURCE_HEAD_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn stalled_body_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour";
        stream.write_all(head).await.unwrap();
        stream
    });
    let url = format!("http://{at}/");
    let answer = client(&["all"]).fetch(get(&url)).await.unwrap();
    let _open = server.await.unwrap();
    let broken = answer.into_body().collect().await.unwrap_err();
    assert_eq!(broken.kind(), io::ErrorKind::TimedOut);
}
