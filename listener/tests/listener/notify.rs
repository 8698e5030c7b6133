//! Publish and subscribe between processes: each has its own storage client, relay and
//! subscription.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rand_chacha::ChaCha8Rng;
use rand_core::{RngCore, SeedableRng};
use smalt_listener::handler::{Message, Verdict, function};
use smalt_listener::notify::{Destination, Relay, Subscription, Topic, Trigger, Undelivered, When};
use smalt_listener::observers::{Idle, OnEmpty};
use smalt_listener::payload::{SendOptions, Sender};
use smalt_listener::{ListenerConfig, Observer, PoolState, QueueListener};
use smalt_sleeve::port::{MessageTtl, Storage};
use tokio::time::Instant;

use crate::support::*;

const TOPIC: &str = "events";
const WATCHDOG: Duration = Duration::from_secs(600);

/// What one process saw: events, and bodies with the time at which their handlers started.
#[derive(Default)]
struct Witness {
    events: Mutex<Vec<Trigger>>,
    bodies: Mutex<Vec<(String, Instant)>>,
}

impl Observer for Witness {
    fn triggered(&self, event: &Trigger) {
        self.events.lock().unwrap().push(event.clone());
    }

    fn handling(&self, message: &Message) {
        let body = String::from_utf8(message.body.to_vec()).unwrap();
        self.bodies.lock().unwrap().push((body, Instant::now()));
    }
}

/// One process: a listener that sleeps until an event or its watchdog, and a subscription.
struct Process {
    listener: Arc<QueueListener>,
    subscription: Arc<Subscription>,
    relay: Relay,
    witness: Arc<Witness>,
}

impl Process {
    fn new(storage: &Arc<FakeStorage>, number: u64) -> Self {
        Process::patient(storage, number, s(1), WATCHDOG)
    }

    fn patient(
        storage: &Arc<FakeStorage>,
        number: u64,
        every: Duration,
        watchdog: Duration,
    ) -> Self {
        let storage = Arc::clone(storage) as Arc<dyn Storage>;
        let config = ListenerConfig {
            idle_tasks: 0,
            watchdog,
            cooldown: s(5),
            ..ListenerConfig::new(QUEUE)
        };
        let handler = Arc::new(function(|_, _| async { Verdict::Ok }));
        let listener = QueueListener::new(config, Arc::clone(&storage), handler, number).unwrap();
        let witness = Arc::new(Witness::default());
        let listener = listener.observed_by(Arc::clone(&witness) as Arc<dyn Observer>);
        let relay = Relay::new(storage.account());
        relay.add(None, listener.waker());
        let who = ("process", number);
        let subscription = Subscription::new(storage, TOPIC, who, every, relay.clone()).unwrap();
        Process {
            listener: Arc::new(listener),
            subscription: Arc::new(subscription),
            relay,
            witness,
        }
    }

    /// Starts it; it is killed when the set is dropped.
    fn start(&self, tasks: &mut tokio::task::JoinSet<()>) {
        let (listener, subscription) = (Arc::clone(&self.listener), Arc::clone(&self.subscription));
        tasks.spawn(async move { drop(listener.run_until(std::future::pending()).await) });
        tasks.spawn(async move { subscription.watch().await });
    }

    fn events(&self) -> Vec<Trigger> {
        self.witness.events.lock().unwrap().clone()
    }
}

fn topic(storage: &Arc<FakeStorage>) -> Arc<Topic> {
    Arc::new(Topic::new(Arc::clone(storage) as Arc<dyn Storage>, TOPIC).unwrap())
}

fn sender(storage: &Arc<FakeStorage>, to: Vec<Arc<dyn Destination>>, when: When) -> Sender {
    let storage = Arc::clone(storage) as Arc<dyn Storage>;
    let sender = Sender::new(storage, QUEUE, Default::default(), None, 3).unwrap();
    sender.notifying(to, when)
}

fn event(text: &str) -> Trigger {
    Trigger::parse(text).unwrap()
}

/// L3, L32, L33: the sender publishes by itself, and every subscribed process wakes within its
/// interval, whichever of them gets the message; observers see depth and size.
#[tokio::test(start_paused = true)]
async fn l33_an_event_reaches_every_process() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let processes = [1, 2, 3].map(|number| Process::new(&storage, number));
    let mut tasks = tokio::task::JoinSet::new();
    processes
        .iter()
        .for_each(|process| process.start(&mut tasks));
    tokio::time::sleep(s(100)).await;
    let asleep =
        |process: &Process| process.listener.status().borrow().state == PoolState::Watching;
    assert!(processes.iter().all(asleep));
    let sender = sender(&storage, vec![topic(&storage)], When::First);
    let put = Instant::now();
    sender.send(b"work", SendOptions::default()).await.unwrap();
    tokio::time::sleep(s(2)).await;
    let mut started = Vec::new();
    for process in &processes {
        let events = process.events();
        assert_eq!(events.len(), 1, "each process is told once");
        assert_eq!(events[0].event.as_deref(), Some("first"));
        assert_eq!(
            (events[0].depth, events[0].payload_size),
            (Some(1), Some(4))
        );
        started.extend(process.witness.bodies.lock().unwrap().iter().cloned());
    }
    assert_eq!(started.len(), 1);
    assert_eq!(started[0].0, "work", "L21: an observer sees the body");
    assert!(started[0].1 - put <= s(2), "{:?}", started[0].1 - put);
    for process in &processes {
        let queue = process.subscription.metrics().queue();
        assert!(storage.stored(queue).is_empty(), "events are deleted");
    }
}

/// DL18, DL21: a lost, malformed or unrelated event strands no message.
#[tokio::test(start_paused = true)]
async fn dl18_the_watchdog_finds_messages_without_events() {
    for (text, is_told) in [
        (r#"{"queue":"Orders","account":"FAKE"}"#, true),
        (r#"{"queue":"mails"}"#, false),
        (r#"{"queue":"orders","account":"other"}"#, false),
        ("broken", false),
    ] {
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        let process = Process::new(&storage, 1);
        let mut tasks = tokio::task::JoinSet::new();
        process.start(&mut tasks);
        tokio::time::sleep(s(100)).await;
        let put = Instant::now();
        storage.put(QUEUE, "work");
        let queue = process.subscription.metrics().queue();
        storage.put_for(queue, text, MessageTtl::After(s(300)));
        tokio::time::sleep(WATCHDOG + s(1)).await;
        let started = process.witness.bodies.lock().unwrap()[0].1 - put;
        assert_eq!(started <= s(2), is_told, "{started:?} with {text}");
        assert!(
            storage.stored(queue).is_empty(),
            "malformed events are deleted, too"
        );
    }
}

/// A process subscribes again when its queue is gone, and then looks, because events may be lost.
#[tokio::test(start_paused = true)]
async fn a_deleted_subscription_is_created_again() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let process = Process::new(&storage, 1);
    let mut tasks = tokio::task::JoinSet::new();
    process.start(&mut tasks);
    tokio::time::sleep(s(100)).await;
    process.subscription.leave().await;
    storage.put(QUEUE, "work");
    tokio::time::sleep(s(3)).await;
    assert!(storage.stored(QUEUE).is_empty(), "woken without an event");
    assert_eq!(
        topic(&storage)
            .put(&event(r#"{"queue":"orders"}"#), s(0))
            .await
            .unwrap(),
        1
    );
}

/// The subscription of a process that died is deleted by another; those of living processes, and
/// queues that only look like subscriptions, stay.
#[tokio::test(start_paused = true)]
async fn an_abandoned_subscription_is_deleted() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, "events-sub-archive"]));
    let [dead, idle, alive] = [1, 2, 3].map(|number| Process::new(&storage, number));
    dead.subscription.subscribe().await.unwrap();
    let (topic, orders) = (topic(&storage), event(r#"{"queue":"orders"}"#));
    assert_eq!(topic.put(&orders, s(0)).await.unwrap(), 1);
    tokio::time::sleep(s(400)).await;
    idle.subscription.subscribe().await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    alive.start(&mut tasks);
    tokio::time::sleep(s(10)).await;
    assert_eq!(topic.put(&orders, s(0)).await.unwrap(), 2, "idle and alive");
    assert_eq!(storage.calls(Op::DeleteQueue), 1);
}

/// A fleet shares the search for abandoned subscriptions: its requests grow with the number of
/// processes and not with its square.
#[tokio::test(start_paused = true)]
async fn a_fleet_shares_the_search_for_abandoned_subscriptions() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    for number in 0..20 {
        let dead = Process::new(&storage, number);
        dead.subscription.subscribe().await.unwrap();
    }
    let orders = event(r#"{"queue":"orders"}"#);
    assert_eq!(topic(&storage).put(&orders, s(0)).await.unwrap(), 20);
    tokio::time::sleep(s(400)).await;
    let mut tasks = tokio::task::JoinSet::new();
    for number in 100..160 {
        Process::new(&storage, number).start(&mut tasks);
    }
    tokio::time::sleep(s(60)).await;
    // A search ends where another process has deleted a queue first; the next one finds the rest.
    let left = topic(&storage).put(&orders, s(0)).await.unwrap();
    assert!((60..70).contains(&left), "{left}");
    let peeks = storage.calls(Op::Peek);
    assert!(peeks <= 60 * 16, "{peeks}");
}

/// L33: handlers of events by their name, next to listeners, in one process.
#[tokio::test(start_paused = true)]
async fn l33_handlers_are_called_by_the_name_of_the_event() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let process = Process::new(&storage, 1);
    let prices = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&prices);
    process.relay.on("price", move |event| {
        assert_eq!(event.queue(), "prices");
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let relay = &process.relay;
    assert_eq!(
        relay.relay(&event(r#"{"queue":"prices","event":"price"}"#)),
        1
    );
    assert_eq!(
        relay.relay(&event(r#"{"queue":"prices","event":"other"}"#)),
        0
    );
    assert_eq!(
        relay.relay(&event(r#"{"queue":"orders","event":"other"}"#)),
        1
    );
    assert_eq!(prices.load(Ordering::Relaxed), 1);
    assert_eq!(process.events().len(), 1);
}

/// L3: the first message and a depth ask for the depth once a second at most; a delayed message
/// has a delayed event; a sender without destinations asks for nothing.
#[tokio::test(start_paused = true)]
async fn l3_what_a_sender_publishes() {
    let options = SendOptions::default();
    for (when, events, looks) in [
        (When::Each, vec!["put"; 6], 0),
        (When::First, vec!["first"], 3),
        (When::Depth(3), vec!["depth"], 3),
    ] {
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        let relay = Relay::new("fake");
        let witness = Process::new(&storage, 1);
        relay.add(None, witness.listener.waker());
        let sender = sender(&storage, vec![Arc::new(relay)], when);
        for _ in 0..3 {
            sender.send(b"a", options).await.unwrap();
            sender.send(b"b", options).await.unwrap();
            tokio::time::sleep(s(1)).await;
        }
        let told = witness.events();
        let names: Vec<_> = told
            .iter()
            .filter_map(|event| event.event.as_deref())
            .collect();
        assert_eq!(
            (names, storage.calls(Op::Depth)),
            (events, looks),
            "{when:?}"
        );
    }
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let (topic, process) = (topic(&storage), Process::new(&storage, 1));
    process.subscription.subscribe().await.unwrap();
    let later = SendOptions {
        delay: s(60),
        ..options
    };
    let delayed = sender(&storage, vec![topic], When::First);
    delayed.send(b"a", later).await.unwrap();
    let queue = process.subscription.metrics().queue();
    let put = &storage.stored(queue)[0];
    assert_eq!(put.visible.since(put.inserted), s(60));
    let silent = sender(&storage, Vec::new(), When::First);
    silent.send(b"a", options).await.unwrap();
    assert_eq!(storage.calls(Op::Depth), 0);
}

/// Loses, doubles and delays events by chance.
struct Unreliable {
    topic: Arc<Topic>,
    random: Mutex<ChaCha8Rng>,
}

impl Unreliable {
    fn draw(&self) -> u64 {
        u64::from(self.random.lock().unwrap().next_u32() % 10)
    }
}

#[async_trait]
impl Destination for Unreliable {
    async fn deliver(&self, event: &Trigger, delay: Duration) -> Result<u64, Undelivered> {
        match self.draw() {
            0..3 => Err("lost".into()),
            3..5 => {
                self.topic.put(event, delay).await?;
                Ok(self.topic.put(event, delay).await?)
            }
            5..7 => Ok(self.topic.put(event, delay + s(20)).await?),
            _ => Ok(self.topic.put(event, delay).await?),
        }
    }
}

/// Runs three processes and a sender with unreliable events. Returns the delays from each put to
/// the start of its handler, and the number of requests.
async fn with_unreliable_events(seed: u64) -> (Vec<Duration>, usize) {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    // Long enough that 1,000 runs take seconds.
    let (every, watchdog) = (s(10), s(120));
    let processes =
        [1, 2, 3].map(|number| Process::patient(&storage, seed ^ (number << 40), every, watchdog));
    let mut tasks = tokio::task::JoinSet::new();
    processes
        .iter()
        .for_each(|process| process.start(&mut tasks));
    let to = Arc::new(Unreliable {
        topic: topic(&storage),
        random: Mutex::new(ChaCha8Rng::seed_from_u64(seed)),
    });
    let when = [When::Each, When::First, When::Depth(2)][(seed % 3) as usize];
    let sender = sender(
        &storage,
        vec![Arc::clone(&to) as Arc<dyn Destination>],
        when,
    );
    let mut puts = Vec::new();
    for number in 0..6 {
        tokio::time::sleep(s(to.draw() * 7)).await;
        puts.push(Instant::now());
        let body = number.to_string();
        sender
            .send(body.as_bytes(), SendOptions::default())
            .await
            .unwrap();
    }
    tokio::time::sleep(watchdog + s(30)).await;
    let mut waits = Vec::new();
    for (number, put) in puts.iter().enumerate() {
        let all = processes
            .iter()
            .flat_map(|process| process.witness.bodies.lock().unwrap().clone());
        let started: Vec<_> = all
            .filter(|(body, _)| *body == number.to_string())
            .collect();
        assert_eq!(started.len(), 1, "message {number} with seed {seed}");
        waits.push(started[0].1 - *put);
    }
    (waits, storage.requests().len())
}

/// 500 seeds, each twice: with lost, doubled and late events every message is handled once, within
/// the watchdog's interval; and the same seed gives the same run.
#[test]
fn lost_and_doubled_events_cost_at_most_the_watchdog() {
    let mut fast = [0; 3];
    for seed in 0..500_u64 {
        let run = || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            runtime.block_on(with_unreliable_events(seed))
        };
        let (waits, requests) = run();
        assert_eq!(run(), (waits.clone(), requests), "seed {seed}");
        let longest = waits.iter().max().unwrap();
        assert!(*longest <= s(121), "{longest:?} with seed {seed}");
        fast[(seed % 3) as usize] += waits.iter().filter(|wait| **wait <= s(11)).count();
    }
    // Of about 1,000 messages each: an event for every one arrives at once for half of them; the
    // other rules publish less often.
    assert!(fast[0] > 500 && fast[1] > 100 && fast[2] > 50, "{fast:?}");
}

/// Decides after the second empty get of each task.
struct Decides(OnEmpty);

impl Observer for Decides {
    fn queue_empty(&self, idle: &Idle) -> OnEmpty {
        match idle.empty_gets {
            ..2 => OnEmpty::Pause,
            _ => self.0,
        }
    }
}

/// L20: an observer sets the pause after an empty get, or stops the task before the cooldown.
#[tokio::test(start_paused = true)]
async fn l20_queue_empty_decides() {
    for (decision, gets) in [
        (OnEmpty::Pause, 8..20),
        (OnEmpty::PauseFor(s(5)), 12..16),
        (OnEmpty::Stop, 2..3),
    ] {
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        let config = ListenerConfig {
            idle_tasks: 0,
            watchdog: WATCHDOG,
            cooldown: s(60),
            ..ListenerConfig::new(QUEUE)
        };
        let (listener, _) = listener(config, &storage, function(|_, _| async { Verdict::Ok }));
        let listener = Arc::into_inner(listener).unwrap();
        let listener = Arc::new(listener.observed_by(Arc::new(Decides(decision))));
        let waker = listener.waker();
        let run = Arc::clone(&listener);
        let running = tokio::spawn(async move { run.run_until(tokio::time::sleep(s(120))).await });
        tokio::time::sleep(s(61)).await;
        let made = storage.calls(Op::Get);
        assert!(gets.contains(&made), "{made} gets with {decision:?}");
        storage.put(QUEUE, "work");
        waker.wake();
        tokio::time::sleep(s(1)).await;
        assert!(storage.stored(QUEUE).is_empty(), "a task starts again");
        running.await.unwrap().unwrap();
    }
}
