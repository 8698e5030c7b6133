//! Runs the listener's channels example in process: the same code as its processes, on a virtual
//! clock. Covers every order of a writer's and a worker's requests, a death at every request, more
//! work than the visibility timeout, two workers, and the effect of omitting the second look.

#![allow(dead_code, reason = "the command line uses more than the tests")]

#[path = "../../listener/examples/channels/app/mod.rs"]
mod app;
#[path = "channels/check.rs"]
mod check;
#[path = "channels/client.rs"]
mod client;
#[path = "channels/context.rs"]
mod context;
#[path = "channels/line.rs"]
mod line;
#[path = "channels/orders.rs"]
mod orders;

use std::sync::Arc;
use std::time::Duration;

use app::audit::{self, Faults};
use app::context::MergeOption;
use app::plan::Plan;
use app::site::{BLOGS, CHANNELS, ONLY, QUEUE, Site, channel_row};
use app::worker::Manner;
use app::{setup, worker, writer};
use line::{Death, Mortal};
use smalt_harness::testing::TestAccount;
use smalt_listener::Report;
use smalt_sleeve::{TokioClock, Transport};

use crate::Outcome;

const VISIBILITY: Duration = Duration::from_secs(20);
const MENDED: Manner = Manner {
    pause: Duration::ZERO,
    forget_second_look: false,
    merge_option: MergeOption::PreserveChanges,
};
const FORGETFUL: Manner = Manner {
    forget_second_look: true,
    ..MENDED
};
/// One channel with one page, which is deleted, and one blog by a writer.
const ONE: Plan = Plan {
    seed: 1,
    channels: 1,
    blogs: 40,
    requested: 1,
    written: 1,
};

fn site(account: &TestAccount, line: Arc<dyn Transport>, seed: u64) -> Site {
    let clock = Arc::new(TokioClock::starting_at(account.now()));
    Site::open("UseDevelopmentStorage=true", line, clock, VISIBILITY, seed).unwrap()
}

/// Opens an account and prepares it as the plan says.
async fn prepared(plan: &Plan) -> Outcome<(TestAccount, Site)> {
    let account = TestAccount::seeded(plan.seed)?;
    let own = site(&account, account.transport(), 1);
    setup::setup(&own, plan).await?;
    Ok((account, own))
}

async fn faults(site: &Site, plan: &Plan) -> Outcome<Faults> {
    Ok(audit::read(site).await?.faults(plan))
}

/// Returns how often an operation succeeded whose path contains `on`.
fn count(account: &TestAccount, operation: &str, on: &str) -> usize {
    let history = account.history();
    let succeeded = history.iter().filter(|exchange| {
        exchange.operation == Some(operation)
            && exchange.response.status().is_success()
            && exchange.request.uri().path().contains(on)
    });
    succeeded.count()
}

/// Runs a worker until the queue is empty.
async fn work_off(account: &TestAccount, site: &Site, manner: Manner) -> Outcome<Report> {
    let emptied = async {
        while account.messages(QUEUE).standing_now().count() > 0 {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    };
    let life = worker::run(site, manner, emptied);
    Ok(tokio::time::timeout(Duration::from_secs(3600), life).await??)
}

/// One channel with several pages, which is deleted, and one that stays.
const SEVERAL: Plan = Plan {
    seed: 6,
    channels: 2,
    blogs: 240,
    requested: 1,
    written: 12,
};

/// The worker dies at each of its requests, before and after it is executed; the next worker
/// continues.
#[tokio::test(start_paused = true)]
async fn a_worker_may_die_at_every_request() -> Outcome {
    for death in [Death::Unsent, Death::Unanswered] {
        for last in 0.. {
            let (account, own) = prepared(&SEVERAL).await?;
            setup::request(&own, &SEVERAL).await?;
            let line = Mortal::new(account.transport(), last, death);
            let first = site(&account, line.clone(), 2);
            let lived = line.life(work_off(&account, &first, MENDED)).await;
            let survived = lived.transpose()?.is_some();
            let second = site(&account, account.transport(), 3);
            work_off(&account, &second, MENDED).await?;
            let at = format!("{death:?} {last}");
            assert_eq!(faults(&own, &SEVERAL).await?, Faults::default(), "{at}");
            if survived {
                // One Get Messages, eight table requests, one Delete Message.
                assert!(last >= 10, "{at}");
                break;
            }
        }
    }
    Ok(())
}

/// Few blogs, and a writer among them.
const SMALL: Plan = Plan {
    seed: 5,
    channels: 3,
    blogs: 8,
    requested: 2,
    written: 8,
};

/// The writer dies at each of its requests, channels are deleted, and the writer restarts.
#[tokio::test(start_paused = true)]
async fn a_writer_may_die_at_every_request() -> Outcome {
    for death in [Death::Unsent, Death::Unanswered] {
        for last in 0.. {
            let (account, own) = prepared(&SMALL).await?;
            setup::request(&own, &SMALL).await?;
            let line = Mortal::new(account.transport(), last, death);
            let first = site(&account, line.clone(), 2);
            let life = writer::run(&first, &SMALL, "w1", Duration::ZERO);
            let survived = line.life(life).await.transpose()?.is_some();
            work_off(&account, &own, MENDED).await?;
            let second = site(&account, account.transport(), 3);
            writer::run(&second, &SMALL, "w1", Duration::ZERO).await?;
            let found = audit::read(&own).await?;
            let at = format!("{death:?} {last}");
            assert_eq!(found.faults(&SMALL), Faults::default(), "{at}");
            assert_eq!(found.writers["w1"], SMALL.written, "{at}");
            if survived {
                assert!(last > 3 * u64::from(SMALL.written), "{at}");
                break;
            }
        }
    }
    Ok(())
}

/// A channel whose deletion takes several times the visibility timeout.
const LARGE: Plan = Plan {
    seed: 3,
    channels: 1,
    blogs: 1_600,
    requested: 1,
    written: 0,
};

/// Runs two workers on [`LARGE`], with each transaction delayed by 5 s. Returns how often the
/// message was received and renewed, and how long it took.
async fn two_workers(account: &TestAccount) -> Outcome<(u64, usize, Duration)> {
    account
        .fault("Table_SubmitTransaction")
        .times(1000)
        .late(Duration::from_secs(5));
    let sites = [2, 3].map(|seed| site(account, account.transport(), seed));
    let begun = account.now();
    let (one, other) = tokio::join!(
        work_off(account, &sites[0], MENDED),
        work_off(account, &sites[1], MENDED)
    );
    let took = account.now().since(begun);
    let renewals = count(account, "MessageId_Update", "");
    Ok((one?.received + other?.received, renewals, took))
}

/// DT4: the listener renews the message while its handler runs, so no second worker receives it.
#[tokio::test(start_paused = true)]
async fn work_may_exceed_the_visibility_timeout() -> Outcome {
    let blogs = LARGE.blogs(&LARGE.channels()[0]).len();
    assert!(blogs > 1_000, "only {blogs} blogs");
    let (account, own) = prepared(&LARGE).await?;
    setup::request(&own, &LARGE).await?;
    assert_eq!(audit::read(&own).await?.blogs["channel-000"].len(), blogs);
    let (received, renewals, took) = two_workers(&account).await?;
    assert!(took > 2 * VISIBILITY, "{took:?}");
    assert_eq!(received, 1);
    assert!(renewals >= 4, "{renewals}");
    assert_eq!(faults(&own, &LARGE).await?, Faults::default());
    Ok(())
}

/// The other half of DT4: when renewals fail, a second worker joins, and no harm is done.
#[tokio::test(start_paused = true)]
async fn a_second_worker_may_join_when_renewals_fail() -> Outcome {
    let (account, own) = prepared(&LARGE).await?;
    setup::request(&own, &LARGE).await?;
    account
        .fault("MessageId_Update")
        .times(1000)
        .internal_error();
    let (received, renewals, _) = two_workers(&account).await?;
    assert!(received > 1, "nobody joined");
    assert_eq!(renewals, 0);
    assert_eq!(faults(&own, &LARGE).await?, Faults::default());
    Ok(())
}

/// T10: channels and blogs have the properties of the paper's tables, and a deletion keeps them
/// until it removes the row.
#[tokio::test(start_paused = true)]
async fn tables_have_the_columns_of_the_paper() -> Outcome {
    let (_, own) = prepared(&SEVERAL).await?;
    let channel = SEVERAL.channels().swap_remove(0);
    own.tables
        .merge(CHANNELS, &channel_row(&channel, false), "*")
        .await?;
    let blog = SEVERAL.blogs(&channel).swap_remove(0);
    for (table, keys, columns) in [
        (
            CHANNELS,
            (channel.as_str(), ONLY),
            &["Owner", "CreatedOn"][..],
        ),
        (BLOGS, blog.keys(), &["Title", "Blog", "UserId"][..]),
    ] {
        let (row, _) = own.tables.get(table, keys).await?.ok_or("no row")?;
        for column in columns {
            let value = row.get(*column).and_then(|value| value.as_str());
            assert!(
                value.is_some_and(|value| !value.is_empty()),
                "{table}: {column}"
            );
        }
    }
    Ok(())
}

/// All roles run at once and die now and then, answers are lost, inserts are slow.
#[tokio::test(start_paused = true)]
async fn tables_are_consistent_although_processes_die() -> Outcome {
    let mut taken_back = 0;
    for seed in 0..4 {
        let plan = Plan {
            seed,
            channels: 6,
            blogs: 300,
            requested: 4,
            written: 50,
        };
        let (account, own) = prepared(&plan).await?;
        for (operation, nth) in [
            ("Table_MergeEntity", 1),
            ("Table_SubmitTransaction", 3),
            ("Table_DeleteEntity", 1),
            ("Table_InsertEntity", 5),
            ("MessageId_Delete", 1),
        ] {
            let fault = account.fault(operation).nth(nth + seed);
            fault.times(2).answer_lost();
        }
        account
            .fault("Table_InsertEntity")
            .times(10_000)
            .late(Duration::from_millis(300));
        setup::request(&own, &plan).await?;
        rivals(&account, &plan).await?;
        assert_eq!(faults(&own, &plan).await?, Faults::default(), "{seed}");
        let lost = account.emulator().faults().account();
        for lost in lost.iter().filter(|account| account.rule.times == 2) {
            assert!(lost.fired > 0, "{seed}: {:?}", lost.rule);
        }
        // Only writers delete single blogs.
        taken_back += count(&account, "Table_DeleteEntity", "/Blogs(");
    }
    assert!(taken_back > 0, "no writer found a mark");
    Ok(())
}

/// Runs two workers and two writers with short lives, until they have finished.
async fn rivals(account: &TestAccount, plan: &Plan) -> Outcome {
    let manner = Manner {
        pause: Duration::from_millis(400),
        ..MENDED
    };
    let pause = Duration::from_millis(20);
    let sites = [2, 3, 4, 5].map(|n| site(account, account.transport(), 10 * plan.seed + n));
    for round in 0..5 {
        let lives = |n: u64| Duration::from_millis(700 + 431 * ((round + n + plan.seed) % 4));
        // The timeout ends them wherever they are.
        let _ = tokio::join!(
            tokio::time::timeout(lives(0), work_off(account, &sites[0], manner)),
            tokio::time::timeout(lives(1), work_off(account, &sites[1], manner)),
            tokio::time::timeout(lives(2), writer::run(&sites[2], plan, "w1", pause)),
            tokio::time::timeout(lives(3), writer::run(&sites[3], plan, "w2", pause)),
        );
    }
    let (worked, one, other) = tokio::join!(
        work_off(account, &sites[0], manner),
        writer::run(&sites[2], plan, "w1", pause),
        writer::run(&sites[3], plan, "w2", pause),
    );
    worked?;
    one?;
    other?;
    Ok(())
}

/// Without writers the first pass suffices, whatever the number of pages.
#[tokio::test(start_paused = true)]
async fn one_pass_suffices_without_writers() -> Outcome {
    let (account, own) = prepared(&LARGE).await?;
    setup::request(&own, &LARGE).await?;
    work_off(&account, &own, FORGETFUL).await?;
    assert_eq!(faults(&own, &LARGE).await?, Faults::default());
    Ok(())
}

/// A duplicate message, and one for a channel that never existed: both are done at once.
#[tokio::test(start_paused = true)]
async fn messages_for_deleted_channels_are_done() -> Outcome {
    let (account, own) = prepared(&SEVERAL).await?;
    setup::request(&own, &SEVERAL).await?;
    setup::request(&own, &SEVERAL).await?;
    let never = own.sender()?;
    never.send(b"never was", Default::default()).await?;
    let report = work_off(&account, &own, MENDED).await?;
    assert_eq!(report.received, 3);
    assert_eq!(faults(&own, &SEVERAL).await?, Faults::default());
    let poison = account.messages(&format!("{QUEUE}-poison"));
    assert_eq!(poison.all().len(), 0);
    Ok(())
}

/// A message that names no channel goes to the poison queue.
#[tokio::test(start_paused = true)]
async fn messages_without_a_channel_name_go_to_the_poison_queue() -> Outcome {
    let (account, own) = prepared(&ONE).await?;
    own.sender()?.send(b"a/b", Default::default()).await?;
    let report = work_off(&account, &own, MENDED).await?;
    assert_eq!(report.received, 1);
    let poison = account.messages(&format!("{QUEUE}-poison"));
    assert_eq!(poison.all().len(), 1);
    Ok(())
}
