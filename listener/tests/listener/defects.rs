//! The defects of the source design (DL1-DL26), each as a test that would have revealed it. Tests
//! of pure rules are next to the rules. DL1, the cost side of DL2 and DL25 belong to the cost
//! estimate, DL3 to the fleet, DL26 to payloads; their tests are elsewhere.

use std::sync::Arc;

use smalt_listener::{Ended, ListenerConfig, Outcome, PoolState};
use smalt_sleeve::port::ErrorKind;

use crate::support::handlers::Obey;
use crate::support::*;

/// DL2: an idle poll is one request; the depth is never queried while idle.
#[tokio::test(start_paused = true)]
async fn dl2_no_depth_query_while_idle() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, _) = listener(config(), &storage, Obey::default());
    let report = run_for(&listener, s(3600)).await;
    assert_eq!(storage.calls(Op::Depth), 0);
    assert_eq!(report.requests, storage.calls(Op::Get));
    // One poller at 30 s makes about 120 requests an hour; a fixed interval of 1 s would need
    // 3,600.
    assert!((100..200).contains(&report.requests), "{}", report.requests);
}

/// DL4: the last poller survives a day without messages and receives the next one.
#[tokio::test(start_paused = true)]
async fn dl4_the_last_poller_survives_idleness() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, log) = listener(config(), &storage, Obey::default());
    let day = async {
        tokio::time::sleep(s(86_400)).await;
        storage.put(QUEUE, "ok");
        tokio::time::sleep(s(31)).await;
    };
    listener.run_until(day).await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Done]);
}

/// DL6, LS3: a failure, panic or hang of one message does not affect the rest of the batch.
#[tokio::test(start_paused = true)]
async fn dl6_a_batch_survives_its_worst_message() {
    let storage = holding(&[
        "panic",
        "ok",
        "hang",
        "ok",
        "reject",
        "ok",
        "retry 3600",
        "ok",
    ]);
    let config = with(|c| c.slots = 8);
    let (listener, log) = listener(config, &storage, Obey::default());
    run_for(&listener, ms(500)).await;
    assert_eq!(log.count(Outcome::Done), 4);
    assert_eq!(log.count(Outcome::Poisoned), 1);
    assert_eq!(
        storage.stored(QUEUE).len(),
        3,
        "panic, hang and retry are still there"
    );
}

/// DL7, DL23: a sleeping listener stops at once, not at the end of its interval.
#[tokio::test(start_paused = true)]
async fn dl7_dl23_sleep_is_cancellable() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, _) = listener(config(), &storage, Obey::default());
    let stop_at = s(600);
    let begun = tokio::time::Instant::now();
    let report = run_for(&listener, stop_at).await;
    assert_eq!(report.ended, Ended::Drained);
    assert!(begun.elapsed() < stop_at + ms(100), "{:?}", begun.elapsed());
}

/// DL23: messages that were received but not started before the stop are given back at once.
#[tokio::test(start_paused = true)]
async fn dl23_unstarted_messages_are_released() {
    let storage = holding(&["ok"]);
    storage.fault(Op::Get, 0..1, Fault::Slow(s(2)));
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    run_for(&listener, s(1)).await;
    assert_eq!(log.outcomes(), [Outcome::Released]);
    assert!(obey.runs().is_empty());
    assert_eq!(storage.steal(QUEUE, s(1)).len(), 1, "visible again");
}

/// DL8, DL9: every message is counted once and handled once.
#[tokio::test(start_paused = true)]
async fn dl8_dl9_each_message_once() {
    let storage = holding(&["sleep 20"; 500]);
    // Failures between gets that work are no reason to give up.
    for failing in [0, 9, 18, 27, 36, 45] {
        let busy = Fault::Before(ErrorKind::Busy);
        storage.fault(Op::Get, failing..failing + 1, busy);
    }
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    let report = listener.once().await.unwrap();
    assert_eq!((report.received, report.count(Outcome::Done)), (500, 500));
    assert_eq!((obey.runs().len(), log.all().len()), (500, 500));
    assert_eq!(report.ended, Ended::Empty);
    assert!(storage.stored(QUEUE).is_empty());
}

/// DL8: messages that are settled while the listener drains are counted as well.
#[tokio::test(start_paused = true)]
async fn dl8_messages_settled_while_draining_are_counted() {
    let storage = holding(&["sleep 2000"; 3]);
    let (listener, log) = listener(config(), &storage, Obey::default());
    let report = run_for(&listener, s(1)).await;
    assert_eq!(log.count(Outcome::Done), 3);
    assert_eq!(report.count(Outcome::Done), 3);
}

/// DL10: the pool grows while it is busy, not only after it was idle.
#[tokio::test(start_paused = true)]
async fn dl10_scales_up_while_busy() {
    let storage = holding(&["sleep 1000"; 4000]);
    let (listener, _) = listener(config(), &storage, Obey::default());
    let mut status = listener.status();
    let seen = async { status.wait_for(|s| s.tasks >= 8).await.unwrap().tasks };
    let running = listener.run_until(std::future::pending());
    let tasks = tokio::select! {
        _ = running => 0,
        tasks = seen => tasks,
        () = tokio::time::sleep(s(10)) => 0,
    };
    assert_eq!(tasks, 8, "all tasks run within ten seconds");
}

/// DL11: a thousand wake-ups at once start only as many tasks as are wanted.
#[tokio::test(start_paused = true)]
async fn dl11_wake_ups_do_not_over_start() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, _) = listener(config(), &storage, Obey::default());
    let waker = listener.waker();
    let storm = async {
        for _ in 0..1000 {
            waker.wake();
            tokio::task::yield_now().await;
        }
    };
    let report = listener.run_until(storm).await.unwrap();
    assert_eq!(report.tasks_started, 1);
}

/// DL12, LS10: when the whole pool goes idle at once, the floor keeps polling.
#[tokio::test(start_paused = true)]
async fn dl12_the_floor_never_leaves() {
    let storage = holding(&["sleep 500"; 2000]);
    let (listener, log) = listener(config(), &storage, Obey::default());
    let mut status = listener.status();
    let watch = async {
        let mut least = u32::MAX;
        loop {
            status.changed().await.unwrap();
            let now = *status.borrow();
            if matches!(now.state, PoolState::Active | PoolState::Watching) {
                least = least.min(now.tasks);
            }
            if now.state == PoolState::Watching && now.tasks == 1 && log.all().len() == 2000 {
                break least;
            }
        }
    };
    let least = tokio::select! {
        _ = listener.run_until(std::future::pending()) => 0,
        least = watch => least,
    };
    assert!(least >= 1);
}

/// DL14, LS9: the requests stay within the rate under any load.
#[tokio::test(start_paused = true)]
async fn dl14_ls9_requests_stay_within_the_rate() {
    let storage = holding(&["ok"; 3000]);
    let config = with(|c| c.rate_per_s = 100);
    let (listener, log) = listener(config, &storage, Obey::default());
    run_for(&listener, s(20)).await;
    let requests = storage.requests();
    for (i, (at, _)) in requests.iter().enumerate() {
        let within = requests[i..]
            .iter()
            .take_while(|r| r.0 < *at + s(1))
            .count();
        assert!(within <= 111, "{within} requests in one second");
    }
    assert!(log.count(Outcome::Done) > 1200, "and the rate is used");
}

/// DL15: no other listener receives a message whose handler takes many times the visibility
/// timeout.
#[tokio::test(start_paused = true)]
async fn dl15_renewal_keeps_a_long_message() {
    let storage = holding(&["sleep 55000"]);
    let obey = Obey::default();
    let (first, log) = listener(config(), &storage, obey.clone());
    let (second, _) = listener(config(), &storage, obey.clone());
    tokio::join!(run_for(&first, s(70)), run_for(&second, s(70)));
    assert_eq!(obey.runs().len(), 1);
    let decisions = log.all();
    assert!(decisions.is_empty() || decisions[0].renewals >= 10);
    assert_eq!((storage.deleted().len(), storage.stale_receipts()), (1, 0));
}

/// DL15: a get requests only as many messages as there are free slots.
#[tokio::test(start_paused = true)]
async fn dl15_batches_fit_the_free_slots() {
    let storage = holding(&["sleep 700"; 60]);
    let (listener, _) = listener(config(), &storage, Obey::default());
    listener.once().await.unwrap();
    assert!(
        storage
            .batch_sizes()
            .iter()
            .all(|size| (1..=4).contains(size))
    );
}

/// DL16: a delete that fails for a while is repeated, without an effect on the batch.
#[tokio::test(start_paused = true)]
async fn dl16_delete_is_repeated() {
    let storage = holding(&["ok"; 3]);
    storage.fault(Op::Delete, 0..4, Fault::Before(ErrorKind::Busy));
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    listener.once().await.unwrap();
    assert_eq!(log.outcomes(), [Outcome::Done; 3]);
    assert_eq!(obey.runs().len(), 3);
}

/// DL17, LS5: a message that always fails ends in the poison queue and never expires.
#[tokio::test(start_paused = true)]
async fn dl17_poison_after_the_last_attempt() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let id = storage.put(QUEUE, "panic");
    let obey = Obey::default();
    let (listener, log) = listener(config(), &storage, obey.clone());
    run_for(&listener, s(60)).await;
    assert_eq!(
        log.outcomes(),
        [Outcome::Retried, Outcome::Retried, Outcome::Poisoned]
    );
    assert!(obey.runs().iter().all(|run| run.dequeue_count <= 3));
    let poison = storage.stored(POISON);
    assert_eq!(poison.len(), 1);
    assert_eq!(poison[0].expires, smalt_protocol::Timestamp::MAX);
    let envelope: serde_json::Value = serde_json::from_str(&poison[0].text).unwrap();
    assert_eq!(envelope["id"], id);
    assert_eq!(envelope["body"], "panic");
    assert_eq!(envelope["dequeue_count"], 3);
    assert_eq!(envelope["error"], "handler panicked: as told");
}

/// DL18: with no poller at all, no wake-up is lost, and without one the watchdog looks.
#[tokio::test(start_paused = true)]
async fn dl18_triggers_and_watchdog() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let config = with(|c| c.idle_tasks = 0);
    let (listener, log) = listener(config, &storage, Obey::default());
    let waker = listener.waker();
    let story = async {
        tokio::time::sleep(s(1000)).await;
        assert_eq!(listener.status().borrow().tasks, 0);
        storage.put(QUEUE, "ok");
        waker.wake();
        tokio::time::sleep(ms(100)).await;
        assert_eq!(log.all().len(), 1, "woken");
        tokio::time::sleep(s(1000)).await;
        storage.put(QUEUE, "ok");
        tokio::time::sleep(s(62)).await;
        assert_eq!(log.all().len(), 2, "found by the watchdog");
    };
    listener.run_until(story).await.unwrap();
}

/// DL19: after a trigger a poller looks again soon, also when it finds nothing at first.
#[tokio::test(start_paused = true)]
async fn dl19_a_trigger_shortens_the_pauses_after_it() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, _) = listener(config(), &storage, Obey::default());
    let waker = listener.waker();
    let story = async {
        tokio::time::sleep(s(1000)).await;
        waker.wake();
        tokio::time::sleep(ms(50)).await;
        let before = storage.calls(Op::Get);
        tokio::time::sleep(s(3)).await;
        assert!(storage.calls(Op::Get) > before + 1);
    };
    listener.run_until(story).await.unwrap();
}

/// The watchdog looks exactly at its time, not at the controller's next full second.
#[tokio::test(start_paused = true)]
async fn dl18_the_watchdog_is_punctual() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let config = ListenerConfig {
        idle_tasks: 0,
        watchdog: ms(5_300),
        ..config()
    };
    let (listener, _) = listener(config, &storage, Obey::default());
    let story = async {
        tokio::time::sleep(s(60)).await;
        let before = storage.calls(Op::Get);
        tokio::time::sleep(ms(10 * 5_300 + 200)).await;
        let looks = storage.calls(Op::Get) - before;
        assert!((10..=11).contains(&looks), "{looks}");
    };
    listener.run_until(story).await.unwrap();
}

/// LS8: a depth that is told when the pool is idle already starts no task unless messages wait.
#[tokio::test(start_paused = true)]
async fn ls8_a_late_depth_starts_no_task() {
    for waiting in [0, 8] {
        let storage = holding(&["ok"; 4]);
        let config = with(|c| {
            c.idle_tasks = 0;
            c.cooldown = s(2);
        });
        storage.fault(Op::Depth, 0..1, Fault::Late(s(4)));
        let (listener, log) = listener(config, &storage, Obey::default());
        let story = async {
            tokio::time::sleep(ms(3_500)).await;
            assert_eq!(listener.status().borrow().tasks, 0);
            for _ in 0..waiting {
                storage.put(QUEUE, "ok");
            }
            tokio::time::sleep(s(20)).await;
            assert_eq!(listener.status().borrow().tasks, 0, "{waiting}");
            assert_eq!(log.all().len(), 4 + waiting);
        };
        listener.run_until(story).await.unwrap();
    }
}

/// LS8: a look that took long because of an outage is followed by a full pause.
#[tokio::test(start_paused = true)]
async fn ls8_a_late_look_is_followed_by_a_whole_pause() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let config = with(|c| c.idle_tasks = 0);
    let watchdog = config.watchdog;
    let (listener, _) = listener(config, &storage, Obey::default());
    let story = async {
        tokio::time::sleep(s(100)).await;
        storage.fault(Op::Get, 0..u64::MAX, Fault::Before(ErrorKind::Busy));
        tokio::time::sleep(s(300)).await;
        storage.heal();
        let healed = tokio::time::Instant::now();
        tokio::time::sleep(s(600)).await;
        let requests = storage.requests();
        let gets = requests
            .iter()
            .filter(|(at, op)| *op == Op::Get && *at > healed);
        let gets: Vec<_> = gets.map(|(at, _)| *at).collect();
        assert!(gets.len() > 5, "{gets:?}");
        assert!(
            gets.windows(2).all(|two| two[1] - two[0] >= watchdog),
            "{gets:?}"
        );
    };
    listener.run_until(story).await.unwrap();
}

/// DL18: a wake-up during a get shortens the sleep after it.
#[tokio::test(start_paused = true)]
async fn dl18_a_wake_up_between_check_and_sleep_counts() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, log) = listener(config(), &storage, Obey::default());
    let waker = listener.waker();
    let story = async {
        tokio::time::sleep(s(600)).await;
        let gets = storage.calls(Op::Get);
        storage.fault(Op::Get, gets..gets + 1, Fault::Slow(s(2)));
        while storage.calls(Op::Get) == gets {
            tokio::time::sleep(ms(100)).await;
        }
        storage.put(QUEUE, "ok");
        waker.wake();
        tokio::time::sleep(s(3)).await;
        assert_eq!(log.all().len(), 1);
    };
    listener.run_until(story).await.unwrap();
}

/// DL19: after a wake-up the listener stays active for a cooldown, so late messages are received
/// soon.
#[tokio::test(start_paused = true)]
async fn dl19_messages_after_the_trigger_are_received_soon() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let config = with(|c| c.idle_tasks = 0);
    let (listener, log) = listener(config, &storage, Obey::default());
    let waker = listener.waker();
    let story = async {
        tokio::time::sleep(s(130)).await;
        waker.wake();
        tokio::time::sleep(s(5)).await;
        storage.put(QUEUE, "ok");
        tokio::time::sleep(s(8)).await;
        assert_eq!(log.all().len(), 1);
    };
    listener.run_until(story).await.unwrap();
}

/// DL20: bursts with gaps shorter than the cooldown do not stop and restart the pool's tasks.
#[tokio::test(start_paused = true)]
async fn dl20_gaps_do_not_collapse_the_pool() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, _) = listener(config(), &storage, Obey::default());
    let bursts = async {
        for _ in 0..20 {
            for _ in 0..200 {
                storage.put(QUEUE, "sleep 200");
            }
            tokio::time::sleep(s(10)).await;
        }
    };
    let report = listener.run_until(bursts).await.unwrap();
    assert_eq!(report.count(Outcome::Done), 4000);
    // The article's rules would stop and start the whole pool at each burst.
    assert!(
        report.tasks_started <= 20,
        "{} starts",
        report.tasks_started
    );
}

/// DL21: a trigger matches its queue in any case, and no other queue.
#[tokio::test(start_paused = true)]
async fn dl21_triggers_are_matched_by_name() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (listener, _) = listener(config(), &storage, Obey::default());
    let waker = listener.waker();
    assert!(waker.wake_for("Orders") && waker.wake_for("orders"));
    assert!(!waker.wake_for("orders-poison"));
}

/// DL24: errors at the shortest idle interval do not cause a tight loop.
#[tokio::test(start_paused = true)]
async fn dl24_errors_have_their_own_back_off() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    storage.fault(Op::Get, 0..u64::MAX, Fault::Before(ErrorKind::Busy));
    let idle = smalt_listener::config::Idle {
        min: ms(1),
        max: ms(1),
    };
    let config = ListenerConfig { idle, ..config() };
    let (listener, _) = listener(config, &storage, Obey::default());
    let waker = listener.waker();
    let minute = async {
        for _ in 0..600 {
            waker.wake();
            tokio::time::sleep(ms(100)).await;
        }
    };
    listener.run_until(minute).await.unwrap();
    assert!(storage.calls(Op::Get) <= 12, "{}", storage.calls(Op::Get));
}
