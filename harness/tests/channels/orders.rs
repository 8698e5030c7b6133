//! Every order of a writer's requests and a worker's, and many orders of two workers'.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::channels::app::audit::Faults;
use crate::channels::app::plan::Plan;
use crate::channels::app::setup;
use crate::channels::app::site::{BLOGS, CHANNELS, channel_row};
use crate::channels::app::tables::TableError;
use crate::channels::app::worker::{Manner, delete_channel};
use crate::channels::app::writer::{self, Written};
use crate::channels::line::Stepped;
use crate::channels::{FORGETFUL, MENDED, ONE, Outcome, faults, prepared, site, work_off};

/// The outcome of a writer and a worker whose requests ran in a given order.
struct Interleaved {
    /// The faults when the worker had ended, and the writer too, unless it was dead.
    at_first: Faults,
    /// The faults after the writer restarted.
    in_the_end: Faults,
}

/// Runs a worker and a writer of one blog. `places` says how many of the worker's requests precede
/// the writer's first look, its insert and its second look. The writer may die after one of them.
async fn interleave(places: &[usize], is_killed: bool, manner: Manner) -> Outcome<Interleaved> {
    let (account, own) = prepared(&ONE).await?;
    let channel = ONE.channels().remove(0);
    let rival = site(&account, account.transport(), 3);
    let deleting = Stepped::begin(account.transport(), |line| {
        let site = site(&account, line, 2);
        async move { delete_channel(&site, &channel, manner).await }
    });
    let writing = Stepped::begin(account.transport(), |line| {
        let site = site(&account, line, 3);
        async move { writer::run(&site, &ONE, "w1", Duration::ZERO).await }
    });
    // The writer reads its position.
    writing.step().await;
    let mut done = 0;
    for place in places {
        while done < *place {
            deleting.step().await;
            done += 1;
        }
        writing.step().await;
    }
    if is_killed {
        writing.kill();
        deleting.finish().await??;
    } else {
        deleting.finish().await??;
        writing.finish().await??;
    }
    let at_first = faults(&own, &ONE).await?;
    writer::run(&rival, &ONE, "w1", Duration::ZERO).await?;
    let in_the_end = faults(&own, &ONE).await?;
    Ok(Interleaved {
        at_first,
        in_the_end,
    })
}

/// DT3: a writer looks, the worker marks and deletes all blogs, the writer inserts and dies.
/// Without the second look the blog outlives its channel, and the check says so.
#[tokio::test(start_paused = true)]
async fn a_blog_inserted_before_the_channel_is_deleted_is_removed() -> Outcome {
    // Read and mark the channel, read and delete its blogs: four requests.
    let story = [0, 4];
    let mended = interleave(&story, true, MENDED).await?;
    assert_eq!(mended.at_first, Faults::default());
    let forgetful = interleave(&story, true, FORGETFUL).await?;
    assert_eq!(forgetful.at_first.orphans.len(), 1);
    let told = forgetful.at_first.to_string();
    assert!(
        told.starts_with("blogs without a valid channel: 1, such as \"channel-000: 2026-01-01T"),
        "{told}"
    );
    Ok(())
}

/// Every position of a writer's requests among a worker's. If the writer lives, no blog is left; if
/// it dies and restarts, none is left then. Until then a dead writer leaves only a blog that it
/// inserted after the last look, or without the second look one that it inserted after the scan.
#[tokio::test(start_paused = true)]
async fn every_order_of_their_requests() -> Outcome {
    // The mark is the worker's second request, the scan its third, the last look its fifth.
    for (manner, blind_from) in [(MENDED, 5), (FORGETFUL, 3)] {
        let mut left = BTreeSet::new();
        let mut expected = BTreeSet::new();
        for first in 0..=6 {
            for insert in first..=6 {
                for second in insert..=6 {
                    let told = [first, insert, second];
                    let lived = interleave(&told, false, manner).await?;
                    assert_eq!(lived.at_first, Faults::default(), "{told:?} {manner:?}");
                }
                let died = interleave(&[first, insert], true, manner).await?;
                assert_eq!(died.in_the_end, Faults::default(), "{first} {insert}");
                if died.at_first != Faults::default() {
                    assert_eq!(died.at_first.orphans.len(), 1);
                    left.insert((first, insert));
                }
                if first < 2 && insert >= blind_from {
                    expected.insert((first, insert));
                }
            }
        }
        assert_eq!(left, expected, "{manner:?}");
    }
    Ok(())
}

/// A writer that inserts after the last look and never restarts is the only one to leave a blog.
/// Another request for the same channel removes it.
#[tokio::test(start_paused = true)]
async fn a_blog_left_by_a_dead_writer_is_removed_by_another_request() -> Outcome {
    let (account, own) = prepared(&ONE).await?;
    let channel = ONE.channels().remove(0);
    delete_channel(&own, &channel, MENDED).await?;
    let blog = ONE.written("w1", 0);
    own.tables.insert(BLOGS, &blog.row()).await?;
    assert_eq!(faults(&own, &ONE).await?.orphans.len(), 1);
    setup::request(&own, &ONE).await?;
    work_off(&account, &own, MENDED).await?;
    assert_eq!(faults(&own, &ONE).await?, Faults::default());
    Ok(())
}

/// If somebody makes the channel valid again before its row is deleted, the worker detects it, and
/// the next attempt begins with the mark.
#[tokio::test(start_paused = true)]
async fn a_reverted_mark_is_detected() -> Outcome {
    let (account, own) = prepared(&ONE).await?;
    let channel = ONE.channels().remove(0);
    let deleting = Stepped::begin(account.transport(), |line| {
        let site = site(&account, line, 2);
        let channel = channel.clone();
        async move { delete_channel(&site, &channel, MENDED).await }
    });
    for _ in 0..5 {
        deleting.step().await;
    }
    own.tables
        .put(CHANNELS, &channel_row(&channel, true))
        .await?;
    let blog = ONE.written("w1", 0);
    assert_eq!(writer::write(&own, &blog).await?, Written::Stands);
    let refused = deleting.finish().await?;
    assert!(matches!(refused, Err(TableError::Changed)), "{refused:?}");
    delete_channel(&own, &channel, MENDED).await?;
    assert_eq!(faults(&own, &ONE).await?, Faults::default());
    Ok(())
}

/// Two workers delete the same channel, with their requests in thirty-two orders: both succeed.
#[tokio::test(start_paused = true)]
async fn two_concurrent_workers_succeed() -> Outcome {
    let plan = Plan {
        blogs: 150,
        seed: 2,
        ..ONE
    };
    let channel = plan.channels().remove(0);
    assert!(plan.blogs(&channel).len() > 100, "needs several pages");
    for order in 0..32_u32 {
        let (account, own) = prepared(&plan).await?;
        let begin = |seed| {
            let channel = channel.clone();
            Stepped::begin(account.transport(), |line| {
                let site = site(&account, line, seed);
                async move { delete_channel(&site, &channel, MENDED).await }
            })
        };
        let workers = [begin(2), begin(3)];
        let mut ended = BTreeSet::new();
        for turn in 0.. {
            let who = (order >> (turn % 5)) as usize % 2;
            // If one of them has ended, the other takes its turns.
            let who = if ended.contains(&who) { 1 - who } else { who };
            if !workers[who].step().await {
                ended.insert(who);
            }
            if ended.len() == 2 {
                break;
            }
        }
        for worker in workers {
            let deleted = worker.finish().await?;
            assert!(deleted.is_ok(), "{order:b}: {deleted:?}");
        }
        assert_eq!(faults(&own, &plan).await?, Faults::default(), "{order:b}");
    }
    Ok(())
}
