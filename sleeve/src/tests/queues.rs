//! Tests of every queue operation: request and response.

use std::time::Duration;

use smalt_protocol::Timestamp;

use super::service::{Service, cx, date, refuse, reply};
use crate::ErrorKind;
use crate::port::*;

const URL: &str = "http://127.0.0.1:10000/acct/jobs";
const LATER: &str = "Sat, 21 Nov 2026 10:01:00 GMT";

fn later() -> Timestamp {
    Timestamp::parse_rfc1123(LATER).unwrap()
}

fn list(messages: &[&str]) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessagesList>{}</QueueMessagesList>",
        messages.concat()
    )
}

const PUT: &str = "<QueueMessage><MessageId>m-1</MessageId>\
    <InsertionTime>Sat, 21 Nov 2026 10:00:00 GMT</InsertionTime>\
    <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>\
    <PopReceipt>r+1==</PopReceipt><TimeNextVisible>Sat, 21 Nov 2026 10:01:00 GMT</TimeNextVisible>\
    </QueueMessage>";
const TAKEN: &str = "<QueueMessage><MessageId>m-1</MessageId>\
    <InsertionTime>Sat, 21 Nov 2026 10:00:00 GMT</InsertionTime>\
    <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime>\
    <PopReceipt>r+1==</PopReceipt><TimeNextVisible>Sat, 21 Nov 2026 10:01:00 GMT</TimeNextVisible>\
    <DequeueCount>2</DequeueCount>\
    <MessageText> &lt;a&amp;b&#xD;&#xA; </MessageText></QueueMessage>";
const PEEKED: &str = "<QueueMessage><MessageId>m-2</MessageId>\
    <InsertionTime>Sat, 21 Nov 2026 10:00:00 GMT</InsertionTime>\
    <ExpirationTime>Sat, 21 Nov 2026 10:01:00 GMT</ExpirationTime>\
    <DequeueCount>0</DequeueCount><MessageText /></QueueMessage>";

#[tokio::test]
async fn put_message() {
    let service = Service::with([
        reply(201, &[], &list(&[PUT])),
        reply(201, &[], &list(&[PUT])),
    ]);
    let storage = service.storage();
    let ttl = MessageTtl::After(Duration::from_millis(1500));
    let hidden = Duration::from_secs(60);
    let receipt = storage
        .put_message(&cx(), "jobs", "<a&b\r\n ü", ttl, hidden)
        .await
        .unwrap();
    let expected = Receipt {
        id: "m-1".to_owned(),
        pop_receipt: "r+1==".to_owned(),
        next_visible: later(),
    };
    assert_eq!(receipt, expected);
    storage
        .put_message(&cx(), "jobs", "", MessageTtl::Never, Duration::ZERO)
        .await
        .unwrap();
    let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>";
    let expected = [
        format!(
            "POST {URL}/messages?messagettl=2&visibilitytimeout=60\ncontent-length: 114\n\
             content-type: application/xml\n\
             {body}&lt;a&amp;b&#xD;\n ü</MessageText></QueueMessage>"
        ),
        format!(
            "POST {URL}/messages?messagettl=-1&visibilitytimeout=0\ncontent-length: 94\n\
             content-type: application/xml\n{body}</MessageText></QueueMessage>"
        ),
    ];
    assert_eq!(service.texts(), expected);
}

#[tokio::test]
async fn get_and_peek_messages() {
    let service = Service::with([
        reply(200, &[], &list(&[TAKEN])),
        reply(200, &[], &list(&[])),
        reply(200, &[], &list(&[PEEKED, PEEKED])),
    ]);
    let storage = service.storage();
    let got = storage
        .get_messages(&cx(), "jobs", 32, Duration::from_secs(60))
        .await
        .unwrap();
    let expected = QueueMessage {
        id: "m-1".to_owned(),
        pop_receipt: "r+1==".to_owned(),
        inserted: date(),
        expires: Timestamp::MAX,
        next_visible: Some(later()),
        dequeue_count: 2,
        text: " <a&b\r\n ".to_owned(),
    };
    assert_eq!((got.messages, got.server_time), (vec![expected], date()));
    let none = storage
        .get_messages(&cx(), "jobs", 1, Duration::from_secs(1))
        .await
        .unwrap();
    assert!(none.messages.is_empty());
    let peeked = storage.peek_messages(&cx(), "jobs", 2).await.unwrap();
    let expected = QueueMessage {
        id: "m-2".to_owned(),
        pop_receipt: String::new(),
        inserted: date(),
        expires: later(),
        next_visible: None,
        dequeue_count: 0,
        text: String::new(),
    };
    assert_eq!(peeked.messages, [expected.clone(), expected]);
    let expected = [
        format!("GET {URL}/messages?numofmessages=32&visibilitytimeout=60"),
        format!("GET {URL}/messages?numofmessages=1&visibilitytimeout=1"),
        format!("GET {URL}/messages?numofmessages=2&peekonly=true"),
    ];
    assert_eq!(service.texts(), expected);
}

/// The new pop receipt is in a header for which the SDK has no accessor.
#[tokio::test]
async fn update_and_delete_message() {
    let head = [
        ("x-ms-popreceipt", "r+2=="),
        ("x-ms-time-next-visible", LATER),
    ];
    let service = Service::with([
        reply(204, &head, ""),
        reply(204, &head, ""),
        reply(204, &[], ""),
        refuse(400, "PopReceiptMismatch"),
    ]);
    let storage = service.storage();
    let hidden = Duration::from_secs(60);
    let new = Some("new");
    let receipt = storage
        .update_message(&cx(), "jobs", "m-1", "r+1==", hidden, new)
        .await;
    let expected = Receipt {
        id: "m-1".to_owned(),
        pop_receipt: "r+2==".to_owned(),
        next_visible: later(),
    };
    assert_eq!(receipt.unwrap(), expected);
    let none = Duration::ZERO;
    storage
        .update_message(&cx(), "jobs", "m-1", "r+2==", none, None)
        .await
        .unwrap();
    storage
        .delete_message(&cx(), "jobs", "m-1", "r+2==")
        .await
        .unwrap();
    let gone = storage
        .delete_message(&cx(), "jobs", "m-1", "r+2==")
        .await
        .unwrap_err();
    assert_eq!(gone.kind, ErrorKind::ReceiptMismatch);
    let body = "<?xml version=\"1.0\" encoding=\"utf-8\"?><QueueMessage><MessageText>new";
    let expected = [
        format!(
            "PUT {URL}/messages/m-1?popreceipt=r%2B1%3D%3D&visibilitytimeout=60\n\
             content-length: 97\ncontent-type: application/xml\n\
             {body}</MessageText></QueueMessage>"
        ),
        format!(
            "PUT {URL}/messages/m-1?popreceipt=r%2B2%3D%3D&visibilitytimeout=0\ncontent-length: 0"
        ),
        format!("DELETE {URL}/messages/m-1?popreceipt=r%2B2%3D%3D"),
    ];
    assert_eq!(service.texts()[..3], expected);
}

#[tokio::test]
async fn queues() {
    let head = [
        ("x-ms-approximate-messages-count", "17"),
        ("x-ms-meta-owner", "me"),
    ];
    let service = Service::with([
        reply(201, &[], ""),
        reply(204, &[], ""),
        refuse(409, "QueueAlreadyExists"),
        reply(200, &head, ""),
    ]);
    let storage = service.storage();
    assert!(storage.create_queue(&cx(), "jobs").await.unwrap());
    assert!(!storage.create_queue(&cx(), "jobs").await.unwrap());
    assert!(!storage.create_queue(&cx(), "jobs").await.unwrap());
    let facts = storage.queue_properties(&cx(), "jobs").await.unwrap();
    assert_eq!(facts.approximate_count, 17);
    assert_eq!(facts.metadata["owner"], "me");
    let texts = service.texts();
    assert_eq!(texts[0], format!("PUT {URL}\ncontent-length: 0"));
    assert_eq!(texts[3], format!("GET {URL}?comp=metadata"));
}

/// A listing follows the markers to its end.
#[tokio::test]
async fn list_queues() {
    let page = |names: [&str; 2], next: &str| {
        let queues = names.map(|name| format!("<Queue><Name>{name}</Name></Queue>"));
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Prefix>j</Prefix>\
             <Queues>{}</Queues><NextMarker>{next}</NextMarker></EnumerationResults>",
            queues.concat()
        )
    };
    let xml = [("content-type", "application/xml")];
    let service = Service::with([
        reply(200, &xml, &page(["j1", "j2"], "/a/j3")),
        reply(200, &xml, &page(["j3", "j4"], "")),
    ]);
    let names = service.storage().list_queues(&cx(), "j").await.unwrap();
    assert_eq!(names, ["j1", "j2", "j3", "j4"]);
    let texts = service.texts();
    let of_account = URL.trim_end_matches("/jobs");
    assert_eq!(texts[0], format!("GET {of_account}?comp=list&prefix=j"));
    assert!(texts[1].contains("marker=%2Fa%2Fj3"), "{}", texts[1]);
}

/// A queue that is missing after an unanswered attempt counts as deleted; otherwise it is not
/// found.
#[tokio::test(start_paused = true)]
async fn delete_queue() {
    let service = Service::with([
        reply(204, &[], ""),
        refuse(500, "OperationTimedOut"),
        refuse(404, "QueueNotFound"),
        refuse(404, "QueueNotFound"),
    ]);
    let storage = service.storage();
    storage.delete_queue(&cx(), "jobs").await.unwrap();
    storage.delete_queue(&cx(), "jobs").await.unwrap();
    let missing = storage.delete_queue(&cx(), "jobs").await.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::NotFound);
    assert_eq!(service.texts()[0], format!("DELETE {URL}"));
}

/// Q16: clearing is repeated while the service reports that it has not finished.
#[tokio::test(start_paused = true)]
async fn clear_messages_until_done() {
    let unfinished = std::iter::repeat_with(|| refuse(500, "OperationTimedOut")).take(12);
    let service = Service::with(unfinished.chain([reply(204, &[], "")]));
    service
        .storage()
        .clear_messages(&cx(), "jobs")
        .await
        .unwrap();
    let texts = service.texts();
    assert_eq!(texts.len(), 13);
    assert_eq!(texts[12], format!("DELETE {URL}/messages"));
}

/// Requests that the service would reject, or the SDK would send elsewhere, are not sent.
#[tokio::test]
async fn invalid_requests_are_not_sent() {
    let service = Service::with([]);
    let storage = service.storage();
    let second = Duration::from_secs(1);
    let week = Duration::from_secs(7 * 24 * 3600);
    let never = MessageTtl::Never;
    let mut kinds = Vec::new();
    for text in ["\u{1}", "\u{fffe}", &"x".repeat(64 * 1024 + 1)] {
        kinds.push(
            storage
                .put_message(&cx(), "jobs", text, never, second)
                .await
                .unwrap_err()
                .kind,
        );
    }
    for ttl in [Duration::ZERO, Duration::MAX] {
        let put = storage
            .put_message(&cx(), "jobs", "x", MessageTtl::After(ttl), second)
            .await;
        kinds.push(put.unwrap_err().kind);
    }
    for (count, hidden) in [
        (0, second),
        (33, second),
        (1, Duration::ZERO),
        (1, week + second),
    ] {
        kinds.push(
            storage
                .get_messages(&cx(), "jobs", count, hidden)
                .await
                .unwrap_err()
                .kind,
        );
    }
    for (id, receipt) in [("", "r"), ("../x", "r"), ("m?x", "r"), ("m-1", "")] {
        kinds.push(
            storage
                .delete_message(&cx(), "jobs", id, receipt)
                .await
                .unwrap_err()
                .kind,
        );
    }
    for queue in ["", "..", "Jobs", "a--b", "jobs/messages"] {
        kinds.push(
            storage
                .queue_properties(&cx(), queue)
                .await
                .unwrap_err()
                .kind,
        );
    }
    assert!(
        kinds.iter().all(|kind| *kind == ErrorKind::Invalid),
        "{kinds:?}"
    );
    assert!(service.seen().is_empty());
}
