//! Concurrent clients: some order of their calls must explain every answer.

use std::pin::Pin;

use smalt_harness::bursts::Options;
use smalt_harness::bursts::burst::{Ask, Failure, play, play_against};
use smalt_harness::bursts::judge::{self, Verdict};
use smalt_harness::bursts::options::campaign;
use smalt_harness::bursts::plan::{Kind, Plan};
use smalt_harness::bursts::report::report;
use smalt_harness::bursts::schedule::Order;
use smalt_harness::bursts::shrink::shrink;
use smalt_harness::check::Cases;
use smalt_harness::histories::names::Names;
use smalt_harness::histories::run::Answered;
use smalt_harness::histories::server::Server;
use smalt_model::vocabulary::tables::TableOperation;
use smalt_model::vocabulary::{BlobOperation, Condition, Guard, Operation};

/// Runs a campaign, and requires overlaps and lost answers: without them it would prove nothing.
fn hold(options: &Options) -> Verdict {
    let judged = campaign(options, &|| ());
    let sum = judged.unwrap_or_else(|failed| unreachable!("{}", report(&failed.0, &failed.1)));
    let met = sum.overlaps as u64 / options.seeds().count;
    assert!(met >= 4, "only {met} overlaps in a burst");
    assert!(sum.lost > 0, "no answer was lost");
    assert_eq!(sum.undecided, 0, "the search gave up");
    assert!(
        sum.done * 3 > sum.calls,
        "only {} of {} calls succeeded",
        sum.done,
        sum.calls
    );
    sum
}

fn cases(seed: u64, cases: u64) -> Cases {
    Cases {
        seed,
        cases: Some(cases),
        ..Cases::default()
    }
}

fn of(kind: Kind, bursts: u64) -> Options {
    Options {
        cases: cases(0, bursts),
        kind: Some(kind),
        ..Options::default()
    }
}

#[test]
fn concurrent_calls_on_blobs_have_an_order() {
    hold(&of(Kind::Blob, 600));
}

#[test]
fn concurrent_calls_on_a_container_have_an_order() {
    hold(&of(Kind::Container, 600));
}

#[test]
fn concurrent_calls_on_a_queue_have_an_order() {
    hold(&of(Kind::Queue, 600));
}

/// The search once gave up here: it treated messages that differ only in their positions as
/// different states, even where the orders were equivalent.
#[test]
fn an_order_of_a_crowded_queue_is_found() {
    let plan = Options {
        cases: cases(327_010_496, 1),
        kind: Some(Kind::Queue),
        clients: Some(6),
        operations: Some(8),
        ..Options::default()
    };
    let sum = campaign(&plan, &|| ()).unwrap_or_else(|failed| unreachable!("{failed:?}"));
    assert_eq!((sum.calls, sum.undecided), (52, 0));
}

#[test]
fn listings_show_the_state_at_one_point_in_time() {
    let sum = hold(&of(Kind::Listing, 600));
    assert!(sum.entries > 600, "{} entries", sum.entries);
}

#[test]
fn concurrent_calls_on_entities_have_an_order() {
    let sum = hold(&of(Kind::Entity, 600));
    assert!(sum.entries > 600, "{} entities", sum.entries);
}

/// A tree that moves is never seen in part: not by a listing, and not by a write into it.
#[test]
fn concurrent_renames_have_an_order() {
    hold(&of(Kind::Lake, 600));
}

#[test]
fn concurrent_calls_on_everything_have_an_order() {
    hold(&of(Kind::All, 600));
}

#[test]
fn concurrent_calls_have_an_order_when_answers_wait_for_the_disk() {
    hold(&Options {
        cases: cases(1_000, 40),
        durable: true,
        ..Options::default()
    });
}

/// Formats every call with its answer, byte for byte.
fn trace(plan: &Plan) -> String {
    let history = play(plan, &Server::access());
    let history = history.unwrap_or_else(|failed| unreachable!("{failed:?}"));
    format!("{:?}", history.calls)
}

#[test]
fn a_seed_repeats_and_orders_differ() {
    let mut differing = 0;
    for seed in 0..50 {
        let plan = Plan::of(seed, None, None, None);
        assert_eq!(trace(&plan), trace(&plan), "{seed}");
        let other = Plan {
            order: Order::Seeded(seed + 1_000),
            ..plan.clone()
        };
        differing += usize::from(trace(&plan) != trace(&other));
    }
    assert!(differing > 40, "{differing} of 50 schedules differ");
}

type Asked<'a> = Pin<Box<dyn Future<Output = Result<Answered, String>> + 'a>>;

/// The planted race: checks `If-Match` by a look at the blob, and then writes without the
/// condition.
fn checks_outside<'a>(server: &'a Server, operation: &'a Operation, names: &'a Names) -> Asked<'a> {
    Box::pin(async move {
        let Operation::Blob(id, BlobOperation::Put(content, labels, guard)) = operation else {
            return Answered::to(server, operation, names).await;
        };
        let Some(Condition::IfMatch(Some(tag))) = guard.condition else {
            return Answered::to(server, operation, names).await;
        };
        let head = BlobOperation::Head {
            snapshot: None,
            guard: Guard::default(),
        };
        let looked = Operation::Blob(id.clone(), head);
        let seen = Answered::to(server, &looked, names).await?;
        if seen.answer.header("etag") != Some(names.tag(tag).as_str()) {
            return Answered::to(server, operation, names).await;
        }
        let guard = Guard {
            condition: None,
            ..*guard
        };
        let put = BlobOperation::Put(*content, labels.clone(), guard);
        Answered::to(server, &Operation::Blob(id.clone(), put), names).await
    })
}

/// A page size that covers all entities.
const ALL: u32 = 1_000;

/// A planted violation of a query's guarantee: assembles a page from two looks at its partition.
fn queries_twice<'a>(server: &'a Server, operation: &'a Operation, names: &'a Names) -> Asked<'a> {
    Box::pin(async move {
        let (table, partition_key) = match operation {
            Operation::Table(
                table,
                TableOperation::Page {
                    partition_key,
                    from: None,
                    most: ALL,
                },
            ) => (table, partition_key),
            _ => return Answered::to(server, operation, names).await,
        };
        let page = |from, most| {
            let page = TableOperation::Page {
                partition_key: partition_key.clone(),
                from,
                most,
            };
            Operation::Table(table.clone(), page)
        };
        let mut first = Answered::to(server, &page(None, 1), names).await?;
        let Some(seen) = first.table.as_mut() else {
            return Ok(first);
        };
        let Some(next) = seen.next.take() else {
            return Ok(first);
        };
        let rest = page(Some(next.row_key), ALL);
        let rest = Answered::to(server, &rest, names).await?;
        seen.rows.extend(rest.table.unwrap_or_default().rows);
        Ok(first)
    })
}

/// Returns the failure of a burst against such a service.
fn failure_of(plan: &Plan, ask: Ask) -> Option<Box<Failure>> {
    let history = play_against(plan, &Server::access(), ask);
    let history = history.unwrap_or_else(|failed| unreachable!("{failed:?}"));
    let judged = judge::judge(plan.kind, &history);
    let reason = judged.err()?;
    Some(Box::new(Failure { reason, history }))
}

/// Checks the detection itself: schedules find the race, plain order does not, and the failure
/// shrinks.
fn schedules_find(ask: Ask, kind: Kind, bursts: u64) {
    let mut found = Vec::new();
    for seed in 0..bursts {
        let plan = Plan::of(seed, Some(kind), None, None);
        let plain = Plan {
            order: Order::Plain,
            ..plan.clone()
        };
        assert!(failure_of(&plain, ask).is_none(), "{seed} in plain order");
        if let Some(failure) = failure_of(&plan, ask) {
            found.push((plan, failure));
        }
    }
    assert!(found.len() >= 3, "found by {} of {bursts}", found.len());
    let Some(first) = found.into_iter().next() else {
        return;
    };
    let (small, failure) = shrink(first, &mut |plan| failure_of(plan, ask));
    let calls = failure.history.calls.len();
    assert!(
        calls <= 8,
        "{calls} calls are left\n{}",
        report(&small, &failure)
    );
}

#[test]
fn schedules_find_a_race_that_plain_order_does_not() {
    schedules_find(checks_outside, Kind::Blob, 200);
}

#[test]
fn schedules_find_a_query_of_two_states_and_plain_order_does_not() {
    schedules_find(queries_twice, Kind::Entity, 200);
}
