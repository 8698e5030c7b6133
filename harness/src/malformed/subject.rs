//! What the cases are about: a container with two blobs, a queue with a message, a table with an
//! entity, and signatures.

use std::net::SocketAddr;

use http::Method;
use smalt_protocol::signing::sas::build::AccountSas;
use smalt_protocol::uri::encode_query;
use smalt_protocol::xml::read::{ELEMENTS_MAX, read_document};
use smalt_protocol::{ApiVersion, Service, Timestamp};

use super::template::Values;
use crate::servers::ServerError;
use crate::wire::access::{ACCOUNT, Access, Account, FULL};
use crate::wire::connection::Connection;

/// Name of the container, of the queue and of the table.
const NAME: &str = "malformed";
/// Bytes of the blob.
const CONTENT: &str = "The blob that no case may change.";
/// Text of the message.
const TEXT: &str = "The message that no case may change.";
/// Value of the entity.
const VALUE: &str = "The entity that no case may change.";
/// Lease of the leased blob.
const LEASE_ID: &str = "6d0c1d3b-5d3f-4f0e-9c8e-2b1f0a9d7c55";

/// Where the services are.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Blob.
    pub blob: SocketAddr,
    /// Queue.
    pub queue: SocketAddr,
    /// Table.
    pub table: SocketAddr,
    /// Control endpoint.
    pub control: SocketAddr,
}

impl Addresses {
    /// The address of a service.
    pub fn of(&self, service: Service) -> SocketAddr {
        match service {
            Service::Blob => self.blob,
            Service::Queue => self.queue,
            Service::Table => self.table,
        }
    }
}

/// The things that the cases name.
pub struct Subject {
    addresses: Addresses,
    access: Access,
    values: Values,
}

impl Subject {
    /// Creates them.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create(addresses: Addresses) -> Result<Self, ServerError> {
        let access = Access::full(ApiVersion::V2021_12_02);
        let mut blobs = Connection::open(addresses.blob).await?;
        let container = access.path(&format!("{NAME}?restype=container"));
        let made = blobs.send(Method::PUT, &container, &[], "").await?;
        made.expect(201)?;
        for blob in ["blob", "leased"] {
            let path = access.path(&format!("{NAME}/{blob}"));
            let headers = [("x-ms-blob-type", "BlockBlob")];
            let put = blobs.send(Method::PUT, &path, &headers, CONTENT).await?;
            put.expect(201)?;
        }
        let path = access.path(&format!("{NAME}/leased?comp=lease"));
        let headers = [
            ("x-ms-lease-action", "acquire"),
            ("x-ms-lease-duration", "-1"),
            ("x-ms-proposed-lease-id", LEASE_ID),
        ];
        let leased = blobs.send(Method::PUT, &path, &headers, "").await?;
        leased.expect(201)?;
        put_entity(addresses.table, &access).await?;
        let (message, receipt) = put_message(addresses.queue, &access).await?;
        let mut values = signatures(&access);
        for (name, value) in [
            ("container", NAME),
            ("queue", NAME),
            ("table", NAME),
            ("lease", LEASE_ID),
            ("account", ACCOUNT),
            ("message", &message),
            ("receipt", &encode_query(&receipt)),
        ] {
            values.insert(name.to_owned(), value.to_owned());
        }
        Ok(Subject {
            addresses,
            access,
            values,
        })
    }

    /// The values that a case may name; `host` is that of its service.
    pub fn values(&self, service: Service) -> Values {
        let mut values = self.values.clone();
        let host = self.addresses.of(service).to_string();
        values.insert("host".to_owned(), host);
        values
    }

    /// Reads blob, message and entity: all must be as they were made.
    ///
    /// # Errors
    /// When one of them is not, or the server does not answer.
    pub async fn check(&self) -> Result<(), ServerError> {
        let mut blobs = Connection::open(self.addresses.blob).await?;
        let path = self.access.path(&format!("{NAME}/blob"));
        let blob = blobs.send(Method::GET, &path, &[], "").await?.expect(200)?;
        let mut queues = Connection::open(self.addresses.queue).await?;
        let path = self
            .access
            .path(&format!("{NAME}/messages?peekonly=true&numofmessages=32"));
        let peeked = queues
            .send(Method::GET, &path, &[], "")
            .await?
            .expect(200)?;
        let text = String::from_utf8_lossy(&peeked.body).into_owned();
        let is_one = text.matches("<QueueMessage>").count() == 1;
        let mut tables = Connection::open(self.addresses.table).await?;
        let path = self.access.path(&format!("{NAME}()"));
        let page = tables
            .send(Method::GET, &path, &[], "")
            .await?
            .expect(200)?;
        let page = String::from_utf8_lossy(&page.body).into_owned();
        let is_same = page.matches("\"RowKey\"").count() == 1 && page.contains(VALUE);
        if blob.body == CONTENT && is_one && text.contains(TEXT) && is_same {
            Ok(())
        } else {
            let what = "the blob, the message or the entity was changed";
            Err(ServerError::call(what))
        }
    }
}

/// Creates the table with its one entity.
async fn put_entity(address: SocketAddr, access: &Access) -> Result<(), ServerError> {
    let mut tables = Connection::open(address).await?;
    let json = [("content-type", "application/json")];
    for (path, body) in [
        ("Tables", format!("{{\"TableName\":\"{NAME}\"}}")),
        (
            NAME,
            format!("{{\"PartitionKey\":\"p\",\"RowKey\":\"r\",\"v\":\"{VALUE}\"}}"),
        ),
    ] {
        let path = access.path(path);
        let made = tables.send(Method::POST, &path, &json, body).await?;
        made.expect(201)?;
    }
    Ok(())
}

/// Puts the message: its id and receipt.
async fn put_message(
    address: SocketAddr,
    access: &Access,
) -> Result<(String, String), ServerError> {
    let mut queues = Connection::open(address).await?;
    let made = queues
        .send(Method::PUT, &access.path(NAME), &[], "")
        .await?;
    made.expect(201)?;
    let path = access.path(&format!("{NAME}/messages"));
    let body = format!("<QueueMessage><MessageText>{TEXT}</MessageText></QueueMessage>");
    let put = queues.send(Method::POST, &path, &[], body).await?;
    let put = put.expect(201)?;
    let root = read_document(&put.body, ELEMENTS_MAX).map_err(ServerError::call)?;
    let message = root.child("QueueMessage");
    let field = |name| {
        let text = message.and_then(|message| message.child(name));
        text.map_or_else(String::new, |text| text.text.clone().into_owned())
    };
    Ok((field("MessageId"), field("PopReceipt")))
}

/// The summer of 2017.
const PAST: Timestamp = Timestamp::from_unix_s(1_500_000_000);

/// What a signature lacks, by the name that cases give it.
const LACKING: [(&str, fn(&mut AccountSas<'static>)); 7] = [
    ("sas:expired", |sas| sas.expiry = PAST),
    ("sas:not-yet", |sas| sas.start = Some(FULL.expiry)),
    ("sas:table-only", |sas| sas.services = "t"),
    ("sas:service-only", |sas| sas.resource_types = "s"),
    ("sas:list-only", |sas| sas.permissions = "l"),
    ("sas:elsewhere", |sas| sas.ip = "192.0.2.1"),
    ("sas:https-only", |sas| sas.protocol = "https"),
];

/// Signed queries: a valid one, and those that lack something.
fn signatures(access: &Access) -> Values {
    let mut named = Values::from([("sas".to_owned(), access.query().to_owned())]);
    for (name, lose) in LACKING {
        let mut sas = FULL;
        lose(&mut sas);
        named.insert(name.to_owned(), Account::emulator().sas(sas));
    }
    named
}
