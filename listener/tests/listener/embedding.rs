//! The listener as a library: the builder, typed bodies, batches, observers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use smalt_listener::handler::{
    BatchHandler, Context, Handler, Message, Verdict, batched, json, text, typed_function,
};
use smalt_listener::observers::{Called, Expiring, Fetched, Idle, LostLock, Renewed, Started};
use smalt_listener::rules::scaling::{Load, ScalingRule, Target};
use smalt_listener::{
    Decision, ListenerConfig, Observer, Outcome, PoolState, PoolStatus, QueueListener, Report,
};
use smalt_sleeve::port::{MessageTtl, Storage};

use crate::support::handlers::Obey;
use crate::support::*;

#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
struct Order {
    id: u64,
}

fn port(storage: &Arc<FakeStorage>) -> Arc<dyn Storage> {
    Arc::clone(storage) as Arc<dyn Storage>
}

/// A body is decoded to the handler's type. A body that cannot be decoded goes to the poison queue
/// as stored after one attempt, without a run of the handler.
#[tokio::test(start_paused = true)]
async fn typed_bodies() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    storage.put(QUEUE, r#"{"id":7}"#);
    let bad = storage.put(QUEUE, r#" {"id":"seven"} "#);
    let seen: Arc<Mutex<Vec<Order>>> = Arc::default();
    let orders = Arc::clone(&seen);
    let log = Arc::new(Log::default());
    let listener = QueueListener::builder(QUEUE, port(&storage))
        .observer(Arc::clone(&log) as Arc<dyn Observer>)
        .handler(json(typed_function(move |order: Message<Order>, _ctx| {
            orders.lock().unwrap().push(order.body);
            async { Verdict::Ok }
        })))
        .build()
        .unwrap();
    listener.once().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [Order { id: 7 }]);
    assert_eq!(log.count(Outcome::Done), 1);
    let poison = storage.stored(POISON);
    let envelope: serde_json::Value = serde_json::from_str(&poison[0].text).unwrap();
    assert_eq!(envelope["id"], bad);
    assert_eq!(envelope["body"], r#" {"id":"seven"} "#);
    assert_eq!(envelope["dequeue_count"], 1);
    let why = envelope["error"].as_str().unwrap();
    assert!(why.starts_with("the body does not match the"), "{why}");
}

struct Shout;

#[async_trait]
impl Handler<String> for Shout {
    async fn handle(&self, message: &Message<String>, _ctx: &Context) -> Verdict {
        match message.body.as_str() {
            "gr\u{fc}n" => Verdict::Ok,
            other => Verdict::reject(format!("not {other}")),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn text_bodies() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    storage.put(QUEUE, "Z3LDvG4="); // "grün" in Base64
    storage.put(QUEUE, "/w=="); // 0xFF: no UTF-8
    let listener = QueueListener::builder(QUEUE, port(&storage))
        .encoding(smalt_listener::config::Encoding::Base64)
        .handler(text(Shout))
        .build()
        .unwrap();
    let report = listener.once().await.unwrap();
    assert_eq!(report.count(Outcome::Done), 1);
    assert_eq!(report.count(Outcome::Poisoned), 1);
    assert!(storage.stored(POISON)[0].text.contains("/w=="));
}

/// The builder uses its settings and rejects invalid ones.
#[tokio::test(start_paused = true)]
async fn the_builder() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let build = |slots| {
        QueueListener::builder(QUEUE, port(&storage))
            .worker("w7")
            .visibility(s(30))
            .tasks(2, 20)
            .slots(slots)
            .settings(|c| c.cooldown = s(3))
            .handler(Obey::default())
            .build()
    };
    let config = build(5).unwrap().config().clone();
    let expected = ListenerConfig {
        worker: "w7".to_owned(),
        visibility: s(30),
        tasks: smalt_listener::config::Tasks { min: 2, max: 20 },
        slots: 5,
        cooldown: s(3),
        ..ListenerConfig::new(QUEUE)
    };
    assert_eq!(config, expected);
    let refused = build(33).err().unwrap().to_string();
    assert!(refused.starts_with("slots: "), "{refused}");
}

/// A batch handler that behaves as the bodies of its messages say.
#[derive(Clone, Default)]
struct Batches(Arc<Mutex<Vec<usize>>>);

impl Batches {
    fn sizes(&self) -> Vec<usize> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl BatchHandler<String> for Batches {
    async fn handle_batch(&self, messages: &[Message<String>], ctx: &Context) -> Vec<Verdict> {
        self.0.lock().unwrap().push(messages.len());
        let any = |word: &str| messages.iter().any(|m| m.body == word);
        assert!(!any("panic"), "as told");
        if any("hang") {
            ctx.cancelled().await;
        }
        if any("sleep") {
            tokio::time::sleep(s(25)).await;
        }
        let said = messages.iter().filter(|m| m.body != "unsaid");
        said.map(|m| match m.body.as_str() {
            "retry" => Verdict::retry("asked to"),
            "reject" => Verdict::reject("bad"),
            _ => Verdict::Ok,
        })
        .collect()
    }
}

fn batch_listener(
    config: ListenerConfig,
    storage: &Arc<FakeStorage>,
) -> (Arc<QueueListener>, Arc<Log>, Batches) {
    let batches = Batches::default();
    let (listener, log) = listener(config, storage, text(batched(batches.clone(), 3)));
    (listener, log, batches)
}

/// Each message of a batch has its own verdict, and batches are as large as allowed.
#[tokio::test(start_paused = true)]
async fn a_batch_has_a_verdict_per_message() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    let ids: Vec<String> = ["ok", "reject", "ok", "retry"]
        .map(|text| storage.put(QUEUE, text))
        .into();
    let (listener, log, batches) = batch_listener(config(), &storage);
    run_for(&listener, ms(500)).await;
    assert_eq!(
        batches.sizes(),
        [3, 1],
        "four slots, at most three at a time"
    );
    let outcome = |id: &String| log.all().iter().find(|d| &d.id == id).unwrap().outcome;
    let outcomes: Vec<Outcome> = ids.iter().map(outcome).collect();
    let (done, poisoned, retried) = (Outcome::Done, Outcome::Poisoned, Outcome::Retried);
    assert_eq!(outcomes, [done, poisoned, done, retried]);
}

/// Messages without a verdict are retried alone; none counts as done.
#[tokio::test(start_paused = true)]
async fn a_missing_verdict_is_a_retry() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    for text in ["ok", "ok", "unsaid"] {
        storage.put(QUEUE, text);
    }
    let (listener, log, batches) = batch_listener(config(), &storage);
    run_for(&listener, s(60)).await;
    assert_eq!(log.count(Outcome::Done), 2);
    assert_eq!(log.count(Outcome::Retried), 2);
    assert_eq!(log.count(Outcome::Poisoned), 1);
    let told = log.all();
    let retried = told.iter().find(|d| d.outcome == Outcome::Retried).unwrap();
    assert_eq!(retried.reason, "2 verdicts for a batch of 3");
    assert_eq!(batches.sizes(), [3, 1, 1]);
}

/// LS3: a message that panics fails its companions once, but does not move them to the poison
/// queue.
#[tokio::test(start_paused = true)]
async fn ls3_a_panic_does_not_poison_its_companions() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    for text in ["ok", "panic", "ok"] {
        storage.put(QUEUE, text);
    }
    let (listener, log, batches) = batch_listener(config(), &storage);
    run_for(&listener, s(60)).await;
    assert_eq!(log.count(Outcome::Done), 2);
    assert_eq!(log.count(Outcome::Poisoned), 1);
    assert!(
        storage.stored(POISON)[0]
            .text
            .contains("batch handler panicked: as told")
    );
    assert_eq!(batches.sizes()[0], 3);
    assert!(batches.sizes()[1..].iter().all(|size| *size == 1));
}

/// LS3 with one attempt only: every message is handled alone from the start.
#[tokio::test(start_paused = true)]
async fn ls3_with_one_attempt_everything_comes_alone() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    for text in ["ok", "panic", "ok"] {
        storage.put(QUEUE, text);
    }
    let config = with(|c| c.max_dequeue = 1);
    let (listener, log, _) = batch_listener(config, &storage);
    run_for(&listener, s(60)).await;
    assert_eq!(
        (log.count(Outcome::Done), log.count(Outcome::Poisoned)),
        (2, 1)
    );
}

/// A batch that hangs is cancelled at its timeout, and its members are retried.
#[tokio::test(start_paused = true)]
async fn a_batch_that_hangs_is_cancelled() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    storage.put(QUEUE, "hang");
    storage.put(QUEUE, "ok");
    let (listener, log, batches) = batch_listener(config(), &storage);
    run_for(&listener, s(110)).await;
    assert_eq!(batches.sizes()[0], 2);
    assert_eq!(log.count(Outcome::Retried), 2);
    assert_eq!(log.count(Outcome::Done), 1);
}

/// LS4: a batch renews every member's lock. A member whose lock is lost is not acknowledged; the
/// others are.
#[tokio::test(start_paused = true)]
async fn ls4_a_lost_lock_in_a_batch() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE, POISON]));
    storage.put(QUEUE, "sleep");
    storage.put(QUEUE, "ok");
    let (listener, log, _) = batch_listener(config(), &storage);
    let snatch = async {
        tokio::time::sleep(s(6)).await;
        storage.snatch_one(QUEUE, "ok");
        tokio::time::sleep(s(30)).await;
    };
    listener.run_until(snatch).await.unwrap();
    let all = log.all();
    let first: Vec<Outcome> = all.iter().take(2).map(|d| d.outcome).collect();
    assert_eq!(first, [Outcome::LostLock, Outcome::Done]);
    assert!(all[1].renewals >= 4, "{all:?}");
}

#[derive(Default)]
struct Witness(Mutex<Vec<String>>);

impl Witness {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn notes(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, prefix: &str) -> usize {
        self.notes()
            .iter()
            .filter(|n| n.starts_with(prefix))
            .count()
    }
}

impl Observer for Witness {
    fn called(&self, call: &Called) {
        self.note(format!("called {} {:?}", call.operation, call.error));
    }

    fn received(&self, fetched: &Fetched) {
        self.note(format!("received {} {:?}", fetched.got, fetched.oldest_age));
    }

    fn failed(&self, _error: &smalt_sleeve::PortError) {
        self.note("failed");
    }

    fn started(&self, message: &Started<'_>) {
        self.note(format!("started {} {}", message.id, message.dequeue_count));
    }

    fn renewed(&self, renewal: &Renewed<'_>) {
        self.note(format!("renewed {} {}", renewal.id, renewal.succeeded));
    }

    fn lost_lock(&self, lost: &LostLock<'_>) {
        self.note(format!("lost {}", lost.id));
    }

    fn expiring(&self, alarm: &Expiring<'_>) {
        self.note(format!("expiring {} {:?}", alarm.id, alarm.left));
    }

    fn decided(&self, decision: &Decision) {
        self.note(format!(
            "decided {} {}",
            decision.id,
            decision.outcome.name()
        ));
    }

    fn idle(&self, idle: &Idle) {
        self.note(format!("idle {}", idle.empty_gets));
    }

    fn scaled(&self, pool: &PoolStatus) {
        self.note(format!("scaled {:?} {}", pool.state, pool.tasks));
    }

    fn stopped(&self, report: &Report) {
        self.note(format!("stopped {:?} {}", report.ended, report.received));
    }
}

struct Faint;

impl Observer for Faint {
    fn called(&self, _: &Called) {
        panic!("as always");
    }

    fn decided(&self, _: &Decision) {
        panic!("as always");
    }

    fn scaled(&self, _: &PoolStatus) {
        panic!("as always");
    }
}

/// L21: several observers see everything in order; one that panics affects nothing else.
#[tokio::test(start_paused = true)]
async fn observers_see_the_life_of_a_message() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let id = storage.put(QUEUE, "sleep 12000");
    storage.fault(Op::Get, 1..2, Fault::Before(smalt_sleeve::ErrorKind::Busy));
    let witness = Arc::new(Witness::default());
    let (listener, log) = listener(config(), &storage, Obey::default());
    let listener = Arc::into_inner(listener).unwrap();
    let listener = listener
        .observed_by(Arc::new(Faint))
        .observed_by(Arc::clone(&witness) as Arc<dyn Observer>);
    run_for(&listener, s(60)).await;
    assert_eq!(log.outcomes(), [Outcome::Done]);
    let life: Vec<String> = witness
        .notes()
        .into_iter()
        .filter(|note| note.contains(&id))
        .collect();
    let (started, renewed) = (format!("started {id} 1"), format!("renewed {id} true"));
    let decided = format!("decided {id} done");
    assert_eq!(life, [started, renewed.clone(), renewed, decided]);
    assert_eq!(witness.count("received 1 Some(0"), 1);
    assert_eq!(witness.count("failed"), 1);
    assert_eq!(witness.count("called Get Messages Some(Busy)"), 1);
    assert_eq!(witness.count("called Update Message None"), 2);
    assert!(witness.count("idle ") > 3);
    assert!(witness.count("scaled Watching 1") == 1 && witness.count("scaled Active") >= 1);
    assert_eq!(witness.notes().last().unwrap(), "stopped Drained 1");
    assert_eq!(listener.status().borrow().state, PoolState::Stopped);
}

/// A lost lock is reported while the handler is being cancelled.
#[tokio::test(start_paused = true)]
async fn observers_see_a_lost_lock() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let id = storage.put(QUEUE, "hang");
    let witness = Arc::new(Witness::default());
    let (listener, _) = listener(config(), &storage, Obey::default());
    let listener = Arc::into_inner(listener).unwrap();
    let listener = listener.observed_by(Arc::clone(&witness) as Arc<dyn Observer>);
    let snatch = async {
        tokio::time::sleep(s(2)).await;
        storage.snatch(QUEUE);
        tokio::time::sleep(s(6)).await;
    };
    listener.run_until(snatch).await.unwrap();
    let notes = witness.notes();
    let at = |what: String| notes.iter().position(|note| *note == what);
    let (lost, decided) = (format!("lost {id}"), format!("decided {id} lost_lock"));
    assert!(
        at(lost.clone()).is_some() && at(lost) < at(decided),
        "{notes:?}"
    );
}

/// LL2: the expiry alarm is raised while the handler still runs, once, when a tenth of the
/// message's time to live is left.
#[tokio::test(start_paused = true)]
async fn ll2_alarm_while_the_handler_runs() {
    let storage = Arc::new(FakeStorage::new(&[QUEUE]));
    let id = storage.put_for(QUEUE, "hang", MessageTtl::After(s(50)));
    let witness = Arc::new(Witness::default());
    let (listener, log) = listener(config(), &storage, Obey::default());
    let listener = Arc::into_inner(listener).unwrap();
    let listener = listener.observed_by(Arc::clone(&witness) as Arc<dyn Observer>);
    let story = async {
        tokio::time::sleep(ms(44_900)).await;
        assert_eq!(witness.count("expiring"), 0, "not yet");
        tokio::time::sleep(ms(200)).await;
        assert_eq!(witness.count(&format!("expiring {id}")), 1);
        tokio::time::sleep(s(30)).await;
    };
    listener.run_until(story).await.unwrap();
    assert_eq!(witness.count("expiring"), 1, "once");
    assert!(log.all()[0].expiring, "{:?}", log.all());
}

/// A rule of the application: as many tasks as it says while messages wait.
struct AsManyAs(u32);

impl ScalingRule for AsManyAs {
    fn target(&mut self, _now: Duration, load: &Load) -> Target {
        let tasks = match load.visible_backlog {
            0 => 1,
            _ => self.0,
        };
        Target {
            tasks,
            awake: tasks,
        }
    }
}

/// L30: a rule of the application chooses the number of tasks, within the settings' limits.
#[tokio::test(start_paused = true)]
async fn l30_a_rule_of_the_application_scales() {
    for (wanted, most) in [(3, 3), (50, 8)] {
        let storage = Arc::new(FakeStorage::new(&[QUEUE]));
        for number in 0..500 {
            storage.put(QUEUE, &number.to_string());
        }
        let peak = Arc::new(Peak::default());
        let (listener, _) = listener(config(), &storage, Obey::default());
        let listener = Arc::into_inner(listener).unwrap();
        let listener = listener
            .observed_by(Arc::clone(&peak) as Arc<dyn Observer>)
            .scaled_by(move |_| AsManyAs(wanted));
        listener.once().await.unwrap();
        assert_eq!(peak.0.load(Ordering::Relaxed), most);
    }
}

#[derive(Default)]
struct Peak(AtomicU32);

impl Observer for Peak {
    fn scaled(&self, pool: &PoolStatus) {
        self.0.fetch_max(pool.tasks, Ordering::Relaxed);
    }
}
