//! Roles of the holders of bearer tokens, and of the users who sign with a user delegation key.

use smalt::{AccountSettings, Config, OAuth, Role, RoleAssignment, Service};

use super::world::{By, OBJECT_ID, new_world, world_with};
use crate::support::{BLOCK, Client, config};

const LET_IN: &str = "400 InvalidQueryParameterValue";
const REFUSED: &str = "403 AuthorizationPermissionMismatch";

fn assign(world: &Client, roles: &[(Role, Option<&str>)]) {
    let assigned = roles.iter().map(|(role, resource)| RoleAssignment {
        principal: OBJECT_ID.parse().unwrap(),
        role: *role,
        resource: resource.map(str::to_owned),
    });
    let settings = AccountSettings {
        role_assignments: Some(assigned.collect()),
        ..AccountSettings::default()
    };
    world.change_settings(settings);
}

/// Sends a request with a `timeout` that is refused right after authorisation, so that nothing
/// changes. Returns the outcome.
async fn ask(world: &Client, request: &str, headers: &[(&str, &str)]) -> String {
    let (method, path) = request.split_once(' ').unwrap();
    let separator = if path.contains('?') { '&' } else { '?' };
    let path = format!("{path}{separator}timeout=x");
    let token = world.token();
    let by = By::Token(&token);
    let answer = world.ask(by, method, &path, headers, "").await;
    answer.outcome()
}

const BLOB_READS: [&str; 5] = [
    "GET /?comp=list",
    "GET /box?restype=container",
    "GET /box?restype=container&comp=list",
    "GET /box/b",
    "HEAD /box/b",
];
const BLOB_WRITES: [&str; 7] = [
    "PUT /new?restype=container",
    "DELETE /box?restype=container",
    "PUT /box/b",
    "PUT /box/b?comp=metadata",
    "PUT /box/b?comp=lease",
    "PUT /box/b?comp=block&blockid=AAAA",
    "DELETE /box/b",
];
const BLOB_OWNERSHIP: [&str; 5] = [
    "GET /box/b?comp=tags",
    "GET /?comp=blobs&where=a%3D%27b%27",
    "GET /box?restype=container&comp=list&include=tags",
    "DELETE /box/b?versionid=2026-01-01T00:00:00.0000000Z",
    "GET /box?restype=container&comp=acl",
];
const SERVICE: [&str; 2] = [
    "GET /?restype=service&comp=properties",
    "PUT /?restype=service&comp=properties",
];
const DELEGATION: [&str; 1] = ["POST /?restype=service&comp=userdelegationkey"];
const ACCOUNT_INFO: [&str; 1] = ["GET /?restype=account&comp=properties"];
const QUEUE_READS: [&str; 2] = ["GET /?comp=list", "GET /jobs?comp=metadata"];
const PEEK: [&str; 1] = ["GET /jobs/messages?peekonly=true"];
const TAKE: [&str; 2] = ["GET /jobs/messages", "DELETE /jobs/messages/a?popreceipt=b"];
const SEND: [&str; 1] = ["POST /jobs/messages"];
const QUEUE_WRITES: [&str; 3] = [
    "PUT /jobs",
    "DELETE /jobs/messages",
    "PUT /jobs/messages/a?popreceipt=b&visibilitytimeout=1",
];
const TABLE_READS: [&str; 3] = [
    "GET /Tables",
    "GET /rows",
    "GET /rows(PartitionKey='a',RowKey='b')",
];
const TABLE_WRITES: [&str; 5] = [
    "POST /Tables",
    "DELETE /Tables('rows')",
    "POST /rows",
    "PUT /rows(PartitionKey='a',RowKey='b')",
    "DELETE /rows(PartitionKey='a',RowKey='b')",
];

/// "Azure built-in roles for Storage".
#[tokio::test]
async fn role_permits_its_own_operations_and_no_others() {
    let world = new_world().await;
    let of_blobs: [&[&str]; 6] = [
        &BLOB_READS,
        &BLOB_WRITES,
        &BLOB_OWNERSHIP,
        &SERVICE,
        &DELEGATION,
        &ACCOUNT_INFO,
    ];
    let of_queues: [&[&str]; 7] = [
        &QUEUE_READS,
        &PEEK,
        &TAKE,
        &SEND,
        &QUEUE_WRITES,
        &SERVICE,
        &DELEGATION,
    ];
    let of_tables: [&[&str]; 3] = [&TABLE_READS, &TABLE_WRITES, &SERVICE];
    // One letter for each group of requests: `+` where the role permits all, `-` where none.
    for (role, blobs, queues, tables) in [
        (Role::BlobDataOwner, "+++-++", "-------", "---"),
        (Role::BlobDataContributor, "++--++", "-------", "---"),
        (Role::BlobDataReader, "+---++", "-------", "---"),
        (Role::BlobDelegator, "----+-", "-------", "---"),
        (Role::QueueDataContributor, "------", "+++++-+", "---"),
        (Role::QueueDataReader, "------", "++-----", "---"),
        (Role::QueueMessageProcessor, "------", "-++----", "---"),
        (Role::QueueMessageSender, "------", "---+---", "---"),
        (Role::QueueDelegator, "------", "------+", "---"),
        (Role::TableDataContributor, "------", "-------", "++-"),
        (Role::TableDataReader, "------", "-------", "+--"),
        (Role::TableDelegator, "------", "-------", "---"),
    ] {
        assign(&world, &[(role, None)]);
        for (service, groups, expected) in [
            (Service::Blob, &of_blobs[..], blobs),
            (Service::Queue, &of_queues[..], queues),
            (Service::Table, &of_tables[..], tables),
        ] {
            let world = world.at(service);
            for (group, sign) in groups.iter().zip(expected.chars()) {
                let expected = if sign == '+' { LET_IN } else { REFUSED };
                for request in *group {
                    let told = ask(&world, request, &headers_of(request)).await;
                    assert_eq!(told, expected, "{role:?} {service} {request}");
                }
            }
        }
    }
    assign(&world, &[(Role::AccountContributor, None)]);
    for request in SERVICE.iter().chain(&BLOB_WRITES[..2]) {
        assert_eq!(ask(&world, request, &[]).await, LET_IN, "{request}");
    }
    assert_eq!(ask(&world, "GET /box/b", &[]).await, REFUSED);
}

fn headers_of(request: &str) -> Vec<(&'static str, &'static str)> {
    match request.rsplit_once('=') {
        Some((_, "lease")) => vec![("x-ms-lease-action", "acquire")],
        _ if request == "PUT /box/b" => vec![BLOCK],
        _ => Vec::new(),
    }
}

#[tokio::test]
async fn assignment_reaches_one_container_or_table() {
    let world = new_world().await;
    world.put("/open/b", "hidden").await;
    let contributes = (Role::BlobDataContributor, Some("box"));
    assign(
        &world,
        &[contributes, (Role::TableDataContributor, Some("Rows"))],
    );
    for (service, request, expected) in [
        (Service::Blob, "DELETE /box/b", LET_IN),
        (
            Service::Blob,
            "GET /box?restype=container&comp=list",
            LET_IN,
        ),
        (Service::Blob, "GET /open/b", REFUSED),
        (Service::Blob, "GET /?comp=list", REFUSED),
        (
            Service::Blob,
            "POST /?restype=service&comp=userdelegationkey",
            REFUSED,
        ),
        (Service::Table, "GET /rows", LET_IN),
        (Service::Table, "GET /others", REFUSED),
        (Service::Table, "GET /Tables", REFUSED),
    ] {
        let told = ask(&world.at(service), request, &[]).await;
        assert_eq!(told, expected, "{request}");
    }
    // A copy reads its source with the roles of its caller.
    let token = world.token();
    let source = world.url_over("https", "/open/b");
    let headers = [("x-ms-copy-source", source.as_str())];
    let copy = async || {
        let by = By::Token(&token);
        world.ask(by, "PUT", "/box/copy", &headers, "").await.status
    };
    assert!((400..500).contains(&copy().await));
    assign(&world, &[contributes, (Role::BlobDataReader, None)]);
    assert_eq!(copy().await, 202);
}

/// Each request of a transaction needs its own permission.
#[tokio::test]
async fn reader_changes_no_entity_in_a_transaction() {
    let world = world_with(Config {
        oauth: OAuth::Basic,
        ..config()
    });
    let tables = world.await.at(Service::Table);
    let made = tables.create_table("rows").await;
    assert_eq!(made.status, 201, "{made:?}");
    let body = "--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n\
        --changeset_c\r\nContent-Type: application/http\r\n\
        Content-Transfer-Encoding: binary\r\n\r\n\
        POST https://127.0.0.1:10002/devstoreaccount1/rows HTTP/1.1\r\n\
        Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\n\r\n\
        {\"PartitionKey\":\"a\",\"RowKey\":\"b\"}\r\n--changeset_c--\r\n--batch_b--\r\n";
    let headers = [("content-type", "multipart/mixed; boundary=batch_b")];
    let token = tables.token();
    for (role, expected) in [
        (Role::TableDataReader, "403 Forbidden"),
        (Role::TableDataContributor, "201 Created"),
    ] {
        assign(&tables, &[(role, Some("rows"))]);
        let answer = tables
            .ask(By::Token(&token), "POST", "/$batch", &headers, body)
            .await;
        let told = format!("{} {}", answer.status, answer.text());
        assert!(told.contains(expected), "{role:?}: {told}");
    }
}
