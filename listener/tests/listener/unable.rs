//! A handler that cannot run at all costs no message an attempt.

use std::sync::Arc;

use smalt_listener::handler::{Verdict, function};
use smalt_listener::{ListenerError, Outcome};
use smalt_sleeve::port::{CallContext, Storage};

use crate::support::*;

const WHY: &str = "the command is not found";

fn is_unable<T>(ended: Result<T, ListenerError>) -> bool {
    matches!(ended, Err(ListenerError::HandlerUnable(why)) if why == WHY)
}

/// `once` and `run` stop at the first such message. Received messages are given back, also at their
/// last attempt, and none is poisoned.
#[tokio::test(start_paused = true)]
async fn messages_are_given_back_and_the_listener_stops() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    for number in 0..20 {
        storage.put(QUEUE, &number.to_string());
    }
    for attempt in 1..=config().max_dequeue {
        let missing = function(|_message, _ctx| async { Verdict::unable(WHY) });
        let (listener, log) = listener(config(), &storage, missing);
        let never = std::future::pending();
        match attempt {
            1 => assert!(is_unable(listener.run_until(never).await)),
            _ => assert!(is_unable(listener.once().await)),
        }
        let outcomes = log.outcomes();
        assert!(!outcomes.is_empty() && outcomes.len() <= 8, "{outcomes:?}");
        assert!(
            outcomes.iter().all(|o| *o == Outcome::Released),
            "{outcomes:?}"
        );
    }
    let cx = CallContext::default();
    let left = storage.queue_properties(&cx, QUEUE).await.unwrap();
    assert_eq!(left.approximate_count, 20);
    assert!(storage.deleted().is_empty());
    assert!(storage.queue_properties(&cx, POISON).await.is_err());
    // Visible at once, and handled once a handler can run.
    let (listener, log) = listener(config(), &storage, function(|_, _| async { Verdict::Ok }));
    listener.once().await.unwrap();
    assert!(log.count(Outcome::Done) >= 20 - 8, "{:?}", log.outcomes());
}
