//! An emulator on a socket, and raw connections to it.

use std::net::SocketAddr;
use std::time::Duration;

use smalt::http::{Listener, Patience};
use smalt_protocol::Service;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::Client;

/// More bytes than the sockets and hyper buffer together.
pub(crate) const LARGE: usize = 32 * 1024 * 1024;

/// Longer than any response that waits for nothing, and shorter than the timeout of a silent
/// client.
const AT_ONCE: Duration = Duration::from_secs(15);

/// An emulator with a container, on a socket.
pub(crate) struct Served {
    pub(crate) client: Client,
    address: SocketAddr,
}

impl Served {
    pub(crate) async fn new(patience: Patience) -> Self {
        Self::of(Client::new(), patience).await
    }

    pub(crate) async fn of(client: Client, patience: Patience) -> Self {
        client.create("made").await;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = Listener::bind(Service::Blob, any, None, patience)
            .await
            .unwrap();
        let address = listener.address().unwrap();
        let serving = listener.serve(client.emulator().clone(), std::future::pending());
        tokio::spawn(serving);
        Served { client, address }
    }

    /// Returns path and query of a blob that can be written and read.
    pub(crate) fn target(&self, container: &str) -> String {
        let url = self.client.signed_url(container, "blob", "cwr");
        url.split_once(":10000").unwrap().1.to_owned()
    }

    /// Returns the head of a Put Blob.
    pub(crate) fn put(&self, container: &str, more: &str) -> String {
        let target = self.target(container);
        format!(
            "PUT {target} HTTP/1.1\r\nHost: smalt\r\nx-ms-blob-type: BlockBlob\r\n{more}\r\n\r\n"
        )
    }

    /// Returns a Get Blob with these host names.
    pub(crate) fn get_at(&self, hosts: &[&str]) -> String {
        let hosts: String = hosts
            .iter()
            .map(|host| format!("Host: {host}\r\n"))
            .collect();
        format!("GET {} HTTP/1.1\r\n{hosts}\r\n", self.target("made"))
    }

    pub(crate) fn get(&self) -> String {
        self.get_at(&["smalt"])
    }

    pub(crate) async fn connect(&self) -> Raw {
        Raw(BufStream::new(
            TcpStream::connect(self.address).await.unwrap(),
        ))
    }
}

/// A raw connection.
pub(crate) struct Raw(BufStream<TcpStream>);

impl Raw {
    pub(crate) async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Closes the sending side and keeps receiving.
    pub(crate) async fn finish(&mut self) {
        self.0.shutdown().await.unwrap();
    }

    /// Returns the next response's status, and whether the connection closes after it.
    pub(crate) async fn hear(&mut self) -> (u16, bool) {
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

    pub(crate) async fn is_at_its_end(&mut self) -> bool {
        matches!(self.0.read(&mut [0]).await, Ok(0) | Err(_))
    }

    /// Returns the statuses of all responses until the server closes the connection, which it must
    /// do at once.
    pub(crate) async fn hear_out(&mut self) -> Vec<u16> {
        let mut bytes = Vec::new();
        let read = timeout(AT_ONCE, self.0.read_to_end(&mut bytes)).await;
        // A reset closes the connection too, and the bytes before it count.
        let _ = read.expect("the server keeps the connection open");
        let text = String::from_utf8_lossy(&bytes);
        let starts = text.split("HTTP/1.1 ").skip(1);
        starts.map(|rest| rest[..3].parse().unwrap()).collect()
    }
}
