//! Shared access signatures: each permission allows its operations and no other.

use smalt::Service;
use smalt_protocol::ApiVersion;
use smalt_protocol::signing::sas::SasTarget;
use smalt_protocol::signing::sas::build::{AccountSas, ServiceSas};
use smalt_protocol::uri::encode_query;

use super::client::{ACCOUNT, Answer, Client, Held, document, key};

const VERSION: ApiVersion = ApiVersion::V2021_12_02;
const POLICY: &str = "<SignedIdentifiers><SignedIdentifier><Id>p1</Id><AccessPolicy>\
                      <Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission>\
                      </AccessPolicy></SignedIdentifier></SignedIdentifiers>";

/// Returns an account SAS that is valid for an hour.
pub(crate) fn account_sas(client: &Client, services: &str, types: &str, letters: &str) -> String {
    let sas = AccountSas {
        version: VERSION,
        account: ACCOUNT,
        services,
        resource_types: types,
        permissions: letters,
        start: None,
        expiry: client.emulator.now().plus_s(3600),
        ip: "",
        protocol: "",
        encryption_scope: "",
    };
    sas.sign(key().as_bytes())
}

fn of_queue(client: &Client, name: &str, permissions: &str, policy_id: &str) -> String {
    let has_terms = policy_id.is_empty();
    let sas = ServiceSas {
        version: VERSION,
        target: SasTarget {
            service: Service::Queue,
            account: ACCOUNT,
            name,
            blob: None,
            snapshot: "",
        },
        permissions,
        start: None,
        expiry: has_terms.then(|| client.emulator.now().plus_s(3600)),
        policy_id,
        ip: "",
        protocol: "",
        more: &[],
    };
    sas.sign(key().as_bytes())
}

async fn ask(client: &Client, (method, path, body): &Request, sas: &str) -> Answer {
    let join = if path.contains('?') { '&' } else { '?' };
    let target = format!("/{ACCOUNT}{path}{join}{sas}");
    let length = body.len().to_string();
    let headers = [("x-ms-version", "2021-12-02"), ("content-length", &length)];
    client
        .call(method, &target, &headers, body.clone().into())
        .await
}

type Request = (&'static str, String, String);

/// An operation with the resource type and letters of an account SAS, and the letters of a queue
/// SAS.
struct Row(Request, &'static str, &'static str, &'static str);

/// The tables of "Create an account SAS" and "Create a service SAS".
fn table(held: &Held) -> Vec<Row> {
    let receipt = encode_query(&held.receipt);
    let message = format!("/que/messages/{}?popreceipt={receipt}", held.id);
    let row = |method, path: &str, body: &str, scope, account, own| {
        Row(
            (method, path.to_owned(), body.to_owned()),
            scope,
            account,
            own,
        )
    };
    vec![
        row("GET", "/?comp=list", "", "s", "l", ""),
        row("GET", "/?restype=service&comp=properties", "", "s", "r", ""),
        row("PUT", "/new", "", "c", "cw", ""),
        row("GET", "/que?comp=metadata", "", "c", "r", "r"),
        row("PUT", "/que?comp=metadata", "", "c", "w", ""),
        row("GET", "/que?comp=acl", "", "c", "", ""),
        row("PUT", "/que?comp=acl", "", "c", "", ""),
        row("POST", "/que/messages", &document("a"), "o", "a", "a"),
        row("GET", "/que/messages?peekonly=true", "", "o", "r", "r"),
        row("GET", "/que/messages", "", "o", "p", "p"),
        row(
            "PUT",
            &format!("{message}&visibilitytimeout=9"),
            "",
            "o",
            "u",
            "u",
        ),
        row("DELETE", &message, "", "o", "p", "p"),
        row("DELETE", "/que/messages", "", "o", "d", ""),
        row("DELETE", "/que", "", "c", "d", ""),
    ]
}

/// Each letter with each operation, with an account SAS of the right and of a wrong resource type,
/// and with a SAS of the queue.
#[tokio::test]
async fn each_permission_allows_its_operations() {
    let rows = table(&Client::new().await.put("a", "").await).len();
    for at in 0..rows {
        for letter in ["r", "w", "d", "l", "a", "c", "u", "p"] {
            for types in ["s", "c", "o"] {
                let client = Client::new().await;
                let held = client.put("a", "").await;
                let Row(request, scope, letters, _) = &table(&held)[at];
                let sas = account_sas(&client, "q", types, letter);
                let answer = ask(&client, request, &sas).await;
                let may = types == *scope && letters.contains(letter);
                judge(&answer, may, &format!("{request:?} {types} {letter}"));
            }
            let client = Client::new().await;
            let held = client.put("a", "").await;
            let Row(request, _, _, letters) = &table(&held)[at];
            if "raup".contains(letter) {
                let sas = of_queue(&client, "que", letter, "");
                let answer = ask(&client, request, &sas).await;
                judge(
                    &answer,
                    letters.contains(letter),
                    &format!("{request:?} {letter}"),
                );
            }
        }
    }
}

fn judge(answer: &Answer, may: bool, what: &str) {
    if may {
        assert!(answer.status < 300, "{what}: {}", answer.outcome());
    } else {
        assert_eq!(answer.status, 403, "{what}: {}", answer.text);
    }
}

/// A signature of one queue or of another service allows nothing else; nor does an expired one.
#[tokio::test]
async fn sas_is_limited_to_its_queue_and_time() {
    let client = Client::new().await;
    client.send("PUT", "/other", "").await;
    let peek: Request = (
        "GET",
        "/que/messages?peekonly=true".to_owned(),
        String::new(),
    );
    let own = of_queue(&client, "que", "r", "");
    assert_eq!(ask(&client, &peek, &own).await.outcome(), "200");
    let other = of_queue(&client, "other", "r", "");
    assert_eq!(
        ask(&client, &peek, &other).await.outcome(),
        "403 AuthenticationFailed"
    );
    let of_blobs = account_sas(&client, "b", "sco", "r");
    let refused = ask(&client, &peek, &of_blobs).await;
    assert_eq!(refused.outcome(), "403 AuthorizationServiceMismatch");
    client.advance_s(3601);
    assert_eq!(
        ask(&client, &peek, &own).await.outcome(),
        "403 AuthenticationFailed"
    );
}

/// A stored policy grants access, and changing it revokes the access.
#[tokio::test]
async fn stored_policy_can_be_revoked() {
    let client = Client::new().await;
    assert_eq!(
        client.send("PUT", "/que?comp=acl", POLICY).await.outcome(),
        "204"
    );
    let peek: Request = (
        "GET",
        "/que/messages?peekonly=true".to_owned(),
        String::new(),
    );
    let sas = of_queue(&client, "que", "", "p1");
    assert_eq!(ask(&client, &peek, &sas).await.outcome(), "200");
    let get: Request = ("GET", "/que/messages".to_owned(), String::new());
    assert_eq!(ask(&client, &get, &sas).await.status, 403);
    assert_eq!(
        client.send("PUT", "/que?comp=acl", "").await.outcome(),
        "204"
    );
    assert_eq!(
        ask(&client, &peek, &sas).await.outcome(),
        "403 AuthenticationFailed"
    );
}
