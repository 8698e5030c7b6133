//! A delete that the network delivers twice: what the sender can know.

use bytes::Bytes;
use smalt_listener::Outcome;
use smalt_protocol::Timestamp;

use super::owners;
use crate::scenario::campaign::{self, Violation};
use crate::scenario::history::{Answer, Event, Exchange, Fate, Happening};
use crate::scenario::listen::{Listen, Names, Seen};
use crate::scenario::marks::Marks;

const ACTOR: &str = "listener-0.0";
const MESSAGE: &str = "<QueueMessage><MessageId>m</MessageId><PopReceipt>r</PopReceipt>\
    <DequeueCount>1</DequeueCount><TimeNextVisible>Sat, 21 Nov 2026 10:10:00 GMT</TimeNextVisible>\
    <ExpirationTime>Fri, 31 Dec 9999 23:59:59 GMT</ExpirationTime></QueueMessage>";

fn event(what: Happening) -> Event {
    Event {
        at: Timestamp::from_unix_s(1_795_255_200),
        actor: ACTOR.to_owned(),
        what,
    }
}

fn exchange(method: &str, rest: &str, status: u16, body: &'static str) -> Exchange {
    let request = http::Request::builder()
        .method(method)
        .uri(format!("/devstoreaccount1/orders/{rest}"))
        .body(Bytes::new())
        .unwrap();
    let answer = Answer {
        status,
        headers: Vec::new(),
        body: Bytes::from_static(body.as_bytes()),
    };
    let exchange = Exchange::of(&request, Timestamp::from_unix_s(1_795_255_200));
    Exchange {
        fate: Fate::Answered(answer),
        ..exchange.with(None, true)
    }
}

/// Returns the violations of a listener that reports success after a delete which was delivered
/// twice; the flag says whether the first answer arrived as well.
fn judge((first, told): (u16, bool), second: u16) -> Vec<Violation> {
    let sent = |exchange| event(Happening::Exchange(Box::new(exchange)));
    let delete = |status, delivered| {
        let delete = exchange("DELETE", "messages/m?popreceipt=r", status, "");
        sent(delete.with(Some("delivered twice"), delivered))
    };
    let id = "m".to_owned();
    let history = [
        sent(exchange("GET", "messages", 200, MESSAGE)),
        delete(first, told),
        delete(second, true),
        event(Happening::Listener(Seen::Decided {
            id,
            count: 1,
            outcome: Outcome::Done,
            expiring: false,
        })),
    ];
    let (mut violations, mut marks) = (Vec::new(), Marks::new());
    let plan = campaign::plan_of::<Listen>(0).unwrap();
    let names = Names::fixed();
    owners::check(&history, &plan, &names, &mut violations, &mut marks);
    violations
}

/// When the first delivery fails and the second succeeds, the message is done; when neither
/// succeeds, it is not.
#[test]
fn the_second_of_two_deletes_may_succeed() {
    assert_eq!(judge((503, false), 204), []);
    assert_eq!(judge((204, false), 404), []);
    let wrong = judge((503, false), 503);
    assert!(wrong.iter().any(|v| v.property == "log"), "{wrong:?}");
}

/// A listener that knows that its delete succeeded must not send another one.
#[test]
fn delete_after_a_known_success_is_found() {
    let wrong = judge((204, true), 404);
    assert!(wrong.iter().any(|v| v.property == "LS4"), "{wrong:?}");
}
