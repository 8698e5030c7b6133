//! Bodies that nobody reads: their senders are answered at once, and the connection goes on.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod support;

use std::net::SocketAddr;

use smalt::http::{Listener, Patience};
use smalt_protocol::Service;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;

use support::Client;

/// More than sockets and hyper hold between them.
const LARGE: usize = 32 * 1024 * 1024;

/// An emulator with a container, on a socket.
struct Served {
    client: Client,
    address: SocketAddr,
}

impl Served {
    async fn new(patience: Patience) -> Self {
        let client = Client::new();
        let made = client.send("PUT", "/made?restype=container", &[], "").await;
        assert_eq!(made.status, 201);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(Service::Blob, any, None, patience)
            .await
            .unwrap();
        let address = listener.address().unwrap();
        let serving = listener.serve(client.emulator().clone(), std::future::pending());
        tokio::spawn(serving);
        Served { client, address }
    }

    /// Path and query of a blob that may be written, and read.
    fn target(&self, container: &str) -> String {
        let url = self.client.signed_url(container, "blob", "cwr");
        url.split_once(":10000").unwrap().1.to_owned()
    }

    /// The head of a Put Blob.
    fn put(&self, container: &str, more: &str) -> String {
        let target = self.target(container);
        format!(
            "PUT {target} HTTP/1.1\r\nHost: smalt\r\nx-ms-blob-type: BlockBlob\r\n{more}\r\n\r\n"
        )
    }

    fn get(&self) -> String {
        format!(
            "GET {} HTTP/1.1\r\nHost: smalt\r\n\r\n",
            self.target("made")
        )
    }

    async fn connect(&self) -> Raw {
        Raw(BufStream::new(
            TcpStream::connect(self.address).await.unwrap(),
        ))
    }
}

/// A connection, byte for byte.
struct Raw(BufStream<TcpStream>);

impl Raw {
    async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// The next answer: its status, and whether the connection ends with it.
    async fn hear(&mut self) -> (u16, bool) {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head.push(char::from(self.0.read_u8().await.unwrap()));
        }
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| {
            rest.split("\r\n").next().unwrap().parse().unwrap()
        });
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.contains("\r\nconnection: close\r\n"))
    }

    async fn is_at_its_end(&mut self) -> bool {
        matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_))
    }
}

/// A refusal does not wait for the body, however large; what comes behind the body is answered too.
#[tokio::test]
async fn a_refusal_is_sent_before_the_body() {
    let served = Served::new(Patience::default()).await;
    let mut raw = served.connect().await;
    for _ in 0..2 {
        let length = format!("Content-Length: {LARGE}");
        raw.say(served.put("missing", &length)).await;
        assert_eq!(raw.hear().await, (404, false));
        raw.say(vec![b'x'; LARGE]).await;
        raw.say(served.get()).await;
        assert_eq!(raw.hear().await, (404, false));
    }
}

/// The same where only the last chunk says how long it is.
#[tokio::test]
async fn a_refused_body_in_chunks_is_read_to_its_end() {
    let served = Served::new(Patience::default()).await;
    let mut raw = served.connect().await;
    raw.say(served.put("missing", "Transfer-Encoding: chunked"))
        .await;
    let (status, ends) = raw.hear().await;
    assert!(status >= 400 && !ends, "{status}");
    for _ in 0..2_000 {
        raw.say("4\r\nmany\r\n").await;
    }
    raw.say("0\r\n\r\n").await;
    raw.say(served.get()).await;
    assert_eq!(raw.hear().await, (404, false));
}

/// Who waits for `100 Continue` and is refused hears no such thing, and that the connection closes.
#[tokio::test]
async fn who_asks_first_and_is_refused_keeps_the_body() {
    let served = Served::new(Patience::default()).await;
    let mut raw = served.connect().await;
    let asks = "Content-Length: 4\r\nExpect: 100-continue";
    raw.say(served.put("missing", asks)).await;
    assert_eq!(raw.hear().await, (404, true));
    assert!(raw.is_at_its_end().await);

    let mut raw = served.connect().await;
    raw.say(served.put("made", asks)).await;
    assert_eq!(raw.hear().await, (100, false));
    raw.say("body").await;
    assert_eq!(raw.hear().await, (201, false));
    raw.say(served.get()).await;
    assert_eq!(raw.hear().await, (200, false));
}

/// Where a body stops coming the answer says that nothing more is read.
#[tokio::test]
async fn a_body_that_stalls_ends_the_connection() {
    let served = Served::new(Patience::of_ms(50)).await;
    let mut raw = served.connect().await;
    raw.say(served.put("made", "Content-Length: 4")).await;
    raw.say("bo").await;
    assert_eq!(raw.hear().await, (400, true));
    assert!(raw.is_at_its_end().await);
}
