//! The operations on blobs and messages as requests, and their answers as values.

use std::net::SocketAddr;

use bytes::Bytes;
use http::Method;
use smalt_protocol::metadata::FOLDER_MARKER;
use smalt_protocol::uri::encode_query;
use smalt_protocol::xml::{Element, read_document};
use smalt_protocol::{ApiVersion, Service};

use super::content::Content;
use super::transport::Transport;
use crate::servers::ServerError;
use crate::wire::Answer;
use crate::wire::access::Access;
use crate::wire::connection::Connection;

/// Duration of a lease on a container in seconds: the longest finite one.
const LEASE_S: &str = "60";
/// Name of the metadata entry of every blob.
const MARK: &str = "x-ms-meta-mark";
/// Most elements of a listing: 5,000 blobs of about 30 each.
const ELEMENTS_MAX: usize = 200_000;

/// A message in the answer of Get Messages or Put Message.
#[derive(Clone, Debug)]
pub struct Shown {
    /// `MessageId`.
    pub id: String,
    /// `PopReceipt`.
    pub receipt: String,
    /// `DequeueCount`; zero in answers without it.
    pub dequeue_count: u32,
    /// `MessageText`; empty in answers without it.
    pub text: String,
}

/// A blob or an entity in an answer.
#[derive(Clone, Debug)]
pub struct Read {
    /// Content of the blob, or text of the entity.
    pub bytes: Bytes,
    /// ETag.
    pub etag: String,
    /// Value of the metadata entry, or number of the operation that wrote the entity.
    pub mark: Option<u64>,
}

/// Connections to the blob, queue and table services, with a container, a queue and a table.
pub struct Client {
    services: [Transport; 3],
    access: Access,
    pub(super) name: String,
}

pub(super) type Done<T> = Result<T, ServerError>;

// Places of the services in a client.
const BLOBS: usize = 0;
const QUEUES: usize = 1;
pub(super) const TABLES: usize = 2;

impl Client {
    /// Connects to these addresses of the blob, queue and table services; `name` is the name of the
    /// container and the queue and, without `-`, of the table.
    pub async fn connect([blob, queue, table]: [SocketAddr; 3], name: &str) -> Done<Self> {
        let services = [
            Transport::Socket(Connection::open(blob).await?, blob),
            Transport::Socket(Connection::open(queue).await?, queue),
            Transport::Socket(Connection::open(table).await?, table),
        ];
        Ok(Self::over(services, name))
    }

    /// Creates a client of an emulator in this process.
    pub fn within(emulator: &smalt::Emulator, name: &str) -> Self {
        let services = Service::ALL.map(|of| Transport::InProcess(emulator.clone(), of));
        Self::over(services, name)
    }

    fn over(services: [Transport; 3], name: &str) -> Self {
        Client {
            services,
            access: Access::full(ApiVersion::V2021_12_02),
            name: name.to_owned(),
        }
    }

    /// Connects again after a connection broke.
    pub async fn reconnect(&mut self) -> Done<()> {
        for service in &mut self.services {
            service.reconnect().await?;
        }
        Ok(())
    }

    /// Sends a request with a path below the account. Returns any answer.
    pub(super) async fn send(
        &mut self,
        service: usize,
        (method, path): (Method, &str),
        headers: &[(&'static str, &str)],
        content: impl Into<Bytes>,
    ) -> Done<Answer> {
        let path = self.access.path(path);
        let service = &mut self.services[service];
        service.send(method, &path, headers, content).await
    }

    /// Puts something of a blob or a container; the answer must have this status.
    async fn put(
        &mut self,
        path: &str,
        headers: &[(&'static str, &str)],
        content: impl Into<Bytes>,
        status: u16,
    ) -> Done<Answer> {
        let put = self.send(BLOBS, (Method::PUT, path), headers, content);
        Ok(put.await?.expect(status)?)
    }

    /// Creates container, queue and table, unless they exist. Returns whether the container is new.
    pub async fn create(&mut self) -> Done<bool> {
        let path = self.container("");
        let made = self.send(BLOBS, (Method::PUT, &path), &[], "").await?;
        let is_new = made.status != 409;
        if is_new {
            made.expect(201)?;
        }
        let path = self.name.clone();
        let made = self.send(QUEUES, (Method::PUT, &path), &[], "").await?;
        if made.status != 204 {
            made.expect(201)?;
        }
        self.create_table().await?;
        Ok(is_new)
    }

    fn container(&self, rest: &str) -> String {
        format!("{}?restype=container{rest}", self.name)
    }

    fn blob(&self, rest: &str) -> String {
        format!("{}/{rest}", self.name)
    }

    fn messages(&self, rest: &str) -> String {
        format!("{}/messages{rest}", self.name)
    }

    /// Calls Put Blob. Returns the ETag.
    pub async fn put_blob(&mut self, name: &str, content: Content, mark: u64) -> Done<String> {
        let path = self.blob(name);
        let mark = mark.to_string();
        let headers = [("x-ms-blob-type", "BlockBlob"), (MARK, mark.as_str())];
        let put = self.put(&path, &headers, content.bytes(), 201);
        Ok(etag(&put.await?))
    }

    /// Calls Put Block twice and Put Block List. Returns the ETag.
    pub async fn put_blocks(&mut self, name: &str, content: Content, mark: u64) -> Done<String> {
        let bytes = content.bytes();
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let mut list = String::new();
        for (id, block) in [("MDE=", first), ("MDI=", second)] {
            // A block has at least one byte.
            if block.is_empty() {
                continue;
            }
            let query = format!("{name}?comp=block&blockid={}", encode_query(id));
            let path = self.blob(&query);
            self.put(&path, &[], block.to_vec(), 201).await?;
            list.push_str(&format!("<Latest>{id}</Latest>"));
        }
        let path = self.blob(&format!("{name}?comp=blocklist"));
        let mark = mark.to_string();
        let list = format!("<BlockList>{list}</BlockList>");
        Ok(etag(&self.put(&path, &[(MARK, &mark)], list, 201).await?))
    }

    /// Calls Lease Container with this action and id. Returns any answer.
    pub async fn try_lease(&mut self, action: &str, id: &str) -> Done<Answer> {
        let path = self.container("&comp=lease");
        let named = if action == "acquire" {
            [
                ("x-ms-proposed-lease-id", id),
                ("x-ms-lease-duration", LEASE_S),
            ]
        } else {
            [("x-ms-lease-id", id), ("x-ms-client-request-id", action)]
        };
        let headers = [("x-ms-lease-action", action), named[0], named[1]];
        self.send(BLOBS, (Method::PUT, &path), &headers, "").await
    }

    /// Calls Set Blob Metadata. Returns the ETag.
    pub async fn set_metadata(&mut self, name: &str, mark: u64) -> Done<String> {
        let path = self.blob(&format!("{name}?comp=metadata"));
        let mark = mark.to_string();
        Ok(etag(&self.put(&path, &[(MARK, &mark)], "", 200).await?))
    }

    /// Calls Delete Blob.
    pub async fn delete_blob(&mut self, name: &str) -> Done<()> {
        let path = self.blob(name);
        let sent = self.send(BLOBS, (Method::DELETE, &path), &[], "");
        sent.await?.expect(202)?;
        Ok(())
    }

    /// Calls Get Blob. Returns `None` when the service answers that the blob does not exist.
    pub async fn get_blob(&mut self, name: &str) -> Done<Option<Read>> {
        let path = self.blob(name);
        let answer = self.send(BLOBS, (Method::GET, &path), &[], "").await?;
        if answer.status == 404 && answer.header("x-ms-error-code") == Some("BlobNotFound") {
            return Ok(None);
        }
        let answer = answer.expect(200)?;
        Ok(Some(Read {
            etag: etag(&answer),
            mark: answer.header(MARK).and_then(|mark| mark.parse().ok()),
            bytes: answer.body,
        }))
    }

    /// Calls List Blobs. Returns every name.
    pub async fn list_blobs(&mut self) -> Done<Vec<String>> {
        let mut names = Vec::new();
        let mut marker = String::new();
        loop {
            let marked = encode_query(&marker);
            let path = self.container(&format!("&comp=list&include=metadata&marker={marked}"));
            let sent = self.send(BLOBS, (Method::GET, &path), &[], "").await?;
            let answer = sent.expect(200)?;
            let root = read_document(&answer.body, ELEMENTS_MAX).map_err(ServerError::call)?;
            let blobs = root.child("Blobs").map(|blobs| blobs.children.as_slice());
            let blobs = blobs.unwrap_or_default().iter();
            let is_directory = |blob: &&Element<'_>| {
                let metadata = blob.child("Metadata");
                metadata.is_some_and(|metadata| metadata.child(FOLDER_MARKER).is_some())
            };
            let blobs = blobs.filter(|blob| !is_directory(blob));
            names.extend(blobs.map(|blob| text(blob, "Name")));
            marker = text(&root, "NextMarker");
            if marker.is_empty() {
                return Ok(names);
            }
        }
    }

    /// Calls Path - Create with the source of a rename.
    pub async fn rename(&mut self, from: &str, to: &str) -> Done<()> {
        let source = format!("/{}/{from}", self.name);
        let path = self.blob(&format!("{to}?mode=legacy"));
        let headers = [("x-ms-rename-source", source.as_str())];
        self.put(&path, &headers, "", 201).await?;
        Ok(())
    }

    /// Calls Put Message. Returns id and pop receipt.
    pub async fn put_message(&mut self, content: Content) -> Done<Shown> {
        let path = self.messages("");
        let sent = self.send(QUEUES, (Method::POST, &path), &[], document(content));
        let shown = shown(&sent.await?.expect(201)?)?;
        let first = shown.into_iter().next();
        first.ok_or_else(|| ServerError::call("Put Message shows no message"))
    }

    /// Calls Update Message, visible at once. Returns the new pop receipt.
    pub async fn update_message(
        &mut self,
        id: &str,
        receipt: &str,
        content: Content,
    ) -> Done<String> {
        let receipt = encode_query(receipt);
        let path = self.messages(&format!("/{id}?popreceipt={receipt}&visibilitytimeout=0"));
        let sent = self.send(QUEUES, (Method::PUT, &path), &[], document(content));
        let answer = sent.await?.expect(204)?;
        let receipt = answer.header("x-ms-popreceipt");
        Ok(receipt.unwrap_or_default().to_owned())
    }

    /// Calls Delete Message. Returns any answer.
    pub async fn try_delete_message(&mut self, id: &str, receipt: &str) -> Done<Answer> {
        let receipt = encode_query(receipt);
        let path = self.messages(&format!("/{id}?popreceipt={receipt}"));
        self.send(QUEUES, (Method::DELETE, &path), &[], "").await
    }

    /// Calls Get Messages.
    pub async fn get_messages(&mut self, count: u32, hidden_s: u64) -> Done<Vec<Shown>> {
        let path = format!("?numofmessages={count}&visibilitytimeout={hidden_s}");
        let path = self.messages(&path);
        let sent = self.send(QUEUES, (Method::GET, &path), &[], "").await?;
        shown(&sent.expect(200)?)
    }
}

fn document(content: Content) -> String {
    let text = content.text();
    format!("<QueueMessage><MessageText>{text}</MessageText></QueueMessage>")
}

fn text(parent: &Element<'_>, name: &str) -> String {
    let child = parent.child(name);
    child.map_or_else(String::new, |child| child.text.clone().into_owned())
}

pub(super) fn etag(answer: &Answer) -> String {
    answer.header("etag").unwrap_or_default().to_owned()
}

fn shown(answer: &Answer) -> Done<Vec<Shown>> {
    let root = read_document(&answer.body, ELEMENTS_MAX).map_err(ServerError::call)?;
    let message = |message: &Element<'_>| Shown {
        id: text(message, "MessageId"),
        receipt: text(message, "PopReceipt"),
        dequeue_count: text(message, "DequeueCount").parse().unwrap_or_default(),
        text: text(message, "MessageText"),
    };
    Ok(root.children.iter().map(message).collect())
}
