//! The failure policy: how a listener reacts to failures of storage and network and to its own
//! stop.

use std::sync::Arc;

use smalt_listener::config::{Encoding, Idle};
use smalt_listener::handler::{Verdict, function};
use smalt_listener::{Ended, ListenerConfig, ListenerError, Outcome};
use smalt_sleeve::port::{ErrorKind, MessageTtl};

use crate::support::handlers::Obey;
use crate::support::*;

/// Renewals are retried after 503s while the visibility timeout lasts (the WebJobs defect).
#[tokio::test(start_paused = true)]
async fn renewal_survives_503() {
    let storage = holding(&["sleep 30000"]);
    storage.fault(Op::Update, 0..3, Fault::Before(ErrorKind::Busy));
    storage.fault(Op::Update, 5..8, Fault::Before(ErrorKind::Unreachable));
    let (listener, log) = listener(config(), &storage, Obey::default());
    listener.once().await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Done]);
    assert_eq!(storage.deleted().len(), 1);
}

/// A lock that cannot be renewed before it expires is lost: the handler is cancelled and nothing is
/// acknowledged.
#[tokio::test(start_paused = true)]
async fn renewal_that_fails_to_the_end_loses_the_lock() {
    let storage = holding(&["sleep 30000"]);
    storage.fault(Op::Update, 0..u64::MAX, Fault::Before(ErrorKind::Busy));
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    run_for(&listener, s(15)).await;
    assert_eq!(log.outcomes()[0], Outcome::LostLock);
    assert!(obey.runs()[0].ok_at.is_none());
    assert!(storage.deleted().is_empty());
    assert!(
        storage.calls(Op::Update) >= 5,
        "speed-up: {}",
        storage.calls(Op::Update)
    );
}

/// LS4: another consumer received the message: the handler is cancelled and dropped.
#[tokio::test(start_paused = true)]
async fn ls4_lost_lock_cancels_the_handler() {
    let storage = holding(&["sleep 60000"]);
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    let story = async {
        tokio::time::sleep(s(1)).await;
        storage.snatch(QUEUE);
        tokio::time::sleep(s(9)).await;
    };
    listener.run_until(story).await.unwrap();
    assert_eq!(log.outcomes()[0], Outcome::LostLock);
    assert!(storage.deleted().is_empty() && obey.runs()[0].ok_at.is_none());
}

/// A message whose handler finished although its lock was lost is not handled again: it is only
/// deleted when it returns.
#[tokio::test(start_paused = true)]
async fn finished_but_unacked_is_remembered() {
    let storage = holding(&["sleep 500"]);
    storage.fault(Op::Delete, 0..12, Fault::Before(ErrorKind::Busy));
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    run_for(&listener, s(120)).await;
    assert_eq!(log.outcomes()[0], Outcome::Unacked);
    assert_eq!(*log.outcomes().last().unwrap(), Outcome::DuplicateDeleted);
    assert_eq!(obey.runs().len(), 1);
    assert!(storage.stored(QUEUE).is_empty());
}

/// The same while the delete is in progress: the lock expires meanwhile, and the message returns to
/// the listener that has handled it.
#[tokio::test(start_paused = true)]
async fn a_message_returning_during_its_delete_is_remembered() {
    let storage = holding(&["ok"]);
    storage.fault(Op::Delete, 0..1, Fault::Late(s(12)));
    let config = ListenerConfig {
        call_timeout: s(20),
        idle: Idle {
            min: ms(100),
            max: ms(500),
        },
        ..config()
    };
    let obey = Obey::default();
    let (listener, log) = listener(config, &storage, obey.clone());
    run_for(&listener, s(30)).await;
    assert_eq!(log.outcomes(), [Outcome::DuplicateDeleted, Outcome::Gone]);
    assert_eq!(obey.runs().len(), 1);
    assert!(storage.stored(QUEUE).is_empty());
}

/// The memory belongs to the listener, not to one run.
#[tokio::test(start_paused = true)]
async fn the_memory_survives_a_restart_in_the_process() {
    let storage = holding(&["ok"]);
    storage.fault(Op::Delete, 0..u64::MAX, Fault::Before(ErrorKind::Busy));
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    listener.once().await.unwrap();
    storage.heal();
    run_for(&listener, s(20)).await;
    assert_eq!(
        log.outcomes(),
        [Outcome::Unacked, Outcome::DuplicateDeleted]
    );
    assert_eq!(obey.runs().len(), 1);
}

/// If the answer to a successful delete is lost, the 404 of the repetition counts as success.
#[tokio::test(start_paused = true)]
async fn lost_answer_of_a_delete_is_success() {
    let storage = holding(&["ok"]);
    storage.fault(Op::Delete, 0..1, Fault::LostAnswer);
    let (listener, log) = listener(config(), &storage, Obey::default());
    listener.once().await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Done]);
}

/// If the answer to a retry delay is lost, the mismatch of the repetition counts as success, not as
/// a lost lock.
#[tokio::test(start_paused = true)]
async fn lost_answer_of_a_retry_is_success() {
    let storage = holding(&["retry 100"]);
    storage.fault(Op::Update, 0..1, Fault::LostAnswer);
    let (listener, log) = listener(config(), &storage, Obey::default());
    listener.once().await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Retried]);
}

/// The poison copy is durable before the source is deleted; while it cannot be put, nothing is
/// deleted.
#[tokio::test(start_paused = true)]
async fn ls1_no_delete_without_a_poison_copy() {
    let storage = holding(&["reject"]);
    storage.fault(Op::Put, 0..50, Fault::Before(ErrorKind::Busy));
    let (listener, log) = listener(config(), &storage, Obey::default());
    let story = async {
        tokio::time::sleep(s(12)).await;
        assert!(storage.deleted().is_empty());
        assert_eq!(log.outcomes()[0], Outcome::PoisonFailed);
        storage.heal();
        tokio::time::sleep(s(60)).await;
    };
    listener.run_until(story).await.unwrap();
    assert_eq!(*log.outcomes().last().unwrap(), Outcome::Poisoned);
    assert_eq!(storage.stored(POISON).len(), 1);
    assert!(storage.stored(QUEUE).is_empty());
}

/// LS4: a put that has not been made when the lock expires is given up: the message has returned by
/// then, and its next owner makes the copy. The scenarios found a 503's Retry-After that was waited
/// for beyond the lock.
#[tokio::test(start_paused = true)]
async fn ls4_no_poison_copy_after_the_lock() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    storage.put(QUEUE, "reject");
    storage.fault(Op::Put, 0..1, Fault::Late(s(12)));
    let config = with(|c| c.call_timeout = s(20));
    let (listener, log) = listener(config, &storage, Obey::default());
    run_for(&listener, s(90)).await;
    assert_eq!(log.outcomes(), [Outcome::PoisonFailed, Outcome::Poisoned]);
    assert_eq!(storage.stored(POISON).len(), 1);
}

/// A poison put whose answer was lost may leave two copies; both have the same id.
#[tokio::test(start_paused = true)]
async fn poison_copies_can_be_told_apart() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    storage.put(QUEUE, "reject");
    storage.fault(Op::Put, 0..1, Fault::LostAnswer);
    let (listener, log) = listener(config(), &storage, Obey::default());
    listener.once().await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Poisoned]);
    let ids: Vec<String> = storage
        .stored(POISON)
        .iter()
        .map(|m| serde_json::from_str::<serde_json::Value>(&m.text).unwrap()["id"].to_string())
        .collect();
    assert_eq!(ids, ["\"m1\"", "\"m1\""]);
}

/// A message that was poisoned but not deleted is only deleted when it returns.
#[tokio::test(start_paused = true)]
async fn a_poisoned_message_is_not_poisoned_twice() {
    let storage = holding(&["reject"]);
    storage.fault(Op::Delete, 0..8, Fault::Before(ErrorKind::Busy));
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    run_for(&listener, s(90)).await;
    assert_eq!(log.outcomes()[0], Outcome::PoisonedUnacked);
    assert_eq!(*log.outcomes().last().unwrap(), Outcome::DuplicateDeleted);
    assert_eq!((obey.runs().len(), storage.stored(POISON).len()), (1, 1));
}

/// Text that cannot be decoded goes to the poison queue as stored; valid text is decoded.
#[tokio::test(start_paused = true)]
async fn undecodable_is_poisoned_raw() {
    let storage = holding(&["*not base64*", "aGVsbG8="]);
    let config = with(|c| c.encoding = Encoding::Base64);
    let handler = function(|message, _| async move {
        match &message.body[..] {
            b"hello" => Verdict::Ok,
            _ => Verdict::retry("unexpected"),
        }
    });
    let (listener, log) = listener(config, &storage, handler);
    listener.once().await.unwrap();
    assert_eq!(
        (log.count(Outcome::Poisoned), log.count(Outcome::Done)),
        (1, 1)
    );
    assert!(
        storage.stored(POISON)[0]
            .text
            .contains(r#""body":"*not base64*""#)
    );
}

/// A hanging handler is cancelled at its timeout; its slot becomes free and its message is retried.
#[tokio::test(start_paused = true)]
async fn a_hang_ends_at_the_time_out() {
    let storage = holding(&["hang"; 4]);
    let config = with(|c| c.tasks = smalt_listener::config::Tasks { min: 1, max: 1 });
    let (listener, log) = listener(config, &storage, Obey::default());
    let story = async {
        tokio::time::sleep(s(1)).await;
        storage.put(QUEUE, "ok");
        tokio::time::sleep(s(65)).await;
    };
    listener.run_until(story).await.unwrap();
    assert_eq!(log.count(Outcome::Done), 1);
    assert!(log.all()[0].reason.contains("timed out after 60s"));
    assert!(log.count(Outcome::Retried) >= 4);
}

/// Without renewal a handler ends, and its retry is sent, while the lock is still valid: no
/// concurrent second run, no stale receipt. The scenarios found a handler that was cancelled only
/// when the lock expired.
#[tokio::test(start_paused = true)]
async fn without_renewal_a_hang_ends_within_the_lock() {
    for visibility_s in [2, 10, 60] {
        let storage = holding(&["hang"]);
        let config = ListenerConfig {
            renew: false,
            visibility: s(visibility_s),
            ..config()
        };
        let (listener, log) = listener(config, &storage, Obey::default());
        listener
            .run_until(tokio::time::sleep(s(2 * visibility_s + 20)))
            .await
            .unwrap();
        assert_eq!(log.outcomes()[0], Outcome::Retried, "{visibility_s} s");
        assert_eq!(storage.stale_receipts(), 0, "{visibility_s} s");
    }
}

/// LL4: a drain ends within the grace time; running handlers are then cancelled and their messages
/// given back.
#[tokio::test(start_paused = true)]
async fn ll4_grace_is_kept() {
    let storage = holding(&["sleep 10000", "hang"]);
    let (listener, log) = listener(config(), &storage, Obey::default());
    let begun = tokio::time::Instant::now();
    let report = run_for(&listener, s(1)).await;
    assert_eq!(report.ended, Ended::GraceExceeded);
    assert_eq!(log.outcomes(), [Outcome::Done, Outcome::Released]);
    assert!(
        begun.elapsed() <= s(1) + s(20) + s(8),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(storage.steal(QUEUE, s(1)).len(), 1, "visible at once");
}

/// A missing queue is waited for, or created.
#[tokio::test(start_paused = true)]
async fn a_missing_queue() {
    let storage = Arc::new(FakeStorage::new(&[]));
    let (waiting, _) = listener(config(), &storage, Obey::default());
    assert!(matches!(
        waiting.once().await,
        Err(ListenerError::QueueMissing(_))
    ));
    run_for(&waiting, s(600)).await;
    assert!(storage.calls(Op::Get) < 40, "patiently");
    let config = with(|c| c.create_queue = true);
    let (creating, _) = listener(config, &storage, Obey::default());
    assert_eq!(creating.once().await.unwrap().ended, Ended::Empty);
}

/// After a refused credential `once` reports an error; `run` retries once a minute and recovers.
#[tokio::test(start_paused = true)]
async fn a_refused_credential() {
    let storage = holding(&["ok"]);
    storage.fault(Op::Get, 0..11, Fault::Before(ErrorKind::Denied));
    let (listener, log) = listener(config(), &storage, Obey::default());
    assert!(matches!(
        listener.once().await,
        Err(ListenerError::Denied(_))
    ));
    run_for(&listener, s(590)).await;
    assert_eq!(storage.calls(Op::Get), 11);
    run_for(&listener, s(20)).await;
    assert_eq!(log.count(Outcome::Done), 1);
}

/// During an outage `once` gives up; `run` continues and catches up.
#[tokio::test(start_paused = true)]
async fn an_outage() {
    let storage = holding(&[]);
    storage.fault(Op::Get, 0..u64::MAX, Fault::Before(ErrorKind::Unreachable));
    storage.put(QUEUE, "ok");
    let (listener, log) = listener(config(), &storage, Obey::default());
    assert!(matches!(
        listener.once().await,
        Err(ListenerError::Unreachable(_))
    ));
    let story = async {
        tokio::time::sleep(s(300)).await;
        storage.heal();
        tokio::time::sleep(s(40)).await;
    };
    listener.run_until(story).await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Done]);
}

/// `once` does not retry after an untrusted certificate.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_trusted() {
    let storage = holding(&[]);
    storage.fault(Op::Get, 0..u64::MAX, Fault::Before(ErrorKind::Untrusted));
    let (listener, _) = listener(config(), &storage, Obey::default());
    assert!(matches!(
        listener.once().await,
        Err(ListenerError::Unreachable(_))
    ));
    assert_eq!(storage.calls(Op::Get), 1);
}

/// A request without an answer is given up; the listener continues.
#[tokio::test(start_paused = true)]
async fn a_get_that_never_answers() {
    let storage = holding(&["ok"]);
    storage.fault(Op::Get, 0..1, Fault::Late(s(1_000_000)));
    let (listener, log) = listener(config(), &storage, Obey::default());
    run_for(&listener, s(10)).await;
    assert_eq!(log.outcomes(), [Outcome::Done]);
}

/// LS4: a get whose answer was late leaves too little visibility: it is renewed first, or not
/// started.
#[tokio::test(start_paused = true)]
async fn ls4_a_late_answer_is_renewed_before_the_start() {
    for (update_works, outcome) in [(true, Outcome::Done), (false, Outcome::NotStarted)] {
        let storage = holding(&["ok"]);
        storage.fault(Op::Get, 0..1, Fault::Slow(s(9)));
        if !update_works {
            storage.fault(Op::Update, 0..1, Fault::Before(ErrorKind::Busy));
        }
        let config = with(|c| c.call_timeout = s(20));
        let (listener, log) = listener(config, &storage, Obey::default());
        listener.once().await.unwrap();
        assert_eq!(log.outcomes()[0], outcome);
    }
}

/// LL5: a service clock that is ten minutes off has no effect.
#[tokio::test(start_paused = true)]
async fn ll5_clock_skew_is_harmless() {
    let storage = Arc::new(FakeStorage::skewed(&[QUEUE], s(600)));
    storage.put_for(QUEUE, "sleep 25000", MessageTtl::After(s(100)));
    let (listener, log) = listener(config(), &storage, Obey::default());
    listener.once().await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Done]);
    assert_eq!(storage.stale_receipts(), 0);
}

/// If a message expires during its handler, no update beyond its expiry is attempted, and the
/// handler finishes.
#[tokio::test(start_paused = true)]
async fn a_message_that_expires_under_its_handler() {
    let storage = holding(&[]);
    storage.put_for(QUEUE, "sleep 25000", MessageTtl::After(s(19)));
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    listener.once().await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Gone]);
    assert!(obey.runs()[0].ok_at.is_some());
}

/// LL2: an alarm is raised before the service drops a message that keeps failing. It allows for the
/// time that a poller may sleep when the message becomes visible.
#[tokio::test(start_paused = true)]
async fn ll2_alarm_before_expiry() {
    let storage = holding(&[]);
    storage.put_for(QUEUE, "retry 30", MessageTtl::After(s(100)));
    let config = with(|c| c.max_dequeue = 100);
    let (listener, log) = listener(config, &storage, Obey::default());
    let report = run_for(&listener, s(200)).await;
    let alarms: Vec<bool> = log.all().iter().map(|d| d.expiring).collect();
    assert_eq!(alarms.iter().position(|a| *a), Some(1), "{alarms:?}");
    assert!(report.expiring >= 1);
}

/// 503s lower the request rate; without them the rate recovers and all messages are processed.
#[tokio::test(start_paused = true)]
async fn throttling_slows_down() {
    let storage = holding(&["sleep 100"; 400]);
    storage.fault(Op::Get, 10..18, Fault::Before(ErrorKind::Busy));
    let (listener, log) = listener(config(), &storage, Obey::default());
    run_for(&listener, s(120)).await;
    assert_eq!(log.count(Outcome::Done), 400);
}

/// A 503 also halves the pool, under every policy.
#[tokio::test(start_paused = true)]
async fn throttling_halves_the_pool() {
    let storage = holding(&["sleep 1000"; 4000]);
    let config = with(|c| c.policy = smalt_listener::config::Policy::Fixed);
    let (listener, _) = listener(config, &storage, Obey::default());
    let mut status = listener.status();
    let story = async {
        status.wait_for(|s| s.tasks == 8).await.unwrap();
        tokio::time::sleep(s(5)).await;
        let gets = storage.calls(Op::Get);
        storage.fault(Op::Get, gets..gets + 1, Fault::Before(ErrorKind::Busy));
        let halved = status.wait_for(|s| s.tasks <= 4);
        tokio::time::timeout(s(5), halved).await.unwrap().unwrap();
    };
    listener.run_until(story).await.unwrap();
}
