//! Raw bytes on a connection to the server.

use std::time::Duration;

use smalt::Service;
use smalt::http::{Listener, Patience};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::requests::{emulator, runtime};

/// Time limit for a connection whose client sends everything at once and then closes its side.
const DONE: Duration = Duration::from_secs(5);

/// Sends an input to the blob service and reads all answers.
///
/// # Panics
/// When the connection does not end, when an answer is a 5xx other than 501 and 505, or when an
/// answer is not HTTP.
pub fn sockets(input: &[u8]) {
    runtime(false).block_on(async {
        let served = serve(input).await;
        assert!(served.is_ok(), "{served:?}");
    });
}

async fn serve(input: &[u8]) -> std::io::Result<()> {
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let listener = Listener::bind(Service::Blob, local, None, Patience::default()).await?;
    let address = listener.address()?;
    let server = tokio::spawn(listener.serve(emulator(), std::future::pending()));
    let stream = TcpStream::connect(address).await?;
    let (mut read, mut write) = stream.into_split();
    let sent = async {
        // The server may close before everything is sent.
        let _ = write.write_all(input).await;
        let _ = write.shutdown().await;
    };
    let mut answers = Vec::new();
    let received = async {
        // A connection reset ends the answers as well.
        let _ = read.read_to_end(&mut answers).await;
    };
    let ended = tokio::time::timeout(DONE, futures_util::future::join(sent, received)).await;
    assert!(ended.is_ok(), "the connection does not end");
    server.abort();
    if !answers.is_empty() {
        let status = answers.get(9..12).unwrap_or_default();
        let is_served = status.first().is_some_and(|digit| *digit < b'5');
        let is_http = answers.starts_with(b"HTTP/1.");
        let shown = String::from_utf8_lossy(&answers[..answers.len().min(500)]);
        assert!(is_http, "not HTTP: {shown}");
        assert!(is_served || matches!(status, b"501" | b"505"), "{shown}");
    }
    Ok(())
}
