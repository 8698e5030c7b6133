//! Tests that a worker sweeps exactly the requested containers or nothing.

use smalt_sweeper::{Prices, SweeperConfig, SweptContainer};
use smalt_worker::exit;

use crate::fake::World;
use crate::support::*;

fn of(containers: &[(&str, &str)]) -> SweeperConfig {
    let swept = |(container, prefix): &(&str, &str)| SweptContainer {
        account: "default".into(),
        container: (*container).into(),
        prefix: (*prefix).into(),
    };
    SweeperConfig {
        containers: containers.iter().map(swept).collect(),
        ..config("two")
    }
}

/// The document lists `events` and `logs`. A request for other containers is rejected with an error
/// that names both, and nothing is touched; also for a plan and for `validate --connect`.
#[tokio::test(start_paused = true)]
async fn only_requested_containers_are_swept() {
    for asked in [
        &[("other", "")][..],
        &[("events", "")],
        &[("events", ""), ("logs", ""), ("other", "")],
        &[("events", "a/"), ("logs", "")],
    ] {
        let world = World::new();
        sweep(&world).await;
        for container in ["events", "logs", "other"] {
            world.put(&format!("acct/{container}/a/b"), &[DUE]);
        }
        let before = world.state();
        let sweeper = worker(&world, of(asked), Vec::new(), 1);
        let finished = sweeper.once().await;
        assert_eq!(finished.exit_code(), exit::USAGE, "{asked:?}");
        assert!(finished.report.is_empty(), "{:?}", finished.report);
        let said = finished.error.unwrap().to_string();
        for part in ["events/", "logs/", "state init", asked[0].0] {
            assert!(said.contains(part), "{part} in {said}");
        }
        let run = sweeper.run_until(sleep(1_200)).await;
        assert_eq!(run.exit_code(), exit::USAGE, "{asked:?}");
        let planned = sweeper.plan(Prices::default(), 10, |_| {}).await;
        assert_eq!(planned.unwrap_err().exit_code(), exit::USAGE, "{asked:?}");
        let answers = sweeper.probe().await.unwrap();
        let refused = |answer: &&smalt_sweeper::inspect::ProbeResult| answer.exit_code == Some(2);
        assert_eq!(answers.iter().filter(refused).count(), 1, "{answers:?}");
        for container in ["events", "logs", "other"] {
            assert!(world.has(&format!("acct/{container}/a/b")), "{asked:?}");
        }
        assert_eq!(world.state(), before);
    }
}

/// A request for the same containers in another order, or for none, sweeps those of the document.
#[tokio::test(start_paused = true)]
async fn containers_of_the_document_are_swept() {
    for asked in [&[("logs", ""), ("events", "")][..], &[]] {
        let world = World::new();
        sweep(&world).await;
        world.put("acct/logs/a", &[DUE]);
        let finished = once_with(&world, of(asked), Vec::new()).await;
        assert_eq!(finished.exit_code(), exit::OK, "{:?}", finished.error);
        assert!(!world.has("acct/logs/a"));
    }
}

/// `validate --connect` reports the state document.
#[tokio::test(start_paused = true)]
async fn validate_reports_the_state_document() {
    let world = World::new();
    let fresh = worker(&world, config("one"), Vec::new(), 1);
    let answer = fresh.probe().await.unwrap().remove(0);
    assert_eq!(answer.place, "state smalt-sweeper/TimeToLiveBlobs");
    assert!(answer.note.unwrap().contains("does not exist yet") && answer.error.is_none());
    let strict = SweeperConfig {
        create_state: false,
        ..by_document("one")
    };
    let answers = worker(&world, strict, Vec::new(), 1).probe().await.unwrap();
    assert_eq!(
        (answers.len(), answers[0].exit_code),
        (1, Some(exit::UNREACHABLE))
    );
    sweep(&world).await;
    let answer = fresh.probe().await.unwrap().remove(0);
    assert_eq!((answer.note, answer.error), (None, None));
}
