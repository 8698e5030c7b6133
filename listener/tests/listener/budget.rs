//! The daily budget: a day's requests cost no more, messages in hand are settled, and work resumes
//! on the next day.

use std::sync::Arc;

use smalt_listener::config::Policy;
use smalt_listener::{
    ACCOUNT_RATE_PER_S, AccountLimit, Ended, ListenerConfig, Outcome, QueueListener, SentinelConfig,
};
use smalt_sleeve::port::Storage;
use smalt_worker::budget::Budget;
use tokio::time::Instant;

use crate::support::handlers::Obey;
use crate::support::*;

/// Seconds from the start of each test to midnight, by the service's clock.
const TO_MIDNIGHT_S: u64 = 35_200;

/// Returns an account whose budget pays for this number of requests a day.
fn account(requests: u32) -> AccountLimit {
    AccountLimit::new(ACCOUNT_RATE_PER_S).with_budget(Budget {
        max_cost_per_day: f64::from(requests) * 1e-6,
        price_per_10k: 0.01,
    })
}

fn thrifty(
    config: ListenerConfig,
    storage: &Arc<FakeStorage>,
    account: &AccountLimit,
) -> (QueueListener, Arc<Log>) {
    let (listener, log) = listener(config, storage, Obey::default());
    let listener = Arc::into_inner(listener).unwrap();
    (listener.within(account.clone()), log)
}

/// Returns the times of the requests within a span.
fn sent(storage: &FakeStorage, from: Instant, to: Instant) -> Vec<Instant> {
    let all = storage.requests().into_iter().map(|(at, _)| at);
    all.filter(|at| (from..to).contains(at)).collect()
}

/// A busy listener stops for the day with nothing in hand, and resumes after midnight.
#[tokio::test(start_paused = true)]
async fn a_spent_budget_lasts_until_midnight() {
    for sentinel in [None, Some(SentinelConfig::default())] {
        let begin = Instant::now();
        let midnight = begin + s(TO_MIDNIGHT_S);
        let storage = holding(&["ok"; 400]);
        let account = account(200);
        let config = with(|c| c.sentinel = sentinel);
        let (listener, log) = thrifty(config, &storage, &account);
        let at_noon = async {
            tokio::time::sleep_until(begin + s(3_600)).await;
            let today = account.today().unwrap();
            let left = storage.stored(QUEUE).len();
            let hidden = 400 - left - log.count(Outcome::Done);
            (today, left, hidden)
        };
        let run = listener.run_until(tokio::time::sleep_until(midnight + s(3_600)));
        let (report, (today, left, hidden)) = tokio::join!(run, at_noon);
        assert_eq!(report.unwrap().ended, Ended::Drained);
        assert_eq!(today.resumes().unwrap(), "2026-09-22T00:00:00Z");
        assert!((150..=200).contains(&today.requests), "{today:?}");
        assert_eq!((hidden, log.count(Outcome::Retried)), (0, 0));
        assert!((200..400).contains(&left), "{left}");
        let first_day = sent(&storage, begin, midnight);
        assert_eq!(first_day.len() as u64, today.requests);
        let quiet = sent(&storage, begin + s(60), midnight);
        assert!(quiet.is_empty(), "{}", quiet.len());
        let second_day = sent(&storage, midnight, midnight + s(3_600)).len();
        assert!((150..=200).contains(&second_day), "{second_day}");
        assert!(log.count(Outcome::Done) > 400 - left);
    }
}

/// Messages in hand are renewed, handled and settled, whatever that costs.
#[tokio::test(start_paused = true)]
async fn messages_in_hand_are_settled_beyond_the_budget() {
    let storage = holding(&["sleep 120000"; 20]);
    let account = account(12);
    let config = ListenerConfig {
        policy: Policy::Fixed,
        handler_timeout: s(600),
        ..config()
    };
    let (listener, log) = thrifty(config, &storage, &account);
    let report = run_for(&listener, s(1_000)).await;
    let taken = report.received;
    assert!((1..=8).contains(&taken), "{taken}");
    assert_eq!(log.outcomes(), vec![Outcome::Done; taken as usize]);
    assert!(log.all().iter().all(|decision| decision.renewals > 20));
    assert!(account.today().unwrap().requests > 12);
    assert!(storage.calls(Op::Get) <= 2);
}

/// `once` settles its messages even if handlers take longer than the grace time, and reports why
/// the queue is not empty.
#[tokio::test(start_paused = true)]
async fn once_reports_a_spent_budget() {
    let storage = holding(&["sleep 45000"; 20]);
    let account = account(9);
    let (listener, log) = thrifty(config(), &storage, &account);
    let report = listener.once().await.unwrap();
    assert_eq!(report.ended, Ended::BudgetSpent);
    assert!(report.received > 0 && report.failures() == 0);
    assert_eq!(log.count(Outcome::Done) as u64, report.received);
    let said = account.today().unwrap().spent().unwrap();
    assert!(
        said.contains("budget of 0.000009 is spent") && said.contains("2026-09-22T00:00:00Z"),
        "{said}"
    );
    let before = storage.requests().len();
    let (again, _) = thrifty(config(), &storage, &account);
    assert_eq!(again.once().await.unwrap().ended, Ended::BudgetSpent);
    assert_eq!(storage.requests().len(), before, "nothing on the same day");
}

/// A stop ends `once` within its grace time, with or without a budget.
#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_long_handlers() {
    let storage = holding(&["hang"; 20]);
    let (listener, log) = thrifty(config(), &storage, &account(9));
    let begin = Instant::now();
    let report = listener.once_until(tokio::time::sleep(s(5))).await.unwrap();
    assert_eq!(report.ended, Ended::GraceExceeded);
    assert!(begin.elapsed() < s(35), "{:?}", begin.elapsed());
    assert_eq!(log.count(Outcome::Released) as u64, report.received);
}

/// Listeners of one process share its budget.
#[tokio::test(start_paused = true)]
async fn two_queues_share_one_budget() {
    let storage = Arc::new(FakeStorage::new(&["orders", "bills"]));
    let account = account(150);
    let runs = ["orders", "bills"].map(|queue| {
        for _ in 0..200 {
            storage.put(queue, "ok");
        }
        let port = Arc::clone(&storage) as Arc<dyn Storage>;
        let listener = QueueListener::builder(queue, port)
            .within(account.clone())
            .handler(Obey::default())
            .build()
            .unwrap();
        async move { listener.once().await.unwrap() }
    });
    let reports = futures_util::future::join_all(runs).await;
    let ended: Vec<_> = reports.iter().map(|report| report.ended).collect();
    assert_eq!(ended, [Ended::BudgetSpent; 2]);
    // Each reserves its own deletes; those of the other may come on top.
    let requests = storage.requests().len();
    assert!((100..=150 + 64).contains(&requests), "{requests}");
    assert_eq!(account.today().unwrap().requests, requests as u64);
}

/// `once` ends normally if the queue is empty before the budget is spent.
#[tokio::test(start_paused = true)]
async fn a_sufficient_budget_has_no_effect() {
    let storage = holding(&["ok"; 20]);
    let (listener, _) = thrifty(config(), &storage, &account(1_000));
    let report = listener.once().await.unwrap();
    assert_eq!((report.ended, report.received), (Ended::Empty, 20));
}
